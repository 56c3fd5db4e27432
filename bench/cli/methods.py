"""``bench methods``: all methods; everything about one, as data or as tables for a terminal of any width; and the conformance suite."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from bench.base.errors import BenchError
from bench.base.text import lines, plural, value_text
from bench.cli.check import run_checks
from bench.cli.options import json_option, json_text, plugin_option, print_facts, print_grid, say
from bench.method import Method
from bench.references import results
from bench.run.config import split_variant
from bench.run.plan import learns
from bench.run.plugins import Plugin, Registry
from bench.run.recipes import (
    HELP,
    TRAINING,
    Entry,
    check_variant,
    merge,
    read,
    variants_of,
    whole_entry,
)
from bench.session.needs import known_methods
from bench.show.grid import Column, Grid, grid

Facts = Mapping[str, Any]
LONGEST = 24  # characters of a value in a table of recipes


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
    rows: list[dict[str, Any]] = [
        {
            "name": plugin.name,
            "year": year_of(plugin.cls.paper),
            "family": read(plugin.folder, plugin.name).family,
            "settings": plugin.cls.settings,
            "variants": list(variants_of(plugin.cls)),
            "summary": plugin.cls.summary,
            "package": plugin.package,
        }
        for plugin in (registry[name] for name in registry)
    ]
    if as_json:
        click.echo(json_text(rows))
    else:
        shown = ("name", "year", "family", "summary")
        print_grid(
            grid(
                [
                    "method",
                    "year",
                    Column("family", wrap=12),
                    Column("summary", wrap=24),
                    Column("settings", wrap=12, drop=1),
                ],
                [
                    (*(row[key] for key in shown), ", ".join(row["settings"]))
                    for row in sorted(rows, key=lambda row: row["settings"] == ("none",))
                ],
                notes=["one method: bench methods NAME"],
            )
        )


def year_of(paper: str) -> str:
    """The year in a reference, else the year of its arXiv number; "" if it has neither."""
    if year := re.search(r"\b20\d\d\b(?!\.)", paper):
        return year.group()
    arxiv = re.search(r"arXiv (\d\d)\d\d\.", paper)
    return "20" + arxiv.group(1) if arxiv else ""


# --- everything about one method, as tables ---


def show(facts: Facts, *, everything: bool = False) -> None:
    """Paper, settings, keys and recipes; or ``everything``."""
    say(": ".join(filter(None, (facts["name"], facts["summary"]))))
    print_facts(
        [
            *((key, facts[key]) for key in ("paper", "trains", "from")),
            ("settings", ", ".join(facts["settings"])),
            ("--variant", ", ".join(facts["variants"])),
            ("--set", ", ".join(key for key, value in facts["keys"].items() if value["own"])),
        ]
    )
    click.echo()
    if everything:
        click.echo("\n".join([*lines(facts["about"]), ""]))
        show_part(facts, "recipes", _disagreements(facts), _printed(facts), *_templates(facts))
    else:
        show_part(facts, "", _recipes(facts))
        click.echo(
            "all recipe keys, equations, sources, templates, printed results: "
            f"bench methods {facts['name']} --all"
        )


def show_part(facts: Facts, part: str, *more: Grid) -> None:
    """The "recipes" or the "templates" of a method, as a paper's table of them; and ``more`` tables. Those without rows are left out."""
    grids = {
        "templates": _templates(facts),
        "recipes": [_variants(facts), _keys(facts), _recipes(facts)],
    }
    for table in [*grids.get(part, ()), *more]:
        if table.rows:
            print_grid(table)
            click.echo()


def _variants(facts: Facts) -> Grid:
    return grid(
        ("variant", "key", Column("value", wrap=LONGEST)),
        [
            (name, key, value_text(value))
            for name, changes in facts["variants"].items()
            for key, value in changes.items()
        ],
        title="what variants change (METHOD+VARIANT)",
    )


def _keys(facts: Facts) -> Grid:
    """A row for each recipe key: its default, its meaning, the source of the default, and what other sources say."""
    return grid(
        ("key", Column("default", wrap=LONGEST), Column("source", wrap=LONGEST)),
        [
            (
                key,
                value_text(value["default"]),
                "; ".join(filter(None, (value["help"], value["source"], value["note"]))),
            )
            for key, value in facts["keys"].items()
        ],
        title="recipe keys (--set KEY=VALUE); the method's come last",
    )


def _recipes(facts: Facts) -> Grid:
    """A row for each recipe, with the short values in which recipes differ; the built-in backbone comes last."""
    recipes = sorted(facts["recipes"], key=lambda recipe: recipe["backbone"] == "builtin")
    differing = [
        key
        for key in facts["keys"]
        for texts in [{_value(recipe, key) for recipe in recipes}]
        if len(texts) > 1 and max(map(len, texts)) <= LONGEST
    ]
    return grid(
        [
            Column("setting", drop=2),
            Column("recipe", wrap=18),
            Column("corpus", wrap=14, drop=1),
            Column("printed Avg.", right=True),
            *(Column(key, right=True, drop=3) for key in differing),
        ],
        [
            (
                recipe["setting"],
                " +".join(filter(None, (recipe["backbone"], recipe["variant"]))),
                recipe["corpus"] or "",
                f"{recipe['expect']['value']:.2f}" if recipe["expect"] else "",
                *(_value(recipe, key) for key in differing),
            )
            for recipe in recipes
        ],
        title="recipes",
        notes=[
            f"with sources: bench run {facts['name']} --backbone NAME --setting NAME --dry-run --all"
        ],
    )


