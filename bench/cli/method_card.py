"""Everything about one method: as data (``bench methods NAME --json``), and as tables for a terminal of any width."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from bench.base.errors import UnknownName
from bench.base.text import plural
from bench.cli.columns import print_facts, print_grid, say
from bench.show.grid import Column, Grid, grid

if TYPE_CHECKING:
    from types import ModuleType

    from bench.method import Method
    from bench.run.plugins import Plugin
    from bench.run.recipe_file import Entry

Facts = Mapping[str, Any]
LONGEST = 24  # characters of a value that stands in a table of recipes


def show(facts: Facts, backbone: str | None = None, *, everything: bool = False) -> None:
    """Paper, settings, keys and recipes; with a ``backbone`` its recipes, each value with its source; or ``everything``."""
    if backbone is not None:
        _print_grids(_sourced_recipes(facts, backbone))
        return
    _print_head(facts)
    if not everything:
        _print_grids([_recipes(facts)])
        click.echo(
            f"equations, sources, templates, printed results: bench methods {facts['name']} --all"
        )
        return
    _print_about(facts["about"])
    parts = (_variants, _keys, _recipes, _disagreements, _numbers)
    _print_grids([part(facts) for part in parts] + _templates(facts))


def show_part(facts: Facts, part: str) -> None:
    """The "recipes" or the "templates" of a method, as a paper's table of them."""
    _print_grids(
        _templates(facts)
        if part == "templates"
        else [f(facts) for f in (_variants, _keys, _recipes)]
    )


def _print_grids(grids: Sequence[Grid]) -> None:
    """Print the tables that have rows."""
    for table in grids:
        if table.rows:
            print_grid(table)
            click.echo()


def _print_about(text: str) -> None:
    """Paragraphs and bullets filled to the terminal's width; other indented lines, such as equations, as they are."""
    from bench.compare.formatting import blocks

    for block in blocks(text):
        if block.first:
            click.echo()
        if block.kind == "lines":
            click.echo(block.text)
        else:
            say(block.bullet + block.text, hang=len(block.bullet))
    click.echo()


def _print_head(facts: Facts) -> None:
    """What it is, its paper, what it trains, and what ``bench run`` can change."""
    say(": ".join(filter(None, (facts["name"], facts["summary"]))))
    own = [key for key, value in facts["keys"].items() if value["own"]]
    head = {key: facts[key] for key in ("paper", "trains", "from")}
    head |= {"settings": ", ".join(facts["settings"])}
    head |= {"--variant": ", ".join(facts["variants"]), "--set": ", ".join(own)}
    print_facts({**head, "": "keys of all trained methods: bench methods --keys"}.items())
    click.echo()


# --- variants, recipe keys, recipes ---


def _variants(facts: Facts) -> Grid:
    rows = [
        (name, key, shown_value(value))
        for name, changes in facts["variants"].items()
        for key, value in changes.items()
    ]
    columns = ("variant", "key", Column("value", wrap=LONGEST))
    return grid(columns, rows, title="what variants change (METHOD+VARIANT)")


def _keys(facts: Facts) -> Grid:
    """The method's own recipe keys, with the sources of their defaults."""
    own = {key: value for key, value in facts["keys"].items() if value["own"]}
    return _sourced("default", own, "the method's recipe keys (--set KEY=VALUE)")


def show_shared_keys() -> None:
    """The recipe keys that every trained method has, and their defaults."""
    from bench.run.recipes import HELP, ON_REQUEST, TRAINING

    keys = {**TRAINING, **ON_REQUEST}
    rows = [(k, shown_value(v.value), HELP[k], v.source, v.note or "") for k, v in keys.items()]
    columns = [Column("means", wrap=LONGEST), Column("source", wrap=LONGEST, drop=1)]
    about = "recipe keys of every trained method (--set KEY=VALUE)"
    print_grid(
        grid(["key", "default", *columns, Column("note", wrap=16, drop=2)], rows, title=about)
    )


