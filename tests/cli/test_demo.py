"""``bench demo``: its text follows from its numbers, its page has the same sentence, and the whole
of it as a real process.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import bench
from factories import record
from msgspec.structs import replace

from bench.cli.demo import show_demo
from bench.records import RunRecord, RunsFolder, Score

N = 400
GOLD = np.random.default_rng(0).integers(0, 6, N).astype(float)
STRAY = np.random.default_rng(1).normal(size=N)


def scored(store: RunsFolder, method: str, seed: int | None, noise: float) -> RunRecord:
    """Make a run with cosines that follow the ratings but for ``noise``; all methods share most of
    it.
    """
    from scipy.stats import spearmanr

    own = np.random.default_rng([seed or 0, len(method)]).normal(size=N)
    cosines, subset = GOLD + noise * (STRAY + 0.1 * own), np.full(N, "c2c_isim")
    found = {"prediction": cosines, "gold": GOLD, "subset": subset, "image": np.arange(N) // 2}
    value = 100 * float(spearmanr(cosines, GOLD)[0])
    cell = {"suite": "check", "task": "captions", "protocol": "check/2", "metric": "spearman"}
    setting = "none" if seed is None else "unsupervised"
    made = record(method, seed, setting=setting, scores=(Score(**cell, n=N, value=value),))
    made = replace(made, provenance=replace(made.provenance, data={"captions": "0" * 64}))
    store.write_predictions(made.run_id, "captions", "check/2", found, "check")
    store.write(made)
    return made


def runs(
    folder: Path, noise: float, seeds: tuple[int, ...] = (1, 2, 3)
) -> tuple[RunsFolder, list[RunRecord]]:
    """An untrained baseline with noise 3, and a trained method."""
    store = RunsFolder(folder / "runs")
    return store, [
        scored(store, "cls", None, 3.0),
        *(scored(store, "simcse", seed, noise) for seed in seeds),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "finding"),
    [
        (1.0, "SimCSE beats CLS on captions, by "),
        (9.0, "SimCSE is not trained: not above the untrained start."),
        (3.0, "SimCSE is not trained: not above the untrained start."),
    ],
    ids=["it helps", "it harms", "it does nothing"],
)
def test_page_and_terminal_answer_with_one_sentence_that_follows_from_the_numbers(
    tmp_path: Path, noise: float, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, records = runs(tmp_path, noise)
    show_demo(records, store, tmp_path, browse=False)
    printed = " ".join(capsys.readouterr().out.split())
    page = " ".join((tmp_path / "index.html").read_text(encoding="utf-8").split())
    done = bench("compare", "--runs", store.path, "--baseline", "cls", "--format", "json")
    (table,) = json.loads(done.stdout)["tables"]
    (row,) = [row for row in table["rows"] if row["method"] == "simcse"]
    values = [record.scores[0].value for record in records]
    assert row["against"]["difference"] == pytest.approx(np.mean(values[1:]) - values[0], abs=0.011)
    assert table["baseline"] == "cls" and printed.startswith(finding) and finding in page
