"""Every trained method learns something: after a few steps on real text it is above its own untrained start on STS-B dev.

The start is the same method, built and not trained: what it scores then is what its backbone and its way of pooling are worth.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import pytest

from bench.corpora import open_corpus
from bench.datasets import DataFolder
from bench.executors.local import Options, build, execute
from bench.executors.scoring import dev_scorer
from bench.method import SilentReporter
from bench.plan import Request, make
from bench.plugins import discover
from bench.runs import RunsFolder

STEPS, ROWS = 40, 32  # optimiser steps of a batch
NEEDS_MORE: dict[str, dict[str, str]] = {"dclr": {"teacher": "builtin"}}
REGISTRY = discover()
TRAINED = [
    (name, setting)
    for name in REGISTRY
    for setting in REGISTRY[name].cls.settings
    if setting != "none" and not (setting == "supervised" and "unsupervised" in REGISTRY[name].cls.settings)
] + [("simcse", "supervised"), ("promcse", "supervised")]


@pytest.fixture(scope="module")
def corpora(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A few thousand sentences of Wikipedia; NLI triplets; the same as pairs with a label."""
    folder = tmp_path_factory.mktemp("text")
    rows = {
        "sentences": list(itertools.islice(open_corpus(shared / "data" / "train" / "wiki_sentences.txt.xz").rows(), 3000)),
        "triplets": list(itertools.islice(open_corpus(shared / "data" / "train" / "nli_triplets.csv.xz").rows(), 2000)),
    }
    rows["labelled"] = [
        row for a, b, c in rows["triplets"] for row in ((a, b, "entailment"), (a, c, "contradiction"))
    ]  # two of the three labels: there are no neutral pairs in the triplets
    headers = {"triplets": ("sent0", "sent1", "hard_neg"), "labelled": ("sent0", "sent1", "label")}
    for kind, header in headers.items():
        with open(folder / f"{kind}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows[kind]])
    (folder / "sentences.txt").write_text("".join(row[0] + "\n" for row in rows["sentences"]), encoding="utf-8")
    return {"sentences": str(folder / "sentences.txt"), **{kind: str(folder / f"{kind}.csv") for kind in headers}}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "setting"), TRAINED)
def test_a_trained_method_rises_above_its_start(
    name: str, setting: str, corpora: dict[str, str], shared: Path, tmp_path: Path
) -> None:
    data = DataFolder(shared / "data")
    kind = "labelled" if name == "sbert" else "triplets" if setting == "supervised" else "sentences"
    overrides = {"max_steps": str(STEPS), "batch_size": str(ROWS), "eval_steps": str(STEPS), "select_on": "STS-B dev"}
    (run,) = make(
        Request(methods=(name,), setting=setting, suites=("check",), corpus=corpora[kind], overrides=overrides | NEEDS_MORE.get(name, {})),
        REGISTRY, data,
    )  # fmt: skip
    assert run.dev is not None
    untrained = build(run, Options(), SilentReporter(), tmp_path / "start")
    start = untrained.dev_score(dev_scorer(run.dev))  # type: ignore[attr-defined]
    record, _ = execute(run, RunsFolder(tmp_path / "runs"), Options(), SilentReporter())
    assert record.training is not None and record.training.dev_score is not None
    print(f"{name} {setting}: {start:.2f} -> {record.training.dev_score:.2f} in {record.cost.train_seconds:.0f} s")
    assert record.training.dev_score > start + 0.5