def _sourced(name: str, values: Mapping[str, Facts], about: str, note: str = "") -> Grid:
    """A row for each value: the value, its source, and what other sources say."""
    rows = [
        (
            key,
            shown_value(value[name]),
            "; ".join(filter(None, (value.get("help"), value["source"], value.get("note")))),
        )
        for key, value in values.items()
    ]
    texts = [Column(heading, wrap=LONGEST) for heading in (name, "source")]
    return grid(["key", *texts], rows, title=about, notes=[note] if note else [])


def _recipes(facts: Facts) -> Grid:
    """A row for each recipe, with the short values in which they differ; those of the built-in backbone come last."""
    recipes = sorted(facts["recipes"], key=lambda recipe: recipe["backbone"] == "builtin")
    values = {key: [_recipe_value(recipe, key) for recipe in recipes] for key in facts["keys"]}
    differing = {
        key: texts
        for key, texts in values.items()
        if len(set(texts)) > 1 and max(map(len, texts)) <= LONGEST
    }
    columns = [
        *(Column("setting", drop=2), Column("recipe", wrap=18), Column("corpus", wrap=8, drop=1)),
        Column("printed Avg.", right=True),
        *(Column(key, right=True, drop=3) for key in differing),
    ]
    rows = [
        (
            recipe["setting"],
            recipe_name(recipe),
            recipe["corpus"] or "",
            f"{recipe['expect']['value']:.2f}" if recipe["expect"] else "",
            *(texts[i] for texts in differing.values()),
        )
        for i, recipe in enumerate(recipes)
    ]
    note = f"each value with its source: bench methods {facts['name']} --backbone NAME"
    return grid(columns, rows, title="recipes", notes=[note])


def _recipe_value(recipe: Facts, key: str) -> str:
    return shown_value(recipe["values"][key]["value"]) if key in recipe["values"] else ""


def _sourced_recipes(facts: Facts, backbone: str) -> list[Grid]:
    """Each recipe for a backbone, whole. Raises UnknownName for a backbone that has none."""
    recipes = [recipe for recipe in facts["recipes"] if recipe["backbone"] == backbone]
    if not recipes:
        known = dict.fromkeys(recipe["backbone"] for recipe in facts["recipes"])
        raise UnknownName("backbone", backbone, known, f"among the recipes of {facts['name']}")
    tables = []
    for recipe in recipes:
        values = {"corpus": {"value": recipe["corpus"], "source": ""}} if recipe["corpus"] else {}
        values |= recipe["values"] | (
            {"printed Avg.": recipe["expect"]} if recipe["expect"] else {}
        )
        about = f"{facts['name']} on {recipe_name(recipe)}, {recipe['setting']}"
        tables.append(_sourced("value", values, about, recipe["note"]))
        tables.append(_sourced("value", recipe["facts"], "also stated, without a recipe key"))
    return tables


def recipe_name(recipe: Facts) -> str:
    """ "bert-base-uncased +eh" """
    return recipe["backbone"] + (f" +{recipe['variant']}" if recipe["variant"] else "")


def shown_value(value: Any) -> str:
    """ "3e-5", "none", "true" """
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        digits, exponent = f"{value:e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    if value is None:
        return "none"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


# --- templates, disagreements, printed numbers ---


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
    columns = [Column(name, wrap=16) for name in ("topic", "paper", "code", "here")]
    rows = [(d["topic"], d["paper"], d["code"], d["use"]) for d in facts["disagreements"]]
    return grid(columns, rows, title="where paper and code disagree, and what is done here")


def _numbers(facts: Facts) -> Grid:
    """The averages that papers print."""
    rows = {
        (
            *(printed["metric"], printed["setting"], printed["backbone"]),
            variant_here(printed, facts["printed_variants"]),
            *(printed["printed"], f"{printed['paper']}:{printed['table']}"),
        ): None
        for printed in facts["references"]
        if printed["task"] == "Avg."
    }
    names = [Column("backbone", wrap=12), Column("variant", wrap=12)]
    return grid(
        ["metric", "setting", *names, Column("Avg.", right=True), "in table"],
        sorted(rows),
        title="averages that papers print",
        notes=[f"every printed number: bench methods {facts['name']} --json, under references"],
    )


# --- the same as data: what ``bench methods NAME --json`` prints, and the tables above lay out ---


