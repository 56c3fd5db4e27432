"""The sentence over a table: each template if it is true, and not if it is false; the legend's
numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judged_rows import judged_row as row
from judged_rows import judged_table as table

from bench.compare.answer import table_answer
from bench.compare.forms.legend import sign_legend
from bench.compare.statistics.table import Row, Table

A = row("a", 62.0)
B = row("b", 61.0)
C = row("c", 60.0)
TOP_A, TOP_B, TOP_C = (replace(one, may_be_best=True) for one in (A, B, C))
OLD = replace(row("old", 70.0), untested="no predictions of every task")


def untested(*rows: Row) -> Table:
    return table(*(replace(one, untested="one seed") for one in rows), tested=None)


def test_each_sentence(snapshot: Any) -> None:
    """Nothing is claimed about rows that were not tested, and no row is called best if several may
    be.
    """
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
