"""The finding over the first screen: each sentence appears on data for which it is true, and on no
other.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from judged_rows import judged_row, judged_table

from bench.compare.finding import describe_finding
from bench.compare.statistics.table import Table

BASE = judged_row("simcse", 60.0)
BETTER = [judged_row(f"good-{i}", 62.0 + i, "better") for i in range(6)]
WORSE = [judged_row(f"bad-{i}", 50.0 + i, "worse") for i in range(3)]
OPEN = [judged_row(f"open-{i}", 60.1 + i / 10, "inconclusive", top=True) for i in range(2)]
UNTESTED = replace(judged_row("new", 70.0), untested="fewer than three seeds")
SENTENCES = (
    "No method beats simcse",
    "0 beats simcse",
    "1 beat simcse",
    "methods beat simcse",
    "is worse than simcse",
    "which may be chance",
    "may be the best.",
    "is the best of",
    "not tested (",
)


def table_of_rows(*rows: object, tested: int | None = None) -> Table:
    count = len(rows) if tested is None else tested
    return judged_table(*rows, tested=count, baseline="simcse")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "said", "text"),
    [
        (
            table_of_rows(*OPEN, replace(BASE, may_be_best=True), *WORSE),
            {"No method beats simcse", "may be the best."},
            "No method beats simcse on the STS average: of 5 tested rows 0 are better, 3 worse, "
            "2 inconclusive. 3 rows may be the best.",
        ),
        (
            table_of_rows(replace(BETTER[0], may_be_best=True), BASE, *WORSE),
            {"0 beats simcse", "is the best of"},
            "good-0 beats simcse on the STS average: of 4 tested rows 1 is better, 3 worse, "
            "0 inconclusive. good-0 is the best of 5 tested rows.",
        ),
        (
            table_of_rows(*(replace(row, may_be_best=True) for row in BETTER[:2]), BASE, UNTESTED),
            {"1 beat simcse", "may be the best.", "not tested ("},
            "good-0 and good-1 beat simcse on the STS average: of 2 tested rows 2 are better, "
            "0 worse, 0 inconclusive. 2 rows may be the best. new is not tested (fewer than three "
            "seeds).",
        ),
        (
            table_of_rows(*BETTER, BASE),
            {"methods beat simcse"},
            "6 methods beat simcse on the STS average: of 6 tested rows 6 are better, 0 worse, "
            "0 inconclusive.",
        ),
        (
            table_of_rows(replace(BASE, may_be_best=True), WORSE[0]),
            {"is worse than simcse", "is the best of"},
            "bad-0 is worse than simcse on the STS average, by 10.00 points. simcse is the best of "
            "2 tested rows.",
        ),
        (
            table_of_rows(replace(BETTER[0], may_be_best=True), BASE),
            {"0 beats simcse", "is the best of"},
            "good-0 beats simcse on the STS average, by 2.00 points. good-0 is the best of 2 "
            "tested rows.",
        ),
        (
            table_of_rows(OPEN[0], replace(BASE, may_be_best=True)),
            {"which may be chance"},
            "The data do not tell open-0 from simcse on the STS average: they differ by 0.10 "
            "points, which may be chance.",
        ),
    ],
)
def test_each_sentence_is_said_only_of_its_data(table: Table, said: set[str], text: str) -> None:
    found = describe_finding(table)
    assert found == text
    assert {sentence for sentence in SENTENCES if sentence in found} == said


def test_nothing_is_claimed_of_what_was_not_compared() -> None:
    rows = [
        replace(row, untested="fewer than three seeds") for row in (judged_row("a", 62.0), BASE)
    ]
    found = describe_finding(judged_table(*rows, tested=None, baseline="simcse"))
    assert "differences were not tested" in found
    assert not any(sentence in found for sentence in SENTENCES)
