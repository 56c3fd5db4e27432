"""Everything about a method as tables, for a terminal of any width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bench.base.foreign_text import printable_lines
from bench.base.grid import Grid, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import value_text
from bench.cli.options import print_facts, say

Facts = Mapping[str, Any]
"""A method, as :func:`bench.cli.method_facts.describe_method` describes it; or a part of that."""

LONGEST = 24
"""Characters of a value in a table of recipes."""

LIMIT = "max_steps"
"""The value that a narrow table of recipes leaves out first: most recipes have none."""


def print_method(facts: Facts, *, everything: bool = False) -> None:
    """Print paper, settings, keys and recipes of a method; or ``everything``."""
    say(": ".join(filter(None, (facts["name"], facts["summary"]))))
    own_keys = [key for key, value in facts["keys"].items() if value["own"]]
    print_facts(
        [
            *((key, facts[key]) for key in ("paper", "trains")),
            ("package", facts["from"]),
            ("settings", ", ".join(facts["settings"])),
            ("variants", ", ".join(facts["variants"])),
            ("--set", ", ".join(own_keys)),
        ]
    )
    click.echo()
    if not everything:
        _print_grids([_recipe_grid(facts)])
        say(f"all recipe keys, equations and sources: bench methods {facts['name']} --all")
        return
    click.echo("\n".join([*printable_lines(facts["about"]), ""]))
    _print_grids(
        [
            _variant_grid(facts),
            _key_grid(facts),
            _recipe_grid(facts),
            _disagreement_grid(facts),
        ]
    )


def _print_grids(grids: list[Grid]) -> None:
    """Print the tables that have rows."""
    for table in grids:
        if table.rows:
            print_grid(table)
            click.echo()


def _variant_grid(facts: Facts) -> Grid:
    rows = []
    for name, changes in facts["variants"].items():
        for key, value in changes.items():
            rows.append((name, key, value_text(value)))
    columns = ("variant", "key", GridColumn("value", wrap=LONGEST))
    return grid(columns, rows, title="what variants change (METHOD+VARIANT)")


def _key_grid(facts: Facts) -> Grid:
    """Lay out a row for each recipe key: its default, its meaning, and the sources."""
    rows = []
    for key, value in facts["keys"].items():
        source = filter(None, (value["help"], value["source"], value["note"]))
        rows.append((key, value_text(value["default"]), "; ".join(source)))
    columns = ("key", GridColumn("default", wrap=LONGEST), GridColumn("source", wrap=LONGEST))
    return grid(columns, rows, title="recipe keys (--set KEY=VALUE); the method's come last")


def _recipe_grid(facts: Facts) -> Grid:
    """Lay out a row for each recipe, with the short values that differ between recipes.

    Recipes of the built-in backbone come last.
    """
    recipes = sorted(facts["recipes"], key=lambda recipe: recipe["backbone"] == "builtin")
    differing = []
    for key in facts["keys"]:
        texts = {_value(recipe, key) for recipe in recipes}
        if len(texts) > 1 and max(map(len, texts)) <= LONGEST:
            differing.append(key)
    rows = []
    for recipe in recipes:
        expected = recipe["expect"]
        rows.append(
            (
                recipe["setting"],
                " +".join(filter(None, (recipe["backbone"], recipe["variant"]))),
                recipe["corpus"] or "",
                f"{expected['value']:.2f}" if expected else "",
                *(_value(recipe, key) for key in differing),
            )
        )
    command = f"bench run {facts['name']} --backbone NAME --setting NAME --dry-run --all"
    return grid(
        [
            GridColumn("setting", drop=2),
            GridColumn("recipe", wrap=18),
            GridColumn("corpus", wrap=14, drop=1),
            GridColumn("published", right=True),
            *(GridColumn(key, right=True, drop=4 if key == LIMIT else 3) for key in differing),
        ],
        rows,
        title="recipes",
        notes=[f"with sources: {command}"],
    )


def _value(recipe: Facts, key: str) -> str:
    """Return the value of a recipe as text; "" if it has none."""
    if key not in recipe["values"]:
        return ""
    return value_text(recipe["values"][key]["value"])


def _disagreement_grid(facts: Facts) -> Grid:
    return grid(
        [GridColumn(name, wrap=16) for name in ("topic", "paper", "code", "here")],
        [(d["topic"], d["paper"], d["code"], d["use"]) for d in facts["disagreements"]],
        title="where paper and code disagree, and what bench does",
    )