def describe(plugin: Plugin, variant: str = "") -> dict[str, Any]:
    """What is known of a method. ``about`` is the class's docstring, or else its module's; ``keys`` are the recipe keys with their
    defaults; a recipe's ``values`` are all of it, merged, as a run would have it. With a ``variant`` only its recipes and printed
    numbers. Raises UnknownName for a variant that the method lacks."""
    from bench.references import results
    from bench.run.plan import learns
    from bench.run.recipe_file import read
    from bench.run.recipes import HELP, TRAINING, check_variant, merge, variants_of

    cls = plugin.cls
    check_variant(cls, variant)
    trained = any(learns(cls, setting) for setting in cls.settings)
    keys = merge(cls, None, "", {}, trained=trained).values_with_source()
    file = read(plugin.folder, plugin.name)
    printed, names = file.printed.get("method", plugin.name), dict(file.printed.get("variants", {}))
    references = [asdict(r) for r in results(printed)] if printed else []
    return {
        "name": f"{plugin.name}+{variant}" if variant else plugin.name,
        "summary": cls.summary,
        "paper": cls.paper,
        "settings": list(cls.settings),
        "trains": cls.trains,
        "from": f"{plugin.package} {plugin.version}".strip(),
        "about": inspect.cleandoc(cls.__dict__.get("__doc__") or plugin.module.__doc__ or ""),
        "variants": {
            name: {key: getattr(value, "value", value) for key, value in changes.items()}
            for name, changes in variants_of(cls).items()
            if variant in ("", name)
        },
        "keys": {
            key: {
                "default": v.value,
                "source": v.source,
                "note": v.note,
                "help": HELP.get(key),
                "own": key in cls.defaults,
            }
            for key, v in keys.items()
            if key in cls.defaults or key in TRAINING
        },
        "recipes": [_as_data(cls, entry) for entry in _of_variant(file.recipes, variant)],
        "templates": _template_lists(plugin.module),
        "disagreements": [asdict(d) for d in file.disagreements],
        "references": [r for r in references if not variant or variant_here(r, names) == variant],
        "printed_variants": names,
    }


def _as_data(cls: type[Method], entry: Entry) -> dict[str, Any]:
    """A recipe, merged as a run would have it."""
    from bench.run.plan import learns
    from bench.run.recipes import merge, whole_entry

    trained, where = learns(cls, entry.setting), (entry.setting, entry.backbone, entry.variant)
    whole = whole_entry(cls, [entry], *where, trained=trained)
    merged = merge(cls, whole, entry.variant, {}, trained=trained).values_with_source()
    return {
        "setting": entry.setting,
        "backbone": entry.backbone,
        "variant": entry.variant,
        "corpus": entry.corpus,
        "expect": dict(entry.expect) if entry.expect else None,
        "note": entry.note,
        "own": sorted(entry.values),
        "values": {key: asdict(value) for key, value in merged.items()},
        "facts": {key: asdict(value) for key, value in entry.facts.items()},
    }


def _template_lists(module: ModuleType) -> dict[str, dict[str, list[str]]]:
    """Source -> kind -> templates, of a module that has POSITIVE and NEGATIVE lists of them by source; the paper's first."""
    lists = {kind: getattr(module, kind.upper(), None) or {} for kind in ("positive", "negative")}
    shared = [source for source in lists["positive"] if source in lists["negative"]]
    return {
        source: {kind: list(by_source[source]) for kind, by_source in lists.items()}
        for source in sorted(shared, key=lambda source: source != "paper")
    }


def _of_variant(recipes: Sequence[Entry], variant: str) -> list[Entry]:
    """All recipes; of a variant its own, or where it has none the method's with its changes."""
    own = [entry for entry in recipes if not variant or entry.variant == variant]
    return own or [
        replace(entry, variant=variant, expect=None) for entry in recipes if not entry.variant
    ]


def variant_here(printed: Facts, names: Mapping[str, str]) -> str:
    """The name here of the variant of a printed number, by ``names`` (ours -> printed) or on its backbone; else as it is printed."""
    from bench.references.ours import meaning

    means = meaning(printed["method"], printed["variant"], printed["setting"], printed["backbone"])
    known = {name: ours for ours, name in [*names.items()][::-1]}
    return means.variant if means.holds else str(known.get(printed["variant"], printed["variant"]))
