"""The table "Changed since vN": which rows it has, and what their runs differ in."""

from __future__ import annotations

from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.board.board import Changes, changes_since
from bench.runs import Code, RunRecord


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


def rows(changes: Changes) -> list[tuple[str, str, float | None, float | None, str]]:
    return [(row.row, row.suite, row.before, row.now, row.differs) for row in changes.rows]


def test_the_same_runs_and_the_noise_of_a_library_change_nothing() -> None:
    assert changes_since("v1", [run()], [run()]).rows == ()
    assert changes_since("v1", [run()], [run(value=50.0 + 1e-9)]).rows == ()


def test_new_rows_rows_that_are_gone_and_seeds() -> None:
    old = [run(1), run(1, method="ct")]
    new = [run(1), run(2, 52.0), run(1, 40.0, method="diffcse")]
    assert rows(changes_since("v1", old, new)) == [
        ("diffcse", "sts Avg.", None, 40.0, "new"),
        ("simcse", "sts Avg.", 50.0, 51.0, "seeds: 1 before, 1-2 now"),
        ("ct", "sts Avg.", 50.0, None, "no longer shown"),
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
def test_what_differs(changes: dict[str, Any], differs: str) -> None:
    (row,) = changes_since("v1", [run()], [run(value=51.0, **changes)]).rows
    assert (row.before, row.now, row.differs) == (50.0, 51.0, differs)