def _value(recipe: Facts, key: str) -> str:
    return value_text(recipe["values"][key]["value"]) if key in recipe["values"] else ""


def _templates(facts: Facts) -> list[Grid]:
    return [
        grid(
            ("", Column("{s} is the sentence, {m} the mask", wrap=LONGEST)),
            [(str(number), text) for number, text in enumerate(texts, 1)],
            title=f"{plural(len(texts), f'{kind} template')}, --set templates={source}",
        )
        for source, kinds in facts["templates"].items()
        for kind, texts in kinds.items()
    ]


def _disagreements(facts: Facts) -> Grid:
    return grid(
        [Column(name, wrap=16) for name in ("topic", "paper", "code", "here")],
        [(d["topic"], d["paper"], d["code"], d["use"]) for d in facts["disagreements"]],
        title="where paper and code disagree, and what bench does",
    )


def _printed(facts: Facts) -> Grid:
    """The averages that papers print."""
    names = ("metric", "setting", "backbone", "variant", "printed", "paper", "table")
    return grid(
        [
            "metric",
            "setting",
            Column("backbone", wrap=12),
            Column("variant", wrap=12),
            Column("Avg.", right=True),
            "paper",
            "table",
        ],
        sorted(
            {
                tuple(one[name] for name in names)
                for one in facts["references"]
                if one["task"] == "Avg."
            }
        ),
        title="averages that papers print, under their names of variants",
        notes=[f"every printed number: bench methods {facts['name']} --json, under references"],
    )


# --- the same as data: what ``bench methods NAME --json`` prints, and the tables above lay out ---


def describe(plugin: Plugin) -> dict[str, Any]:
    """Everything about a method. ``about`` is the docstring of the class or else of its module; ``keys`` are the recipe keys with their
    defaults; the ``values`` of a recipe are complete, merged as for a run."""
    cls, file = plugin.cls, read(plugin.folder, plugin.name)
    keys = merge(
        cls, None, "", {}, trained=any(learns(cls, setting) for setting in cls.settings)
    ).values_with_source()
    printed = file.printed.get("method", plugin.name)
    return {
        "name": plugin.name,
        "summary": cls.summary,
        "paper": cls.paper,
        "settings": list(cls.settings),
        "trains": cls.trains,
        "from": f"{plugin.package} {plugin.version}".strip(),
        "about": inspect.cleandoc(cls.__dict__.get("__doc__") or plugin.module.__doc__ or ""),
        "variants": {
            name: {key: getattr(value, "value", value) for key, value in changes.items()}
            for name, changes in variants_of(cls).items()
        },
        "keys": {
            key: {
                "default": value.value,
                "source": value.source,
                "note": value.note,
                "help": HELP.get(key),
                "own": key in cls.defaults,
            }
            for key, value in keys.items()
            if key in cls.defaults or key in TRAINING
        },
        "recipes": [_as_data(cls, entry) for entry in file.recipes],
        "templates": _template_lists(plugin.module),
        "disagreements": [asdict(one) for one in file.disagreements],
        "references": [asdict(result) for result in results(printed)] if printed else [],
    }


def _as_data(cls: type[Method], entry: Entry) -> dict[str, Any]:
    """A recipe, merged as for a run."""
    trained, where = learns(cls, entry.setting), (entry.setting, entry.backbone, entry.variant)
    whole = whole_entry(cls, [entry], *where, trained=trained)
    merged = merge(cls, whole, entry.variant, {}, trained=trained)
    return {
        "setting": entry.setting,
        "backbone": entry.backbone,
        "variant": entry.variant,
        "corpus": entry.corpus,
        "expect": dict(entry.expect) if entry.expect else None,
        "note": entry.note,
        "own": sorted(entry.values),
        "values": {key: asdict(value) for key, value in merged.values_with_source().items()},
        "facts": {key: asdict(value) for key, value in entry.facts.items()},
    }


def _template_lists(module: ModuleType) -> dict[str, dict[str, list[str]]]:
    """Source -> kind -> templates, if the module has POSITIVE and NEGATIVE lists by source; the paper's come first."""
    lists = {kind: getattr(module, kind.upper(), None) or {} for kind in ("positive", "negative")}
    return {
        source: {kind: list(by_source[source]) for kind, by_source in lists.items()}
        for source in sorted(lists["positive"], key=lambda source: source != "paper")
        if source in lists["negative"]
    }
