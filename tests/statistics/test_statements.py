"""The sentence over a table: each template where it is true, and not where it is false; the legend's numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.compare.statements import answer, legend
from bench.compare.statistics.table import Against, Cell, Row, Spread, Table
from bench.compare.statistics.table import Tested as OneFamily

PLACE = "On the built-in backbone, unsupervised"


def row(
    name: str, mean: float, verdict: str | None = None, *, top: bool = False, **more: object
) -> Row:
    against = None
    if verdict is not None:
        against = Against(
            difference=mean - 60.0,
            ci_low=-9.0,
            ci_high=9.0,
            ci_level=0.975,
            verdict=verdict,
            mde=mean / 30,
        )
    values = (mean - 1, mean, mean + 1)
    cell = Cell(
        mean=mean,
        sd=1.0 + mean / 100,
        values=values,
        n=10,
        spread=Spread(low=mean - 2, high=mean + 2, covers="items and seeds", se=1.0),
        against=against,
    )
    fields = {"setting": "unsupervised", "seeds": (1, 2, 3), "variant": ""} | more
    return Row(
        method=name,
        backbone="builtin",
        differs=(),
        runs=("r",) * 3,
        cells=(cell,),
        may_be_best=top,
        **fields,  # type: ignore[arg-type]
    )


def table(*rows: Row, tested: int | None = 3, baseline: str | None = None) -> Table:
    rows = tuple(replace(one, is_baseline=one.method == baseline) for one in rows)
    return Table(
        setting="unsupervised",
        backbone="builtin",
        suite="sts",
        protocol="senteval-all/1",
        text="tokenised",
        metric="spearman",
        columns=("Avg.",),
        rows=rows,
        baseline=baseline,
        tested=tested and OneFamily(rows=tested, comparisons=tested - 1, ci_level=0.975),  # type: ignore[arg-type]
    )


A, B, C = row("a", 62.0), row("b", 61.0), row("c", 60.0)
TOP_A, TOP_B, TOP_C = (replace(one, may_be_best=True) for one in (A, B, C))
OLD = replace(row("old", 70.0), untested="no predictions of every task")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (table(A, tested=None), "a reaches 62.00 on the STS average."),
        (
            table(*(replace(one, untested="one seed") for one in (A, B)), tested=None),
            "highest on the STS average is a, 62.00; differences were not tested: one seed.",
        ),
        (
            table(
                *(replace(row(name, 62.001), untested="one seed") for name in "ab"), C, tested=None
            ),
            "highest on the STS average are a and b, 62.00; differences were not tested: one seed.",
        ),
        (table(TOP_A, B, C), "a is the best of 3 rows on the STS average, 62.00."),
        (
            table(TOP_A, TOP_B, C),
            "the best of 3 rows on the STS average is one of a (62.00) and b (61.00); which, the data do not tell.",
        ),
        (
            table(TOP_A, TOP_B, TOP_C),
            "the data do not tell which of 3 rows is best on the STS average.",
        ),
        (
            table(OLD, TOP_A, B, C),
            "a is the best of 3 rows on the STS average, 62.00. Not tested: old (no predictions of every task).",
        ),
    ],
    ids=["A one row", "A untested", "A tied", "B", "C", "D", "B beside an untested row"],
)
def test_each_template_where_it_is_true(made: Table, said: str) -> None:
    assert answer(made) == f"{PLACE}: {said}"


def test_the_legend() -> None:
    rows = [row("a", 62.0, "better", top=True), row("b", 61.0, "inconclusive"), row("c", 60.0)]
    assert legend(table(OLD, *rows, baseline="c"), "▲", "▼", "shaded") == [
        '▲ better, ▼ worse than c; no sign: inconclusive, which is not "equal"; -: not tested',
        "shaded: may be the best; signs and shaded together are right in 95 of 100 such tables (Bonferroni-Holm over 2)",
        "±: 95 % CI of a row's own mean, other items and seeds; all rows answer the same items, so compare rows by the difference, not by ±",
        "difference from c with its 97.5 % CI, the level at which it leaves zero out where there is a sign",
        "SD over seeds: median 1.61, 1.60 (c) to 1.70 (old); n = 3; MDE against c (about 80 % power): median 2.0, 2.0 to 2.1 points",
        "Not tested: old (no predictions of every task)",
    ]
    without = legend(table(TOP_A, B, C), "▲", "▼", "◆")
    assert without[0] == "◆: may be the best; right in 95 of 100 such tables (Hsu over 2)"
    assert not any("CI, the level" in line or "MDE" in line or "▲" in line for line in without)
    assert [line[:1] for line in legend(table(A, B, tested=None), "▲", "▼", "◆")] == ["±", "S"]
