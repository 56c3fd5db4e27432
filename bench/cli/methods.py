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
        click.echo(json.dumps(facts) if as_json else in_words(facts))


def _list(registry: Registry, as_json: bool) -> None:
    found = [registry[name] for name in registry]
    if as_json:
        rows = [{"name": p.name, "settings": p.cls.settings, "variants": list(p.cls.variants), "summary": p.cls.summary, "package": p.package} for p in found]
        click.echo(json.dumps(rows))
        return
    width = max(len(p.name) for p in found)
    for p in found:
        click.echo(f"{p.name:<{width}}  {', '.join(p.cls.settings):<26} {p.cls.summary}")


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


def in_words(facts: dict[str, Any]) -> str:
    lines = [f"{facts['name']}  ({facts['from']})", facts["summary"]]
    lines += [f"paper      {facts['paper']}"] if facts["paper"] else []
    lines += [f"settings   {', '.join(facts['settings'])}", f"variants   {', '.join(facts['variants']) or 'none'}", "", facts["about"], ""]
    lines.append("recipe keys (--set KEY=VALUE) with their defaults")
    for key, v in facts["keys"].items():
        told = "; ".join(part for part in (v["help"], v["source"], v["note"]) if part)
        lines.append(f"  {key:<22} {json.dumps(v['default']):<12} {told}")
    for recipe in facts["recipes"]:
        expect = f"; the paper's {recipe['expect']['task']} {recipe['expect']['value']}" if recipe["expect"] else ""
        lines += ["", f"recipe: {recipe['setting']}, {recipe['backbone']}{' +' + recipe['variant'] if recipe['variant'] else ''}{expect}"]
        for key, v in recipe["values"].items():
            lines.append(f"  {key:<22} {json.dumps(v['value']):<12} {v['source']}{'; ' + v['note'] if v['note'] else ''}")
    return "\n".join(lines)


def _check(name: str, pairs: tuple[str, ...], plugins: tuple[Path, ...], as_json: bool) -> None:
    from dataclasses import asdict

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
        for f in findings:
            click.echo(f"  {'ok    ' if f.passed else 'FAILED'}  {f.setting:<13} {f.check:<40} {f.seen}")
    if not as_json:
        click.echo(f"{failed} failed" if failed else "the contract is kept")
    if failed:
        raise click.exceptions.Exit(1)
