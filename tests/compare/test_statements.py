"""The sentence over a table: each template where it is true, and not where it is false; the
legend's numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.compare.answer import table_answer
from bench.compare.statistics.table import Against, Cell, Row, Spread, Table
from bench.compare.statistics.table import Tested as OneFamily
from bench.show.tables.legend import sign_legend


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


def untested(*rows: Row) -> Table:
    return table(*(replace(one, untested="one seed") for one in rows), tested=None)


def test_each_sentence(snapshot: Any) -> None:
    """What may be claimed: nothing of what was not tested, no best row where several may be."""
    against = [row("a", 62.0, "better", top=True), row("b", 61.0, "inconclusive"), C]
    untrained = [row(name, 50.0, "worse", setting="none") for name in ("cls", "avg")]
    tables = {
        "one row": table(A, tested=None),
        "untested": untested(A, B),
        "untested and equal as printed": untested(row("a", 62.001), row("b", 62.001), C),
        "one may be the best": table(TOP_A, B, C),
        "two may be the best": table(TOP_A, TOP_B, C),
        "all may be the best": table(TOP_A, TOP_B, TOP_C),
        "beside an untested row": table(OLD, TOP_A, B, C),
        "against a baseline": table(*against, baseline="c"),
        "with untrained rows": table(*against, *untrained, tested=5, baseline="c"),
    }
    legends = {"whole": sign_legend(table(OLD, *against, baseline="c"), "▲", "▼", "shaded")}
    for name in ("one may be the best", "untested"):
        legends[name] = sign_legend(tables[name], "▲", "▼", "◆")
    assert {name: table_answer(one) for name, one in tables.items()} | {
        "legends": legends
    } == snapshot
