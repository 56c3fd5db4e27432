"""The table "Changed since vN": which rows it has, and what their runs differ in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.board.changes import Changes, changes_since
from bench.compare.forms.data import table_data
from bench.compare.tables import make_tables
from bench.records import Code, Run, RunRecord


def run(
    seed: int = 1,
    value: float = 50.0,
    method: str = "simcse",
    recipe: dict[str, Any] | None = None,
    **provenance: Any,
) -> RunRecord:
    made = record(method, seed, recipe=recipe)
    return replace(
        made,
        scores=tuple(replace(score, value=value) for score in made.scores),
        provenance=replace(made.provenance, **provenance),
    )


def since(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> Changes:
    """Records of the version before have ids of their own: another run may have the same."""
    old = [replace(one, run_id=f"{one.run_id}-old") for one in old]
    tables = [
        [table_data(table) for table in make_tables([Run(one, Path("nowhere")) for one in records])]
        for records in (old, new)
    ]
    return changes_since("v1", *tables, {one.run_id: one for one in (*old, *new)})


def rows(changes: Changes) -> list[tuple[str, str, float | None, float | None, str]]:
    return [(row.row, row.suite, row.before, row.now, row.differs) for row in changes.rows]


def test_the_same_runs_and_the_noise_of_a_library_change_nothing() -> None:
    assert since([run()], [run()]).rows == ()
    assert since([run()], [run(value=50.0 + 1e-9)]).rows == ()


def test_new_rows_rows_that_are_gone_and_seeds() -> None:
    old = [run(1), run(1, method="ct")]
    new = [run(1), run(2, 52.0), run(1, 40.0, method="diffcse")]
    assert rows(since(old, new)) == [
        ("DiffCSE", "sts Avg.", None, 40.0, "new"),
        ("SimCSE", "sts Avg.", 50.0, 51.0, "seeds: 1 before, 1-2 now"),
        ("CT", "sts Avg.", 50.0, None, "no longer shown"),
    ]


def test_a_budget_of_its_own_is_a_row_of_its_own() -> None:
    """Code that is newer, and scores of another suite, change nothing in the rows that are
    there.
    """
    old = [run(seed, recipe={"budget": "100steps"}) for seed in (1, 2)]
    longer = run(1, 60.0, recipe={"budget": "1000steps"})
    other = run(1, 10.0, recipe={"budget": "100steps"}, plugin=Code(sha256="9"))
    other = replace(
        other, run_id="other", scores=tuple(replace(one, suite="cxc") for one in other.scores)
    )
    found = since(old, [*old, longer, other]).rows
    assert {(row.where, row.suite.split()[0], row.now, row.differs) for row in found} == {
        ("unsupervised, built-in backbone, 1,000 steps", "sts", 60.0, "new"),
        ("unsupervised, built-in backbone", "cxc", 10.0, "new"),
    }


def test_one_more_table_with_rows_that_were_there_changes_nothing() -> None:
    """Untrained rows stand in the table of each length."""
    short = [run(seed, recipe={"budget": "100steps"}) for seed in (1, 2)]
    untrained = replace(run(1, 30.0, method="cls"), setting="none", seed=None)
    longer = run(1, 60.0, recipe={"budget": "1000steps"})

    def changed(old: list[RunRecord], new: list[RunRecord]) -> list[tuple[str, str]]:
        tables = []
        for records in (old, new):
            runs = [Run(one, Path("nowhere")) for one in records]
            tables.append([table_data(table) for table in make_tables(runs)])
        found = changes_since("v1", *tables, {one.run_id: one for one in (*old, *new)})
        return [(row.row, row.differs) for row in found.rows]

    before, after = [*short, untrained], [*short, untrained, longer]
    assert changed(before, after) == [("SimCSE", "new")]
    assert changed(after, before) == [("SimCSE", "no longer shown")]


def test_a_row_of_the_same_runs_is_the_same_row() -> None:
    """It is told apart by its text only since a second row has its name."""

    def table(rows: dict[str, str]) -> dict[str, Any]:
        made = []
        for corpus, run_id in rows.items():
            row: dict[str, Any] = {"method": "simcse", "variant": "", "setting": "unsupervised"}
            differs = {"corpus": corpus} if corpus else {}
            row |= {"backbone": "builtin", "differs": differs, "runs": [run_id]}
            made.append({**row, "cells": {"Avg.": {"mean": 50.0}}})
        place = {"suite": "sts", "protocol": "p/1", "text": None, "columns": ["STS12", "Avg."]}
        return {**place, "rows": made}

    def told(before: dict[str, str], now: dict[str, str]) -> list[tuple[str, str]]:
        found = changes_since("v1", [table(before)], [table(now)], {})
        return [(row.row, row.differs) for row in found.rows]

    both = {"builtin": "a", "wiki.txt.xz": "b"}
    assert told({"": "a"}, {"builtin": "a"}) == []
    assert told({"": "a"}, both) == [("SimCSE (wiki)", "new")]
    assert told({}, both) == [("SimCSE (builtin)", "new"), ("SimCSE (wiki)", "new")]
    assert told({"": "a", "x": "b"}, {"": "b"}) == [("SimCSE (before)", "no longer shown")]


def test_two_protocols_of_a_suite_are_told_apart() -> None:
    def table(protocol: str) -> dict[str, Any]:
        row = {"method": "ct", "variant": "", "setting": "unsupervised", "backbone": "builtin"}
        row |= {"differs": {}, "runs": ["a"], "cells": {"CxC-STS": {"mean": 50.0}}}
        place = {"suite": "cxc", "protocol": protocol, "text": None, "columns": ["CxC-STS"]}
        return {**place, "rows": [row]}

    new = changes_since("v1", [], [table("p/1"), table("q/1")], {}).rows
    assert [row.suite for row in new] == ["cxc CxC-STS, p/1", "cxc CxC-STS, q/1"]
    assert [row.suite for row in changes_since("v1", [], [table("p/1")], {}).rows] == [
        "cxc CxC-STS"
    ]


def test_an_untrained_start_is_not_taken_for_the_row_that_it_belongs_to() -> None:
    trained = [run(1, 60.0), run(2, 60.0)]
    start = run(1, 20.0, recipe={"budget": "0steps"})
    assert start.training is not None
    start = replace(start, training=replace(start.training, steps=0, best_step=0, dev_score=None))
    assert rows(since(trained, [*trained, replace(start, run_id="start")])) == []


def test_a_row_of_several_tables_has_the_verdict_of_the_first() -> None:
    def table(verdict: str) -> dict[str, Any]:
        cells = {"Avg.": {"mean": 50.0, "against": {"difference": 1.0, "verdict": verdict}}}
        row = {"method": "ct", "variant": "", "setting": "unsupervised", "backbone": "builtin"}
        place = {"suite": "sts", "protocol": "p/1", "text": None, "columns": ["Avg."]}
        return {**place, "rows": [{**row, "differs": {}, "runs": ["a"], "cells": cells}]}

    tables = [table("inconclusive"), table("better")]
    assert changes_since("v1", tables[:1], tables, {}).rows == ()


def test_a_verdict_that_moved_is_a_change() -> None:
    def table(verdict: str | None, rows: int) -> dict[str, Any]:
        against = {"difference": 1.0, "verdict": verdict} if verdict else None
        row = {
            "method": "ct",
            "variant": "",
            "setting": "unsupervised",
            "backbone": "builtin",
            "differs": {},
            "runs": ["a"],
            "cells": {"Avg.": {"mean": 50.0, "against": against}},
        }
        base = {**row, "method": "simcse", "cells": {"Avg.": None}}
        place = {"suite": "sts", "protocol": "p/1", "text": None, "columns": ["STS12", "Avg."]}
        return {**place, "rows": [row, *[base] * (rows - 1)]}

    def told(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
        return [row.differs for row in changes_since("v1", [before], [now], {}).rows]

    assert told(table("worse", 20), table("inconclusive", 27)) == [
        "verdict: worse among 20 rows before, inconclusive among 27 rows now"
    ]
    assert told(table(None, 2), table("better", 2)) == [
        "verdict: not tested among 2 rows before, better among 2 rows now"
    ]


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"seed": 2}, "seeds: 1 before, 2 now"),
        ({"recipe": {"epochs": 2}}, "epochs: 1 before, 2 now"),
        (
            {"recipe": {f"k{i}": 1 for i in range(5)}},
            ", ".join(f"k{i}: not set before, 1 now" for i in range(4))
            + " and k4: not set before, 1 now",
        ),
        ({"plugin": Code(sha256="9")}, "code"),
        ({"data": {"STS12": "9" * 64}}, "data"),
        ({"packages": {"torch": "9"}}, "libraries or hardware"),
    ],
)
def test_each_difference_between_two_versions_is_listed(
    changes: dict[str, Any], differs: str
) -> None:
    (row,) = since([run()], [run(value=51.0, **changes)]).rows
    assert (row.before, row.now, row.differs) == (50.0, 51.0, differs)
