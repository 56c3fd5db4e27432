"""The finding of a table: each sentence appears on data for which it is true, and on no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judged_rows import judged_row, judged_table

from bench.compare.statistics.table import (
    FEW_SEEDS,
    FOR_COMPARISON,
    FOR_SCALE,
    NOT_TRAINED,
    Row,
    Start,
    Table,
)
from bench.compare.words.finding import find, table_finding, why_no_verdicts
from bench.compare.words.legend import legend

BASE = judged_row("simcse", 60.0)
TOP_BASE = replace(BASE, may_be_best=True)
BETTER = [judged_row(f"good-{i}", 62.0 + i, "better") for i in range(8)]
WORSE = [judged_row(f"bad-{i}", 50.0 + i, "worse") for i in range(3)]
OPEN = [judged_row(f"open-{i}", 60.1 + i / 10, "inconclusive", top=True) for i in range(2)]
OLD = replace(judged_row("old", 70.0), untested="no predictions of every task")
LOW = replace(judged_row("low", 55.0), untested="no predictions of every task")
ASIDE = [
    replace(judged_row("seen", 75.0), stands=FOR_COMPARISON),
    replace(judged_row("cls", 45.0), stands=FOR_SCALE),
]


def of_seeds(name: str, seeds: int) -> Row:
    """Return a row that was not tested, because it has so few seeds."""
    (cell,) = judged_row(name, 59.0).cells
    assert cell is not None
    few = replace(cell, values=cell.values[:seeds])
    return replace(judged_row(name, 59.0), cells=(few,), untested=FEW_SEEDS)


def held_against_start(row: Row, low: float) -> Row:
    """Return the row with the lower end of its interval above its start."""
    start = Start(row="CLS", difference=low + 1, ci_low=low, ci_high=low + 2, ci_level=0.95)
    return replace(row, start=start)


def against_simcse(*rows: Row) -> Table:
    return judged_table(*rows, tested=len(rows), baseline="simcse")


def alone(*rows: Row, tested: int | None = 3) -> Table:
    """Return a table without a baseline."""
    plain = []
    for row in rows:
        (cell,) = row.cells
        assert cell is not None
        plain.append(replace(row, cells=(replace(cell, against=None),)))
    return judged_table(*plain, tested=tested)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            against_simcse(*OPEN, TOP_BASE, *WORSE),
            "No method beats SimCSE on the STS average. Of 5 comparisons, 0 are better, 3 worse "
            "and 2 inconclusive. 3 rows may be the best: open-0, open-1 and SimCSE.",
        ),
        (
            replace(against_simcse(*OPEN, TOP_BASE, *ASIDE), question="Which is better?"),
            "No method beats SimCSE on the STS average. Of 2 planned comparisons, 0 are better, 0 worse "
            "and 2 inconclusive. 3 rows may be the best: open-0, open-1 and SimCSE.",
        ),
        (
            against_simcse(*OPEN, *OPEN, TOP_BASE, *WORSE),
            "No method beats SimCSE on the STS average. Of 7 comparisons, 0 are better, 3 worse "
            "and 4 inconclusive. 5 rows may be the best.",
        ),
        (
            against_simcse(TOP_BASE, *WORSE),
            "No method beats SimCSE on the STS average. Of 3 comparisons, 0 are better, 3 worse "
            "and 0 inconclusive. SimCSE is the best of 4 tested rows.",
        ),
        (
            against_simcse(replace(BETTER[0], may_be_best=True), BASE, *WORSE),
            "good-0 beats SimCSE on the STS average. Of 4 comparisons, 1 is better, 3 worse and 0 "
            "inconclusive. good-0 is the best of 5 tested rows.",
        ),
        (
            against_simcse(*BETTER[:2], BASE, OLD, of_seeds("pcl", 2), of_seeds("ct", 1)),
            "good-0 and good-1 beat SimCSE on the STS average. Of 2 comparisons, 2 are better, 0 "
            "worse and 0 inconclusive. Not tested: old, no predictions of every task; PCL, two "
            "seeds; CT, one seed.",
        ),
        (
            against_simcse(*BETTER, BASE),
            "8 rows beat SimCSE on the STS average. Of 8 comparisons, 8 are better, 0 worse and 0 "
            "inconclusive.",
        ),
        (
            replace(against_simcse(BETTER[0], BASE), length="1000steps"),
            "good-0 beats SimCSE on the STS average after 1,000 steps, by 2.00 points.",
        ),
        (
            against_simcse(TOP_BASE, WORSE[0]),
            "bad-0 is worse than SimCSE on the STS average, by 10.00 points.",
        ),
        (
            against_simcse(BETTER[0], BASE),
            "good-0 beats SimCSE on the STS average, by 2.00 points.",
        ),
        (
            against_simcse(OPEN[0], TOP_BASE),
            "open-0 against SimCSE on the STS average is inconclusive: they differ by 0.10 points, "
            "which may be chance.",
        ),
        (
            alone(replace(BETTER[0], may_be_best=True), *WORSE[:2], OLD),
            "good-0 is the best of 3 tested rows on the STS average. Not tested: old, no "
            "predictions of every task.",
        ),
        (
            alone(*OPEN, WORSE[0]),
            "The best of 3 tested rows on the STS average is one of open-0 and open-1.",
        ),
        (alone(*OPEN), "Any of 2 tested rows on the STS average may be the best."),
        (alone(BASE, tested=None), "SimCSE reaches 60.00 on the STS average."),
        (
            alone(judged_row("a", 62.001), judged_row("b", 62.0), LOW, tested=None),
            "Highest on the STS average are a and b, 62.00. Differences were not tested: no "
            "predictions of every task.",
        ),
        (
            alone(BASE, *ASIDE, tested=None),
            "Highest on the STS average is seen, 75.00. Differences were not tested: no other row "
            "is judged.",
        ),
        (
            alone(BASE, WORSE[0], tested=None),
            "Highest on the STS average is SimCSE, 60.00. Differences were not tested: their "
            "predictions were not read.",
        ),
        (
            against_simcse(
                BETTER[0],
                held_against_start(BASE, -0.5),
                replace(held_against_start(LOW, 0.0), untested="", stands=NOT_TRAINED),
                held_against_start(ASIDE[0], -9.0),
            ),
            "good-0 beats SimCSE on the STS average, by 2.00 points. low is not trained: not above "
            "the untrained start. SimCSE itself is not above its untrained start.",
        ),
        (
            against_simcse(held_against_start(BETTER[0], 0.1), held_against_start(BASE, 0.1)),
            "good-0 beats SimCSE on the STS average, by 2.00 points.",
        ),
        (replace(alone(BASE), falling=("alignment",), columns=("alignment",)), ""),
    ],
)
def test_each_sentence_is_said_of_its_data(table: Table, text: str) -> None:
    assert table_finding(table).text == text


def test_the_finding_is_that_of_the_publishers_first_table_of_several_rows() -> None:
    first = against_simcse(TOP_BASE, *WORSE)
    sent = replace(against_simcse(BETTER[0], BASE), sender="Mallory")
    single = alone(BASE, tested=None)
    assert find([sent, single, first, against_simcse(*BETTER, BASE)]) == table_finding(first)
    assert find([single]) == table_finding(single)
    assert find([sent]).text.startswith("All of these runs were submitted")
    unranked = replace(single, columns=("alignment",), falling=("alignment",))
    assert find([unranked]).text.startswith("No method is ranked here")
    assert find([]).text == "No method has a score on every task yet."
    (row,) = single.rows
    partly = replace(single, rows=(replace(row, cells=(None,)),))
    assert find([partly, unranked]) == find([])


def test_a_table_without_verdicts_says_its_own_reason() -> None:
    single = alone(BASE, tested=None)
    unvalued = replace(single, rows=(replace(BASE, cells=(None,)),))
    reasons = {
        why_no_verdicts(replace(single, columns=("alignment",), falling=("alignment",))),
        why_no_verdicts(unvalued),
        why_no_verdicts(alone(of_seeds("pcl", 2), of_seeds("ct", 1), tested=None)),
        why_no_verdicts(alone(BASE, replace(OPEN[0], stands=NOT_TRAINED), tested=None)),
    }
    assert reasons == {
        "no column that ranks",
        "no value of Avg.",
        "fewer than three seeds",
        "no other row is judged",
    }


def test_the_legend_explains_what_the_table_has() -> None:
    whole = "; ".join(legend(against_simcse(*OPEN, BASE, *WORSE)))
    assert all(part in whole for part in ("◆: may be", "inconclusive:", "Holm, 5 comparisons"))
    assert "usually detect is 1.7 points (median)" in whole
    less = "; ".join(legend(against_simcse(BETTER[0], BASE)))
    assert "◆" not in less and "inconclusive" not in less
    plain = "; ".join(legend(alone(BASE, tested=None)))
    assert plain == "±: 95 % interval of a row's own mean, not of a difference"
