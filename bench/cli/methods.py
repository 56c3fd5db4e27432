"""``bench methods``: list the methods, show one, or check that one keeps the contract."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError
from bench.cli.check import run_checks
from bench.cli.method_facts import describe_method
from bench.cli.method_tables import print_method
from bench.cli.options import json_option, json_text, plugin_option, print_grid
from bench.run.config import split_variant
from bench.run.plugins import Registry
from bench.run.recipe_files import read_recipes
from bench.run.recipes import check_variant, variants_of
from bench.session.session import known_methods
from bench.show.grid import GridColumn, grid


@click.command()
@click.argument("name", required=False)
@click.option(
    "--check",
    "check_name",
    metavar="NAME-or-FILE",
    help="Run the conformance suite on a method or on a plugin file.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --check: recipe values that the method needs.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With NAME: also all recipe keys, equations, sources, templates, printed results.",
)
@plugin_option
@json_option
def methods(
    name: str | None,
    check_name: str | None,
    pairs: tuple[str, ...],
    plugins: tuple[Path, ...],
    as_json: bool,
    everything: bool,
) -> None:
    """List the methods, show one, or check that one keeps the contract.

    \b
    Example:  bench methods simcse
              bench methods promcse --all
              bench methods --check my_method.py
    """
    if check_name:
        run_checks([check_name], pairs, plugins, as_json=as_json)
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
                "package": plugin.package,
            }
        )
    if as_json:
        click.echo(json_text(methods))
        return
    rows = []
    for facts in sorted(methods, key=lambda facts: facts["settings"] == ("none",)):
        shown = [facts[key] for key in ("name", "year", "family", "summary")]
        rows.append([*shown, ", ".join(facts["settings"])])
    columns = (
        "method",
        "year",
        GridColumn("family", wrap=12),
        GridColumn("summary", wrap=24),
        GridColumn("settings", wrap=12, drop=1),
    )
    print_grid(grid(columns, rows, notes=["one method: bench methods NAME"]))


def year_of(paper: str) -> str:
    """Return the year in a reference, else the year of its arXiv number, else ""."""
    year = re.search(r"\b20\d\d\b(?!\.)", paper)
    if year:
        return year.group()
    arxiv = re.search(r"arXiv (\d\d)\d\d\.", paper)
    return "20" + arxiv.group(1) if arxiv else ""
