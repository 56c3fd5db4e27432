"""The printed hyperparameters are those that others typed from the papers, and our recipes have
them.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bench.method.plugins import discover
from bench.method.recipe_files import read_recipes
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
def test_a_row_is_the_reference_files(cells: list[PrintedHyperparameter], shared: Path) -> None:
    """Every value there that names the table, also as what another source says, and no other."""
    text = (shared / "reference" / "recipes.json").read_text(encoding="utf-8")
    first, variant = cells[0], "mlm" if values_of(cells).get("mlm") else ""
    place = (first.paper, variant, first.setting, first.backbone)
    (recipe,) = [
        one
        for one in json.loads(text)["recipes"]
        if (one["method"], one["variant"], one["setting"], one["backbone"]) == place
    ]
    of_table = {}
    for key, stated in recipe["parameters"].items():
        for said in (stated, *stated.get("other", [])):
            if first.source in [source.strip() for source in said["source"].split(";")]:
                of_table[key] = said["value"]
    assert values_of(cells) == of_table


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


@pytest.mark.parametrize("cells", ROWS, ids=name_row)
def test_our_recipe_has_the_values_of_the_row(cells: list[PrintedHyperparameter]) -> None:
    """All 68 cells today. One that differs belongs into the recipe's list of disagreements, and
    here.
    """
    first = cells[0]
    plugin = discover(())[first.paper]
    place = (first.setting, first.backbone, "")
    (recipe,) = [
        one
        for one in read_recipes(plugin.folder, plugin.name).recipes
        if (one.setting, one.backbone, one.variant) == place
    ]
    assert values_of(cells) == {cell.key: recipe.values[cell.key].value for cell in cells}
    for cell in cells:
        assert cell.source in recipe.values[cell.key].source, cell
