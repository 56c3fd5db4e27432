"""``bench methods``: what can be run, where each recipe value comes from, and the conformance suite."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import json_option, plugin_option

if TYPE_CHECKING:
    from bench.plugins import Plugin, Registry


@click.command()
@click.argument("name", required=False)
@click.option("--check", "check_name", metavar="NAME-or-FILE", help="Run the conformance suite on a method or on a plugin file.")
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="With --check: recipe values that the method needs.")
@plugin_option
@json_option
def methods(name: str | None, check_name: str | None, pairs: tuple[str, ...], plugins: tuple[Path, ...], as_json: bool) -> None:
    """List the methods, show one, or check that one keeps the contract.

    \b
    Example:  bench methods simcse
              bench methods --check my_method.py
    """
    from bench.plugins import discover

    if check_name:
        _check(check_name, pairs, plugins, as_json)
        return
    registry = discover(plugins)
    for warning in registry.warnings:
        click.echo(f"warning: {warning}", err=True)
    if name is None:
        _list(registry, as_json)
    else:
        facts = describe(registry[name])
        if as_json:
            click.echo(json.dumps(facts))
        else:
            show(facts)


def _list(registry: Registry, as_json: bool) -> None:
    found = [registry[name] for name in registry]
    if as_json:
        rows = [
            {
                "name": p.name,
                "settings": p.cls.settings,
                "variants": list(p.cls.variants),
                "summary": p.cls.summary,
                "package": p.package,
            }
            for p in found
        ]
        click.echo(json.dumps(rows))
        return
    from bench.cli.columns import print_columns

    print_columns(
        [(p.name, ", ".join(p.cls.settings), p.cls.summary) for p in found], headings=("method", "settings", "what it is")
    )
    click.echo("\neverything about one: bench methods NAME")


def describe(plugin: Plugin) -> dict[str, Any]:
    """Everything that the plugin says of itself: as data, for ``--json`` and for the terminal."""
    from bench.recipes import HELP, TRAINING, entries, merge

    cls = plugin.cls
    trained = cls.settings != ("none",)
    recipe = merge(cls, None, "", {}, trained=trained).values_with_source()
    module_doc = inspect.getdoc(plugin.module) or ""
    return {
        "name": plugin.name, "summary": cls.summary, "paper": cls.paper, "settings": list(cls.settings),
        "variants": {v: dict(changes) for v, changes in cls.variants.items()}, "from": f"{plugin.package} {plugin.version}".strip(),
        "about": inspect.getdoc(cls) if cls.__doc__ and cls.__doc__ != getattr(cls.__mro__[1], "__doc__", None) else module_doc,
        "keys": {k: {"default": v.value, "source": v.source, "note": v.note, "help": HELP.get(k) if k in TRAINING else None} for k, v in recipe.items()},
        "recipes": [
            {"setting": e.setting, "backbone": e.backbone, "variant": e.variant, "corpus": e.corpus, "expect": dict(e.expect) if e.expect else None,
             "values": {k: {"value": v.value, "source": v.source, "note": v.note} for k, v in e.values.items()}}
            for e in entries(plugin.folder, plugin.name)
        ],
    }  # fmt: skip


def show(facts: dict[str, Any]) -> None:
    from bench.cli.columns import print_columns
    from bench.tables.words import visible

    head = [("settings", ", ".join(facts["settings"])), ("variants", ", ".join(facts["variants"]) or "none")]
    head += [("paper", facts["paper"])] if facts["paper"] else []
    click.echo(f"{facts['name']}  ({facts['from']})")
    print_columns([("", facts["summary"]), *head])
    click.echo("\n" + "\n".join(visible(line, limit=None) for line in facts["about"].splitlines()) + "\n")
    click.echo("recipe keys (--set KEY=VALUE), their defaults, and where these come from")
    print_columns(
        [(k, json.dumps(v["default"]), _told(v["help"], v["source"], v["note"])) for k, v in facts["keys"].items()], indent=2
    )
    for recipe in facts["recipes"]:
        expect = f"; the paper's {recipe['expect']['task']} {recipe['expect']['value']}" if recipe["expect"] else ""
        variant = f" +{recipe['variant']}" if recipe["variant"] else ""
        click.echo(f"\nrecipe for {recipe['backbone']}{variant}, {recipe['setting']}, corpus {recipe['corpus']}{expect}")
        print_columns([(k, json.dumps(v["value"]), _told(v["source"], v["note"])) for k, v in recipe["values"].items()], indent=2)


def _told(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)


def _check(name: str, pairs: tuple[str, ...], plugins: tuple[Path, ...], as_json: bool) -> None:
    from dataclasses import asdict

    from bench.cli.columns import print_columns
    from bench.cli.run import parse_overrides
    from bench.conformance import check
    from bench.plugins import discover, from_file

    found = from_file(Path(name)) if name.endswith(".py") else [discover(plugins)[name]]
    failed = 0
    for plugin in found:
        findings = check(plugin, parse_overrides(pairs, None))
        failed += sum(not f.passed for f in findings)
        if as_json:
            click.echo(json.dumps({"method": plugin.name, "findings": [asdict(f) for f in findings]}))
            continue
        click.echo(plugin.name)
        print_columns([("ok" if f.passed else "FAILED", f.setting, f.check, f.seen) for f in findings], indent=2)
    if not as_json:
        click.echo(f"{failed} failed" if failed else "the contract is kept")
    if failed:
        raise click.exceptions.Exit(1)
