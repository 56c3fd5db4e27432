"""The printed hyperparameters are those that were typed from the papers a second time."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bench.papers import (
    PrintedHyperparameter,
    contents,
    hyperparameters,
    printed_hyperparameters,
)

TYPED = Path(__file__).parents[1] / "support" / "data" / "printed_recipes.json"
FOUR = ("promcse", "dcpcse", "conpvp", "focal-infonce")
ROWS = [
    list(cells)
    for _, cells in groupby(
        hyperparameters(), lambda cell: (cell.source, cell.backbone, cell.setting)
    )
]


def name_row(cells: list[PrintedHyperparameter]) -> str:
    return f"{cells[0].source}, {cells[0].setting}, {cells[0].backbone}"


def values_of(cells: list[PrintedHyperparameter]) -> dict[str, Any]:
    return {cell.key: cell.value for cell in cells}


def test_every_table_of_hyperparameters_of_the_four_papers_has_its_cells() -> None:
    cells = {
        part.name: len(printed_hyperparameters(part))
        for part in contents()
        if part.paper in FOUR and part.shows.startswith("hyperparameters")
    }
    assert cells == {
        "promcse:6": 12,
        "dcpcse:3": 20,
        "dcpcse:4": 20,
        "conpvp:2": 8,
        "focal-infonce:1": 8,
    }
    assert sum(cells.values()) == len(hyperparameters())


@pytest.mark.parametrize("cells", ROWS, ids=name_row)
def test_a_row_is_the_one_typed_for_the_tests_of_recipes(
    cells: list[PrintedHyperparameter],
) -> None:
    first = cells[0]
    where = first.source.replace("Table", "table")
    (typed,) = [
        dict(zip(table["columns"], values, strict=False)) | table["all"]
        for table in json.loads(TYPED.read_text(encoding="utf-8"))["tables"]
        if (table["where"], table["setting"]) == (where, first.setting)
        for backbone, *values in table["rows"]
        if backbone == first.backbone
    ]
    assert values_of(cells) == {cell.key: typed[cell.key] for cell in cells}
