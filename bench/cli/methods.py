"""``bench methods``: what can be run, where each recipe value comes from, and the conformance suite."""

from __future__ import annotations

from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.cli.check import run_checks
from bench.cli.columns import print_grid
from bench.cli.method_card import describe, show
from bench.cli.options import json_option, json_text, plugin_option
from bench.cli.planning import known_methods
from bench.run.config import split_variant
from bench.run.plugins import Registry
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
        run_checks([check_name], pairs, plugins, as_json=as_json)
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
        (plugin.name, plugin.cls.summary, ", ".join(plugin.cls.settings))
        for plugin in sorted(plugins, key=lambda plugin: plugin.cls.settings == ("none",))
    ]
    columns = ("method", Column("summary", wrap=24), Column("settings", wrap=12, drop=1))
    print_grid(grid(columns, listed, notes=["everything about one: bench methods NAME"]))
