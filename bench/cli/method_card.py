"""Everything about one method: as data (``bench methods NAME --json``), and as tables for a terminal of any width."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import UnknownName
from bench.base.text import plural
from bench.cli.columns import print_columns, print_facts, print_grid, say, title
from bench.show.grid import Column, Grid, grid

if TYPE_CHECKING:
    from types import ModuleType

    from bench.method import Method
    from bench.run.plugins import Plugin
    from bench.run.recipe_file import Entry

Facts = Mapping[str, Any]
LONGEST = 24  # characters of a value that stands in a table of recipes
PARTS = {
    "about": "the paper's idea and equations, in words",
    "recipes": "variants, recipe keys with the sources of their defaults, and recipes",
    "templates": "the templates that sentences are put into",
    "disagreements": "where paper and code disagree, and what is done here",
    "numbers": "what the papers print of it",
}
"""The options of ``bench methods NAME``; without one the first screen is printed."""
SUMMARY_KEYS = ("batch_size", "learning_rate")  # columns of the first screen's recipes


def show(facts: Facts, backbone: str | None = None, parts: Sequence[str] = ()) -> None:
    """The first screen; or the ``parts`` of PARTS that are named; or with a backbone its recipes, each value with its source."""
    if backbone is not None:
        _print_grids(_sourced_recipes(facts, backbone))
        return
    if len(parts) != 1:
        show_head(facts)
    if not parts:
        show_summary(facts)
    for part in parts:
        if len(parts) > 1:
            click.echo()
        if part == "about":
            _print_about(facts["about"])
        elif grids := _grids(facts, part):
            _print_grids(grids)
        else:
            say(f"{PARTS[part]}: nothing is recorded of {facts['name']}")


def _grids(facts: Facts, part: str) -> list[Grid]:
    """The tables of one part; none where nothing is recorded."""
    if part == "recipes":
        return [*_variants(facts), *_keys(facts), *_recipes(facts)]
    if part == "templates":
        return _templates(facts)
    return _disagreements(facts) if part == "disagreements" else _numbers(facts)


def _print_grids(grids: Sequence[Grid]) -> None:
    for i, table in enumerate(grids):
        if i:
            click.echo()
        print_grid(table)


def _print_about(text: str) -> None:
    """Paragraphs and bullets filled to the terminal's width; other indented lines, such as equations, as they are."""
    from bench.compare.formatting import blocks

    for i, block in enumerate(blocks(text)):
        if block.first and i:
            click.echo()
        if block.kind == "lines":
            click.echo(block.text)
        else:
            say(block.bullet + block.text, hang=len(block.bullet))


def show_head(facts: Facts) -> None:
    """What it is, its paper, and what it trains."""
    say(f"{facts['name']}: {facts['summary']}" if facts["summary"] else facts["name"])
    settings = ", ".join(facts["settings"])
    head = {"paper": facts["paper"], "settings": settings, "trains": facts["trains"]}
    print_facts({**head, "from": facts["from"]}.items())


def show_summary(facts: Facts) -> None:
    """The rest of the first screen: variants, recipe keys, recipes in short, and the options that show more."""
    own = [key for key, value in facts["keys"].items() if value["own"]]
    facts_below = [("--variant", ", ".join(facts["variants"])), ("--set", ", ".join(own))]
    click.echo()
    shared = "keys that all trained methods share: bench methods --keys" if facts["trains"] else ""
    print_facts([*facts_below, ("", shared)])
    if facts["recipes"]:
        click.echo()
        recipes = _builtin_last(facts["recipes"])
        print_grid(_recipe_grid(recipes, SUMMARY_KEYS, "recipes", "--recipes"), indent=2)
    title(f"more: bench methods {facts['name']} ...")
    rows = [(f"--{part}", text) for part, text in PARTS.items()]
    rows.append(("--backbone NAME", "its recipes for a backbone, each value with its source"))
    print_columns([*rows, ("--all", "everything")], indent=2)


# --- variants, recipe keys, recipes ---


def _variants(facts: Facts) -> list[Grid]:
    rows = [
        (name, key, shown_value(value))
        for name, changes in facts["variants"].items()
        for key, value in changes.items()
    ]
    columns = ("variant", "key", Column("value", wrap=LONGEST))
    return [grid(columns, rows, title="what variants change (--variant NAME)")] if rows else []


def _keys(facts: Facts) -> list[Grid]:
    """The method's own recipe keys, with the sources of their defaults."""
    own = {key: value for key, value in facts["keys"].items() if value["own"]}
    rows = [(key, shown_value(v["default"]), _source(v)) for key, v in own.items()]
    about = "the method's recipe keys (--set KEY=VALUE); bench methods --keys lists those that all methods share"
    return [_sourced("default", rows, about)] if rows else []


def show_shared_keys() -> None:
    """The recipe keys that every trained method has, and their defaults."""
    from bench.run.recipes import HELP, ON_REQUEST, TRAINING

    rows = [
        (key, shown_value(value.value), HELP[key], value.source, value.note or "")
        for key, value in {**TRAINING, **ON_REQUEST}.items()
    ]
    columns = [Column("means", wrap=LONGEST), Column("source", wrap=LONGEST, drop=1)]
    about = "recipe keys of every trained method (--set KEY=VALUE)"
    print_grid(
        grid(["key", "default", *columns, Column("note", wrap=16, drop=2)], rows, title=about)
    )


def _sourced(value: str, rows: Sequence[Sequence[str]], about: str, *notes: str) -> Grid:
    """Rows of (key, value, source)."""
    texts = [Column(name, wrap=LONGEST) for name in (value, "source")]
    return grid(["key", *texts], rows, title=about, notes=[note for note in notes if note])


