"""Ours beside the print: intervals from predictions that are written here, and what is said where there are none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import record
from scipy.stats import spearmanr

from bench.plugins import discover
from bench.reproduce.budget import GPU_SPEED, STEP_SECONDS, gpu_hours
from bench.reproduce.verdicts import VERDICTS, Run, reproduced, score_of, verdict
from bench.reproduce.wanted import WantedRun, recipe, wanted
from bench.runs import RunsFolder, Score
from bench.statistics.intervals import Interval

REGISTRY = discover()


def stsb_run() -> WantedRun:
    """Focal-InfoNCE's table 3, first line: alignment, uniformity, and STS-B 76.38."""
    return wanted("focal-infonce", "3", REGISTRY)[0]


def written(folder: Path, seed: int, noise: float, *, with_predictions: bool = True, text: str = "tokenised") -> Run:
    """A finished run on 400 made-up pairs."""
    drawn = np.random.default_rng(5)
    gold = drawn.uniform(0, 5, 400)
    predicted = gold + np.random.default_rng(seed).normal(0, noise, 400)
    value = 100 * float(spearmanr(predicted, gold).statistic)
    score = Score(suite="sts", task="STS-B", protocol="senteval-all/1", metric="spearman", value=value, n=400, text=text)
    made = record("simcse", seed, backbone="bert-base-uncased", scores=(score,))
    store = RunsFolder(folder)
    store.write(made)
    if with_predictions:
        store.write_predictions(
            made.run_id, "STS-B", text, {"prediction": predicted, "gold": gold, "subset": np.zeros(400, np.int64)}, "sts"
        )
    return made, store.folder(made.run_id)


def test_a_printed_value_in_our_interval_and_one_below_it(tmp_path: Path) -> None:
    ours = [written(tmp_path, seed, 1.15) for seed in (1, 2, 3)]
    *geometry, cell = reproduced(stsb_run(), ours, "tokenised", draws=400)
    assert [one.verdict for one in geometry] == ["not scored", "not scored"] and geometry[0].mean is None
    assert cell.mean == pytest.approx(sum(one.scores[0].value for one, _ in ours) / 3)
    assert cell.low is not None and cell.high is not None and cell.low < cell.mean < cell.high
    assert cell.covers == "items and seeds" and cell.seeds == (1, 2, 3)
    assert cell.difference == pytest.approx(round(cell.mean, 2) - 76.38)
    assert cell.verdict == ("agrees" if cell.low <= 76.38 <= cell.high else "lower" if cell.high < 76.38 else "higher")
    *_, far = reproduced(stsb_run(), [written(tmp_path / "far", 1, 4.0)], "tokenised", draws=400)
    assert far.verdict == "lower" and far.covers == "items" and far.difference is not None and far.difference < -20
    *_, near = reproduced(stsb_run(), [written(tmp_path / "near", 1, 0.05)], "tokenised", draws=400)
    assert near.verdict == "higher"


def test_without_predictions_seeds_alone_and_with_one_seed_nothing(tmp_path: Path) -> None:
    ours = [written(tmp_path, seed, 1.15, with_predictions=False) for seed in (1, 2, 3)]
    *_, cell = reproduced(stsb_run(), ours, "tokenised", draws=100)
    values = [one.scores[0].value for one, _ in ours]
    half = 4.302652729911275 * np.std(values, ddof=1) / math.sqrt(3)  # Student's t, 2 degrees of freedom, 97.5 %
    assert cell.covers == "seeds" and (cell.low, cell.high) == pytest.approx((np.mean(values) - half, np.mean(values) + half))
    assert any("no predictions" in note for note in cell.notes)
    *_, one = reproduced(stsb_run(), ours[:1], "tokenised", draws=100)
    assert one.verdict == "no interval" and one.low is None and one.mean is not None


def test_other_conditions_are_not_compared(tmp_path: Path) -> None:
    ours = [written(tmp_path, 1, 1.15)]
    for changed in (replace(stsb_run(), instead_of="bert-base-uncased"), replace(stsb_run(), asked={"max_steps": "5"})):
        assert reproduced(changed, ours, "tokenised", draws=100)[-1].verdict == "not comparable"


def test_a_protocol_that_nobody_published_is_not_compared() -> None:
    scores = (
        Score(
            suite="geometry",
            task="alignment",
            protocol="geometry-stsb/1",
            metric="alignment",
            value=0.19,
            n=231,
            text="tokenised",
        ),
    )
    made = record("simcse", 1, backbone="bert-base-uncased", scores=scores)
    first, *_ = reproduced(stsb_run(), [(made, Path("nowhere"))], "tokenised", draws=100)
    assert (first.printed.task, first.mean, first.difference, first.verdict) == ("alignment", 0.19, 0.0, "not comparable")


def test_another_text_form_is_no_score_of_that_cell(tmp_path: Path) -> None:
    ours = [written(tmp_path, 1, 1.15, text="raw")]
    assert reproduced(stsb_run(), ours, "tokenised", draws=100)[-1].verdict == "not scored"
    assert reproduced(stsb_run(), ours, "raw", draws=100)[-1].verdict != "not scored"


def test_a_score_of_another_protocol_is_left_alone() -> None:
    run = wanted("promcse", "2", REGISTRY, words=("glove",))[0]
    (cell,) = run.rows[0].cells
    assert cell.protocol == "cxc-parekh/1"
    scores = tuple(Score(suite="cxc", task="CxC-STS", protocol=p, metric="spearman-bootstrap", value=v, n=44045, text="raw")
                   for p, v in (("cxc-promcse/1", 1.0), ("cxc-parekh/1", 2.0)))  # fmt: skip
    found = score_of(record("glove-avg", None, setting="none", scores=scores), cell, "tokenised")
    assert found is not None and found.value == 2.0  # the form does not matter: the print names none


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (76.0, 77.0, "agrees"),
        (76.384, 77.0, "agrees"),
        (76.386, 77.0, "higher"),
        (75.0, 76.376, "agrees"),
        (75.0, 76.374, "lower"),
    ],
)
def test_a_printed_value_stands_for_all_that_is_rounded_to_it(low: float, high: float, want: str) -> None:
    assert verdict(76.38, Interval((low + high) / 2, None, low, high, "items"), True) == want
    assert want in VERDICTS


def test_gpu_hours_by_hand() -> None:
    """Unsupervised SimCSE on BERT base: 15,625 steps of 64 x 2 x 32 tokens, 85 million parameters in the layers."""
    (run,) = wanted("promcse", "3", REGISTRY, words=("simcse",))[:1]
    merged, entry, _ = recipe(run, REGISTRY)
    cls = REGISTRY["simcse"].cls
    parameters = 12 * (4 * 768**2 + 2 * 768 * 3072)
    training = max(15_625 * STEP_SECONDS, 6 * parameters * 1_000_000 * 2 * 32 / GPU_SPEED)
    dev = 125 * 2 * parameters * 3000 * 32 / GPU_SPEED
    assert entry is not None and gpu_hours(cls, merged, "bert-base-uncased", entry.corpus) == pytest.approx(
        (training + dev) / 3600
    )
    assert gpu_hours(cls, merged, "no-such-model", entry.corpus) is None
    assert gpu_hours(cls, merged, "bert-base-uncased", "a file of the user") is None
