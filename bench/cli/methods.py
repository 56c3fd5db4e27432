"""``bench methods``: what can be run, where each recipe value comes from, and the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.base.errors import BenchError
from bench.cli.columns import as_findings, end_check, print_columns, show_results
from bench.cli.options import (
    json_option,
    json_text,
    parse_overrides,
    plugin_option,
)
from bench.cli.planning import known_methods

if TYPE_CHECKING:
    from bench.run.plugins import Plugin, Registry


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
    "--backbone",
    help="With NAME: only its recipes for this backbone, each value with its source and notes.",
)
@click.option("--about", is_flag=True, help="With NAME: the paper's idea and equations.")
@click.option(
    "--recipes",
    is_flag=True,
    help="With NAME: variants, recipe keys, and every recipe with its sources.",
)
@click.option(
    "--templates", is_flag=True, help="With NAME: the templates that its sentences are put into."
)
@click.option(
    "--disagreements",
    is_flag=True,
    help="With NAME: where paper and authors' code disagree, and what is done here.",
)
@click.option("--numbers", is_flag=True, help="With NAME: what the papers print.")
@click.option("--all", "everything", is_flag=True, help="With NAME: all of these.")
@click.option(
    "--keys", is_flag=True, help="What the recipe keys mean that all trained methods share."
)
@plugin_option
@json_option
def methods(
    name: str | None,
    check_name: str | None,
    pairs: tuple[str, ...],
    backbone: str | None,
    keys: bool,
    plugins: tuple[Path, ...],
    as_json: bool,
    everything: bool,
    **parts: bool,
) -> None:
    """List the methods, show one, or check that one keeps the contract.

    \b
    Example:  bench methods simcse
              bench methods simcse --recipes
              bench methods promcse+eh --recipes
              bench methods simcse --backbone bert-base-uncased
              bench methods --check my_method.py
    """
    from bench.run.plan import check_methods, split_variant

    if keys:
        from bench.cli.method_card import show_shared_keys

        show_shared_keys()
        return
    if check_name:
        _check(check_name, pairs, plugins, as_json)
        return
    wanted = [part for part, asked in parts.items() if asked or everything]
    if name is None and (wanted or backbone):
        option = f"--backbone {backbone}"
        if wanted:
            option = "--all" if everything else f"--{wanted[0]}"
        raise BenchError(
            f"{option} is of one method", f"bench methods NAME {option}; bench methods lists them"
        )
    if name is not None:
        check_methods([name], plugins)
    registry = known_methods(plugins)
    if name is None:
        _list(registry, as_json)
    else:
        from bench.cli.method_card import describe, show

        method, variant = split_variant(name)
        facts = describe(registry[method], variant)
        if as_json:
            click.echo(json_text(facts))
        else:
            show(facts, backbone, wanted)


def _list(registry: Registry, as_json: bool) -> None:
    from bench.run.recipes import variants_of

    plugins = [registry[name] for name in registry]
    if as_json:
        rows = [
            {
                "name": p.name,
                "settings": p.cls.settings,
                "variants": list(variants_of(p.cls)),
                "summary": p.cls.summary,
                "package": p.package,
            }
            for p in plugins
        ]
        click.echo(json_text(rows))
        return
    for settings in dict.fromkeys(
        p.cls.settings for p in sorted(plugins, key=lambda p: p.cls.settings == ("none",))
    ):
        click.echo(
            "nothing is trained (setting none)" if settings == ("none",) else ", ".join(settings)
        )
        print_columns(
            [(p.name, p.cls.summary + _variants(p)) for p in plugins if p.cls.settings == settings],
            indent=2,
        )
        click.echo()
    click.echo("everything about one: bench methods NAME")


def _variants(plugin: Plugin) -> str:
    from bench.run.recipes import variants_of

    variants = variants_of(plugin.cls)
    return f" [variants: {', '.join(variants)}]" if variants else ""


def _check(name: str, pairs: tuple[str, ...], plugins: tuple[Path, ...], as_json: bool) -> None:
    from bench.run.plan import check_methods
    from bench.run.plugins import discover

    overrides = parse_overrides(pairs)
    if not name.endswith(".py"):
        check_methods([name], plugins)
    elif not Path(name).is_file():
        raise BenchError(
            f"--check {name}: no such file",
            "the name of a method (bench methods), or a Python file that defines one",
        )

    from bench.run.conformance import check

    if name.endswith(".py"):
        checked = [
            plugin
            for plugin in discover([Path(name)]).plugins.values()
            if plugin.package == str(Path(name))
        ]
    else:
        checked = [discover(plugins)[name]]
    if not checked:
        raise BenchError(
            f"--check {name}: it defines a suite and no method", f"bench suites --check {name}"
        )
    failed = 0
    for plugin in checked:
        results = check(plugin, overrides)
        failed += sum(result.failed for result in results)
        if as_json:
            click.echo(
                json_text({"method": plugin.name, "findings": as_findings(results, "setting")})
            )
        else:
            show_results(plugin.name, results)
    end_check(failed, as_json)