def _source(value: Facts) -> str:
    """The source, and what other sources say."""
    return "; ".join(filter(None, (value.get("help"), value["source"], value.get("note"))))


def _recipes(facts: Facts) -> list[Grid]:
    """A table for each setting, of the keys whose values differ between its recipes; and one of all other values."""
    by_setting: dict[str, list[Facts]] = {}
    for recipe in _builtin_last(facts["recipes"]):
        by_setting.setdefault(recipe["setting"], []).append(recipe)
    whole = f"bench methods {facts['name']} --backbone NAME"
    tables, shared = [], []
    differs = {
        (key, setting): len({_recipe_value(recipe, key) for recipe in recipes}) > 1
        for setting, recipes in by_setting.items()
        for key in facts["keys"]
    }
    for setting, recipes in by_setting.items():
        keys = [key for key in facts["keys"] if differs[key, setting]]
        keys.sort(key=lambda key: len(_recipe_value(recipes[0], key)) > LONGEST)  # templates last
        about = f"recipes, {setting}" if setting != "none" else "recipes, nothing trained"
        tables.append(_recipe_grid(recipes, keys, about, whole))
    for key in facts["keys"]:
        settings = by_setting.items()
        cells = [
            "" if differs[key, s] else _recipe_value(recipes[0], key) for s, recipes in settings
        ]
        shared += [(key, *cells)] if any(cells) else []
    columns: list[Column | str] = [
        "key",
        *(Column(setting, wrap=LONGEST) for setting in by_setting),
    ]
    note = f"each value with its source: {whole}"
    about = "the same in all recipes of a setting"
    return [*tables, grid(columns, shared, title=about, notes=[note])] if shared else tables


def _recipe_grid(recipes: Sequence[Facts], keys: Sequence[str], about: str, whole: str) -> Grid:
    """A row for each recipe; their settings are a column where they have several."""
    values = {key: [_recipe_value(recipe, key) for recipe in recipes] for key in keys}
    several = len({recipe["setting"] for recipe in recipes}) > 1
    columns = [
        *(Column("setting", drop=2), Column("recipe", wrap=18), Column("corpus", wrap=8, drop=1)),
        Column("printed Avg.", right=True),
        *(Column(key, right=True, drop=3) for key in values),
    ]
    rows = [
        (
            recipe["setting"] if several else "",
            recipe_name(recipe),
            recipe["corpus"] or "",
            f"{recipe['expect']['value']:.2f}" if recipe["expect"] else "",
            *(texts[i] for texts in values.values()),
        )
        for i, recipe in enumerate(recipes)
    ]
    return grid(columns, rows, title=about, whole=whole)


def _recipe_value(recipe: Facts, key: str) -> str:
    return shown_value(recipe["values"][key]["value"]) if key in recipe["values"] else ""


def _builtin_last(recipes: Sequence[Facts]) -> list[Facts]:
    return sorted(recipes, key=lambda recipe: recipe["backbone"] == "builtin")


def _sourced_recipes(facts: Facts, backbone: str) -> list[Grid]:
    """Each recipe for a backbone, whole. Raises UnknownName for a backbone that has none."""
    recipes = [recipe for recipe in facts["recipes"] if recipe["backbone"] == backbone]
    if not recipes:
        known = dict.fromkeys(recipe["backbone"] for recipe in facts["recipes"])
        raise UnknownName("backbone", backbone, known, f"among the recipes of {facts['name']}")
    tables = []
    for recipe in recipes:
        values = recipe["values"].items()
        rows = [(key, shown_value(v["value"]), _source(v)) for key, v in values]
        if printed := recipe["expect"]:
            average = f"{printed['value']:.2f}"
            rows.append(("printed Avg.", average, _source(printed)))
        about = f"{facts['name']} on {recipe_name(recipe)}, {recipe['setting']}"
        corpus = [("corpus", recipe["corpus"], "")] if recipe["corpus"] else []
        tables.append(_sourced("value", [*corpus, *rows], about, recipe["note"]))
        if stated := recipe["facts"].items():
            rows = [(key, shown_value(v["value"]), _source(v)) for key, v in stated]
            tables.append(_sourced("value", rows, "also stated, without a recipe key"))
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


def _disagreements(facts: Facts) -> list[Grid]:
    known = facts["disagreements"]
    columns = [Column(name, wrap=16) for name in ("topic", "paper", "code", "here")]
    rows = [(d["topic"], d["paper"], d["code"], d["use"]) for d in known]
    return [grid(columns, rows, title=PARTS["disagreements"])] if rows else []


def _numbers(facts: Facts) -> list[Grid]:
    """The printed averages; the same number in several tables is one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for printed in facts["references"]:
        if printed["task"] == "Avg.":
            variant = variant_here(printed, facts["printed_variants"])
            row = (printed["metric"], printed["setting"], printed["backbone"], variant)
            rows.setdefault((*row, printed["printed"]), []).append(
                f"{printed['paper']}:{printed['table']}"
            )
    names = [Column("backbone", wrap=12), Column("variant", wrap=12)]
    lines = [(*row, ", ".join(dict.fromkeys(tables))) for row, tables in sorted(rows.items())]
    table = grid(
        ["metric", "setting", *names, Column("Avg.", right=True), Column("in table", wrap=16)],
        lines,
        title="averages that papers print",
        notes=[f"every printed number: bench methods {facts['name']} --json, under references"],
    )
    return [table] if facts["references"] else []


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
    whole, _ = whole_entry(cls, [entry], *where, trained=trained)
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
