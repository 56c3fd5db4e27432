"""Our score and a printed value: within, below, above, or not tested, each against plain numpy and
scipy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from factories import PROTOCOL, RAW_PROTOCOL, record
from scipy.stats import t as student

from bench.compare.consistency import best_of, judge_print, pooled_sd, printed_runs, verdict_text
from bench.compare.printed import Beside, Reproduced, judge_rows, score_of
from bench.papers import ReferenceResult, results, rows
from bench.records import RunRecord, Score

(STSB,) = [
    cell
    for cell in results("simcse", paper="focal-infonce", task="STS-B", setting="unsupervised")
    if cell.table == "3" and cell.printed == "76.38"
]


def score(value: float, task: str = "STS-B", **fields: object) -> Score:
    facts = {"suite": "sts", "protocol": PROTOCOL, "metric": "spearman", "n": 1379}
    facts |= {"task": task, "value": value} | fields
    return Score(**facts)  # type: ignore[arg-type]


def ours(*values: float, method: str = "simcse", protocol: str = PROTOCOL) -> list[RunRecord]:
    """A finished run for each value, of seeds 1, 2, ..."""
    return [
        record(
            method, seed, backbone="bert-base-uncased", scores=(score(value, protocol=protocol),)
        )
        for seed, value in enumerate(values, 1)
    ]


def beside(*values: float, cell: ReferenceResult = STSB, why_not: str = "") -> Reproduced:
    (((one,),)) = judge_rows([Beside([cell], ours(*values), why_not)])
    return one


@pytest.mark.matrix(every=4)
@pytest.mark.parametrize(
    ("rows", "ours_of", "print_of"),
    [
        (1, 3, "one run"),
        (5, 3, "one run"),
        (5, 5, "mean of 4 seeds"),
        (8, 2, "mean of 10 runs"),
        (5, 4, "best of 4 seeds"),
    ],
)
def test_95_of_100_prints_of_our_own_method_are_consistent(
    rows: int, ours_of: int, print_of: str
) -> None:
    """Our seeds and the runs of the paper are drawn from one normal distribution; the verdict that
    is printed is counted.
    """
    draw = np.random.default_rng(3)
    tables = 4000
    consistent = 0
    cell = replace(STSB, runs=print_of)
    count, best = printed_runs(cell)
    for _ in range(tables):
        values = draw.normal(70, 0.9, (rows, ours_of))
        paper = draw.normal(70, 0.9, count)
        value = round(float(paper.max() if best else paper.mean()), 2)
        cell = replace(cell, value=value, printed=f"{value:.2f}")
        judged = judge_print(float(values[0].mean()), ours_of, cell, pooled_sd(values.tolist()))
        consistent += verdict_text(judged, cell).startswith("within: ")
    assert 0.94 <= consistent / tables <= 0.965


def test_the_interval_by_hand() -> None:
    values = np.array([76.2, 76.3, 76.4, 76.5, 76.6])
    cell, sd = beside(*values), float(values.std(ddof=1))
    half = float(student.ppf(0.975, 4)) * sd * (1 + 1 / 5) ** 0.5
    assert (cell.mean, cell.half) == pytest.approx((values.mean(), half))
    assert (cell.sd, cell.freedom, cell.seeds) == (pytest.approx(sd), 4, (1, 2, 3, 4, 5))
    assert verdict_text(cell, STSB) == f"within: 76.40 ± {half:.2f}"
    far = beside(*(values + 3))
    assert (
        verdict_text(far, STSB) == f"above by 3.02: 79.40 ± {half:.2f}" and far.difference == 3.02
    )
    of_four = beside(*(values + 0.5), cell=replace(STSB, runs="mean of 4 seeds"))
    assert of_four.half == pytest.approx(half * ((1 / 5 + 1 / 4) / (1 + 1 / 5)) ** 0.5)
    best = beside(*values, cell=replace(STSB, runs="best of 4 seeds"))
    assert best.expected == pytest.approx(values.mean() + 1.02938 * sd, abs=1e-4)
    assert verdict_text(best, STSB).startswith("within: 76.56 ± ")
    drawn = np.random.default_rng(0).normal(size=(400_000, 4)).max(axis=1)
    assert best_of(4) == pytest.approx((drawn.mean(), drawn.var()), abs=0.01)


def test_spreads_are_pooled_over_the_rows_of_a_task_and_each_run_counts_once() -> None:
    samples = [[1.0, 2.0, 4.0], [10.0], [5.0, 6.0]]
    squares = 2 * np.var(samples[0], ddof=1) + np.var(samples[2], ddof=1)
    assert pooled_sd(samples) == (pytest.approx((squares / 3) ** 0.5), 3)
    assert pooled_sd([[1.0], [2.0]]) == (0.0, 0)
    runs = [ours(76.0, method="a"), ours(60, 60.5, 61, method="b"), ours(70, 70.6, method="c")]
    rows = [Beside([STSB], one) for one in (*runs, runs[1])]
    (single,), *_ = judge_rows(rows)
    expected = pooled_sd([[60, 60.5, 61], [70, 70.6]])
    assert (single.sd, single.freedom) == (pytest.approx(expected[0]), 3)


@pytest.mark.parametrize(
    ("values", "why_not", "changes", "why", "difference"),
    [
        ([76.4], "", {}, "one seed: how far seeds vary is not known", 0.02),
        ([76.0, 76.2], "builtin stands in", {}, "builtin stands in", -0.28),
        ([76.0, 76.2], "", {"protocol": "unknown"}, "the paper's protocol is not known", -0.28),
        ([], "", {}, "no finished run of ours has this score", None),
    ],
)
def test_an_untested_row_gives_the_reason_and_the_difference(
    values: list[float], why_not: str, changes: dict[str, str], why: str, difference: float | None
) -> None:
    one = beside(*values, cell=replace(STSB, **changes), why_not=why_not)  # type: ignore[arg-type]
    assert (verdict_text(one, STSB), one.difference) == (f"not tested: {why}", difference)


def test_a_deterministic_score_has_an_interval_without_width() -> None:
    """A printed value may be any number that is rounded to it."""
    for value, text in (
        (76.384, "within: 76.38 ± 0.00"),
        (76.376, "within: 76.38 ± 0.00"),
        (76.386, "above by 0.01: 76.39 ± 0.00"),
        (76.374, "below by 0.01: 76.37 ± 0.00"),
    ):
        made = record("cls", None, setting="none", scores=(score(value),))
        ((cell,),) = judge_rows([Beside([STSB], [made])])
        assert verdict_text(cell, STSB) == text and (cell.sd, cell.freedom) == (0.0, None)


def test_only_the_cells_own_protocol_counts() -> None:
    for protocol, verdict in ((PROTOCOL, "within"), (RAW_PROTOCOL, "not tested")):
        scored = ours(76.0, 76.2, protocol=protocol)
        ((cell,),) = judge_rows([Beside([STSB], scored)])
        assert cell.verdict == verdict
    (printed,) = results("glove-avg", paper="promcse", table="2")
    fields = {"task": "CxC-STS", "suite": "cxc", "metric": "spearman-bootstrap"}
    scores = [
        score(value, protocol=protocol, **fields)  # type: ignore[arg-type]
        for protocol, value in (("cxc-promcse/1", 1.0), ("cxc-parekh/1", 2.0))
    ]
    found = score_of(record("glove-avg", None, setting="none", scores=scores), printed)
    assert found is not None and found.value == 2.0


def test_weighted_means_over_sub_datasets_are_read_from_the_details() -> None:
    """SimCSE's table B.3: each task's weighted mean, and the mean of all seven; nothing if a task
    has none.
    """
    (row,) = rows(
        results("simcse", paper="simcse", table="B.3", setting="unsupervised", variant="")
    )
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    scores = [score(40.0, task, detail={"wmean": 50.0 + i}) for i, task in enumerate(tasks)]
    scores.append(score(40.0, "Avg."))
    made = record("simcse", 1, backbone="bert-base-uncased", scores=scores)
    ((*cells,),) = judge_rows([Beside(row.cells, [made])])
    assert [cell.mean for cell in cells] == pytest.approx([*(50.0 + i for i in range(7)), 53.0])
    assert {cell.protocol for cell in cells} == {"senteval-wmean/1"}
