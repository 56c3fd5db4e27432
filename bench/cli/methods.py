"""``bench methods``: list the methods, or show one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.grid import Grid, GridCell, GridColumn, GridRow, grid, indented
from bench.base.printing import print_grid
from bench.base.text import plural
from bench.cli.method_facts import describe_method
from bench.cli.method_tables import print_method
from bench.cli.options import json_option, json_text, plugin_option, say
from bench.method.config import split_variant
from bench.method.plugins import Registry
from bench.method.recipe_files import read_recipes
from bench.method.recipes import check_variant, variants_of
from bench.run.session import known_methods

OTHER_FAMILY = "other"
"""Of methods that name no family."""

COLUMNS = ("method", GridColumn("year", drop=1), "trains", GridColumn("summary", wrap=24))


@click.command()
@click.argument("name", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With NAME: also all recipe keys, equations and sources.",
)
@plugin_option
@json_option
def methods(
    name: str | None,
    plugins: tuple[Path, ...],
    as_json: bool,
    everything: bool,
) -> None:
    """List the methods, or show one; bench check tests one.

    \b
    Example:  bench methods simcse
              bench methods promcse --all
    """
    if name is None:
        if everything:
            raise BenchError("--all needs a method", "bench methods NAME --all")
        _list_methods(known_methods(plugins), as_json)
        return
    method, variant = split_variant(name)
    plugin = known_methods(plugins)[method]
    check_variant(plugin.cls, variant)
    facts = describe_method(plugin)
    if as_json:
        click.echo(json_text(facts))
    else:
        print_method(facts, everything=everything)


def _list_methods(registry: Registry, as_json: bool) -> None:
    methods: list[dict[str, Any]] = []
    for plugin in (registry[name] for name in registry):
        methods.append(
            {
                "name": plugin.name,
                "year": year_of(plugin.cls.paper),
                "family": read_recipes(plugin.folder, plugin.name).family,
                "settings": plugin.cls.settings,
                "variants": list(variants_of(plugin.cls)),
                "summary": plugin.cls.summary,
                "code_version": plugin.cls.code_version,
                "package": plugin.package,
            }
        )
    if as_json:
        click.echo(json_text(methods))
        return
    say(
        f"{plural(len(methods), 'method')}.  u: unsupervised   s: supervised   "
        "-: nothing is trained"
    )
    print_grid(_methods_grid(methods), blank=True)
    say(
        "bench methods NAME: paper, recipe, variants, and the source of every value",
        hang=2,
        blank=True,
    )


def _methods_grid(methods: Sequence[dict[str, Any]]) -> Grid:
    """Lay out a line for each method below its family, the oldest first; families that train come
    first.
    """
    families: dict[str, list[dict[str, Any]]] = {}
    for facts in methods:
        families.setdefault(facts["family"] or OTHER_FAMILY, []).append(facts)
    rows: list[GridRow | list[GridCell | str]] = []
    for family in sorted(families, key=lambda family: _family_order(family, families[family])):
        rows.append([GridCell(text=family, emphasis="strong"), "", "", ""])
        of_family = families[family]
        for facts in sorted(of_family, key=lambda facts: (facts["year"] or "9999", facts["name"])):
            letters = _setting_letters(facts["settings"])
            rows.append(indented([facts["name"], facts["year"], letters, facts["summary"]]))
    return grid(COLUMNS, rows)


def _family_order(family: str, methods: Sequence[dict[str, Any]]) -> tuple[bool, bool, int, str]:
    """Sort the largest family of trained methods first, and what has no family last."""
    is_trained = any(facts["settings"] != ("none",) for facts in methods)
    return not is_trained, family == OTHER_FAMILY, -len(methods), family


def _setting_letters(settings: Collection[str]) -> str:
    """Return "u", "s" or "u s", the settings that a method trains in, or "-"."""
    letters = [name[0] for name in ("unsupervised", "supervised") if name in settings]
    return " ".join(letters) or "-"


def year_of(paper: str) -> str:
    """Return the year in a reference, else the year of its arXiv number, else ""."""
    year = re.search(r"\b20\d\d\b(?!\.)", paper)
    if year:
        return year.group()
    arxiv = re.search(r"arXiv (\d\d)\d\d\.", paper)
    return "20" + arxiv.group(1) if arxiv else ""
