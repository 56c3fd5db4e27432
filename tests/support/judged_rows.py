"""Rows and tables with verdicts, made by hand: for tests of what is said about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.compare.statistics.table import Against, Cell, Row, Spread, Table
from bench.compare.statistics.table import Tested as OneFamily


def judged_row(
    name: str, mean: float, verdict: str | None = None, *, top: bool = False, **more: object
) -> Row:
    against = None
    if verdict is not None:
        against = Against(
            difference=mean - 60.0,
            se=4.0,
            ci_low=-9.0,
            ci_high=9.0,
            ci_level=0.975,
            verdict=verdict,
            mde=mean / 30,
            equal_within=9.5,
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


def judged_table(*rows: Row, tested: int | None = 3, baseline: str | None = None) -> Table:
    rows = tuple(replace(one, is_baseline=one.method == baseline) for one in rows)
    family: Any = None
    if tested:
        family = OneFamily(rows=tested, comparisons=tested - 1, ci_level=0.975)
    return Table(
        setting="unsupervised",
        backbone="builtin",
        suite="sts",
        protocol="senteval-all/1",
        metric="spearman",
        columns=("Avg.",),
        rows=rows,
        baseline=baseline,
        tested=family,
    )
