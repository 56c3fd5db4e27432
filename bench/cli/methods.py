"""``bench methods``: what can be run, where each recipe value comes from, and the conformance suite."""

from __future__ import annotations

import re
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.cli.columns import end_check, print_grid
from bench.cli.method_card import describe, show
from bench.cli.options import json_option, json_text, parse_overrides, plugin_option
from bench.cli.planning import known_methods
from bench.run.config import split_variant
from bench.run.plugins import Registry, discover
from bench.run.recipe_file import read
from bench.run.recipes import check_variant, variants_of
from bench.show.grid import Column, grid


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
        _check(check_name, pairs, plugins, as_json)
        return
    if name is None:
        if everything:
            raise BenchError("--all needs a method", "bench methods NAME --all")
        _list(known_methods(plugins), as_json)
        return
    method, variant = split_variant(name)
    plugin = known_methods(plugins)[method]
    check_variant(plugin.cls, variant)
    facts = describe(plugin)
    if as_json:
        click.echo(json_text(facts))
    else:
        show(facts, everything=everything)


def _list(registry: Registry, as_json: bool) -> None:
    plugins = [registry[name] for name in registry]
    if as_json:
        rows = [
            {
                "name": plugin.name,
                "year": year_of(plugin.cls.paper),
                "family": read(plugin.folder, plugin.name).family,
                "settings": plugin.cls.settings,
                "variants": list(variants_of(plugin.cls)),
                "summary": plugin.cls.summary,
                "package": plugin.package,
            }
            for plugin in plugins
        ]
        click.echo(json_text(rows))
        return
    listed = [
        (
            plugin.name,
            year_of(plugin.cls.paper),
            read(plugin.folder, plugin.name).family,
            plugin.cls.summary,
            ", ".join(plugin.cls.settings),
        )
        for plugin in sorted(plugins, key=lambda plugin: plugin.cls.settings == ("none",))
    ]
    about = (Column("family", wrap=12), Column("summary", wrap=24))
    columns = ("method", "year", *about, Column("settings", wrap=12, drop=1))
    print_grid(grid(columns, listed, notes=["everything about one: bench methods NAME"]))


def year_of(paper: str) -> str:
    """The year that a reference names, else that of its arXiv number; "" where it has neither."""
    if year := re.search(r"\b20\d\d\b(?!\.)", paper):
        return year.group()
    arxiv = re.search(r"arXiv (\d\d)\d\d\.", paper)
    return "20" + arxiv.group(1) if arxiv else ""


def _check(name: str, pairs: tuple[str, ...], plugins: tuple[Path, ...], as_json: bool) -> None:
    from bench.run.conformance import check

    overrides = parse_overrides(pairs)
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise BenchError(
                f"--check {name}: no such file",
                "the name of a method (bench methods), or a Python file that defines one",
            )
        known = discover([Path(name)]).plugins.values()
        checked = [plugin for plugin in known if plugin.package == str(Path(name))]
    else:
        checked = [discover(plugins)[name]]
    if not checked:
        raise BenchError(
            f"--check {name}: it defines a suite and no method", f"bench suites --check {name}"
        )
    results = {plugin.name: check(plugin, overrides) for plugin in checked}
    end_check(results, "method", "setting", as_json)
