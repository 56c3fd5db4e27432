"""What is known of one method as data (``bench methods NAME --json``), and laid out for a terminal of any width."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import UnknownName
from bench.cli.columns import print_columns, print_facts, print_grid, say, title
from bench.show.grid import Column, grid

if TYPE_CHECKING:
    from types import ModuleType

    from bench.method import Value
    from bench.run.plugins import Plugin
    from bench.run.recipe_file import Entry

Facts = Mapping[str, Any]
KEYS_WIDE = 24  # characters of a value that still fits beside others
PARTS = {
    "about": "the paper's idea and equations, in words",
    "recipes": "variants, recipe keys, recipes, and where values come from",
    "templates": "the templates that sentences are put into",
    "disagreements": "where paper and code disagree, and what is done here",
    "numbers": "what the papers print of it",
}
"""What there is to know of a method beyond the first screen: an option each."""
ROWS = 9  # of the recipes on the first screen
LINES = 7  # of 66 characters, for the recipe keys


def show(facts: Facts, backbone: str | None = None, parts: Sequence[str] = ()) -> None:
    """A screenful; or the ``parts`` of PARTS that are named; or with a backbone only its recipes, each value with its source."""
    if backbone is not None:
        _full_recipes(facts, backbone)
        return
    if not parts:
        show_summary(facts)
        return
    shown = {
        "about": _about,
        "recipes": _all_recipes,
        "templates": _templates,
        "disagreements": _disagreements,
        "numbers": _references,
    }
    if len(parts) == 1:
        shown[parts[0]](facts)
        return
    show_head(facts)
    for part in parts:
        click.echo()
        shown[part](facts)


def _all_recipes(facts: Facts) -> None:
    before = bool(facts["variants"])
    if before:
        title("variants, and what they change (--variant NAME)", blank=False)
        print_columns(
            [
                (name, _changes(changes, facts["keys"]))
                for name, changes in facts["variants"].items()
            ],
            indent=2,
        )
    before = _keys(facts["keys"], before) or before
    for setting in dict.fromkeys(recipe["setting"] for recipe in facts["recipes"]):
        _recipes(facts, [r for r in facts["recipes"] if r["setting"] == setting], setting, before)
        before = True
    if not before:
        say(f"{facts['name']} has no variant, no recipe key of its own and no recipe")


def _templates(facts: Facts) -> None:
    """By source, then by kind, numbered; ``{s}`` is the sentence and ``{m}`` the mask."""
    if not facts["templates"]:
        say(f"{facts['name']} has no list of templates")
    for i, (source, kinds) in enumerate(facts["templates"].items()):
        for j, (kind, texts) in enumerate(kinds.items()):
            title(f"{len(texts)} {kind} templates, --set templates={source}", blank=bool(i or j))
            print_columns([(str(n), text) for n, text in enumerate(texts, 1)], indent=2)
    if facts["templates"]:
        say("{s} is the sentence, {m} the mask")


def _disagreements(facts: Facts) -> None:
    known = facts["disagreements"]
    title(
        PARTS["disagreements"]
        if known
        else f"{facts['name']}: no disagreement of paper and code is known",
        blank=False,
    )
    for disagreement in known:
        say(disagreement["topic"], indent=2)
        print_columns(
            [
                (word, disagreement[key])
                for word, key in (("paper", "paper"), ("code", "code"), ("here", "use"))
            ],
            indent=4,
        )


def _about(facts: Facts) -> None:
    """Paragraphs and bullets filled to the terminal's width; other indented lines, such as equations, as they are."""
    from bench.compare.formatting import blocks

    if not facts["about"]:
        say(f"{facts['name']} says nothing of itself")
    for i, block in enumerate(blocks(facts["about"])):
        if block.first and i:
            click.echo()
        if block.kind == "lines":
            click.echo(block.text)
        else:
            say(block.bullet + block.text, hang=len(block.bullet))


def _changes(changes: Mapping[str, Any], keys: Facts) -> str:
    before = {key: f" (otherwise {shown_value(v['default'])})" for key, v in keys.items()}
    return (
        ", ".join(f"{key} {shown_value(new)}{before.get(key, '')}" for key, new in changes.items())
        or "nothing in the recipe"
    )


def _keys(keys: Facts, blank: bool) -> bool:
    """Its own recipe keys and the harness's; whether there were any."""
    own = {key: v for key, v in keys.items() if v["own"]}
    shared = {key: v for key, v in keys.items() if not v["own"]}
    if own:
        title(
            "its own recipe keys (--set KEY=VALUE), their defaults, and where these come from",
            blank,
        )
        _values(
            [
                (key, shown_value(v["default"]), _told(v["help"], v["source"], v["note"]))
                for key, v in own.items()
            ]
        )
    if shared:
        title(
            "and the harness's: "
            + ", ".join(shared)
            + " (bench methods --keys says what each means)",
            blank or bool(own),
        )
    return bool(own or shared)


def _told(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)


def _values(rows: Sequence[tuple[str, str, str]]) -> None:
    """Keys, values and where these come from; long values (templates) below the others, on lines of their own."""
    print_columns([row for row in rows if len(row[1]) <= KEYS_WIDE], indent=2)
    print_columns(
        [(key, _told(value, told)) for key, value, told in rows if len(value) > KEYS_WIDE], indent=2
    )


def show_shared_keys() -> None:
    """What the harness's own recipe keys mean."""
    from bench.run.recipes import HELP, ON_REQUEST, TRAINING

    shared = {**TRAINING, **ON_REQUEST}
    title("recipe keys of every trained method (--set KEY=VALUE)", blank=False)
    print_columns(
        [
            (key, shown_value(v.value), _told(HELP[key], v.source, v.note))
            for key, v in shared.items()
        ],
        indent=2,
    )


# --- recipes: one table a setting, backbones as columns ---


def _recipes(facts: Facts, recipes: Sequence[Facts], setting: str, blank: bool) -> None:
    recipes = sorted(recipes, key=lambda r: r["backbone"] == "builtin")
    title(f"recipes, {setting}" if setting != "none" else "recipes, nothing trained", blank)
    own = {key for key, v in facts["keys"].items() if v["own"]}.union(*(r["own"] for r in recipes))
    keys = [key for key in facts["keys"] if key in own]
    rows = {
        key: [shown_value(r["values"][key]["value"]) if key in r["values"] else "" for r in recipes]
        for key in keys
    }
    rows = {"corpus": [r["corpus"] or "" for r in recipes], **rows}
    rows["paper's Avg."] = [f"{r['expect']['value']:.2f}" if r["expect"] else "" for r in recipes]
    differing = {key: cells for key, cells in rows.items() if len(set(cells)) > 1}
    short = {key: cells for key, cells in differing.items() if max(map(len, cells)) <= KEYS_WIDE}
    if len(recipes) > 1:
        _recipe_grid(facts["name"], recipes, short)
    same = ", ".join(
        f"{key} {cells[0]}" for key, cells in rows.items() if key not in differing and cells[0]
    )
    said = [("for all" if len(recipes) > 1 else recipe_names(recipes), same)]
    said += [
        (key, _by_recipe(cells, recipes))
        for key, cells in differing.items()
        if max(map(len, cells)) > KEYS_WIDE
    ]
    said += _notes(recipes, keys)
    stated = {
        f"{key} {shown_value(v['value'])}": None for r in recipes for key, v in r["facts"].items()
    }
    said += [("also stated", "; ".join(stated))] if stated else []
    said.append(("sources", "; ".join(_sources(recipes))))
    print_facts(said, indent=2)
    example = recipes[0]["backbone"]
    say(f"each value with its source: bench methods {facts['name']} --backbone {example}", indent=2)


def _by_recipe(cells: Sequence[str], recipes: Sequence[Facts]) -> str:
    users = {
        cell: [r for r, c in zip(recipes, cells, strict=True) if c == cell]
        for cell in dict.fromkeys(cells)
    }
    return "; ".join(f"{cell or 'none'} ({recipe_names(who)})" for cell, who in users.items())


def _notes(recipes: Sequence[Facts], keys: Sequence[str]) -> list[tuple[str, str]]:
    """What other sources say of a value, once for all recipes that share the note."""
    users: dict[tuple[str, str], list[Facts]] = {}
    for recipe in recipes:
        values = {key: recipe["values"][key] for key in keys if key in recipe["own"]}
        noted = {
            "note": {"note": recipe["note"]},
            **values,
            **recipe["facts"],
            "paper's Avg.": recipe["expect"] or {},
        }
        for key, value in noted.items():
            if value.get("note"):
                users.setdefault((key, value["note"]), []).append(recipe)
    return [(key, note + _only(who, recipes)) for (key, note), who in users.items()]


def _sources(recipes: Sequence[Facts]) -> list[str]:
    sources: dict[str, None] = {}
    for recipe in recipes:
        for value in [
            *(recipe["values"][key] for key in recipe["own"]),
            recipe["expect"] or {"source": ""},
        ]:
            if not value["source"].startswith("variant "):
                sources |= dict.fromkeys(part for part in value["source"].split("; ") if part)
    return list(sources)


def _only(who: Sequence[Facts], recipes: Sequence[Facts]) -> str:
    """ " (these backbones)", or which it does not hold for where that is shorter; nothing where it holds for all."""
    others = [r for r in recipes if r not in who]
    if not others:
        return ""
    return f" (not {recipe_names(others)})" if len(others) < len(who) else f" ({recipe_names(who)})"


def _recipe_grid(name: str, recipes: Sequence[Facts], values: Mapping[str, Sequence[str]]) -> None:
    """A row for each recipe, and a column for each key whose value is not the same in all."""
    columns = [Column("recipe"), *(Column(key, right=True, drop=1) for key in values)]
    rows = zip([recipe_names([r]) for r in recipes], *values.values(), strict=True)
    print_grid(grid(columns, rows, whole=f"bench methods {name} --backbone BACKBONE"), indent=2)


def _full_recipes(facts: Facts, backbone: str) -> None:
    known = list(dict.fromkeys(r["backbone"] for r in facts["recipes"]))
    if backbone not in known:
        raise UnknownName("backbone", backbone, known, f"among the recipes of {facts['name']}")
    for i, recipe in enumerate(r for r in facts["recipes"] if r["backbone"] == backbone):
        title(f"{facts['name']} on {recipe_names([recipe])}, {recipe['setting']}", blank=i > 0)
        if recipe["note"]:
            say(recipe["note"], indent=2)
        rows = [("corpus", recipe["corpus"], "")] if recipe["corpus"] else []
        rows += [
            (key, shown_value(v["value"]), _told(v["source"], v["note"]))
            for key, v in recipe["values"].items()
        ]
        if expect := recipe["expect"]:
            rows.append(
                (
                    "paper's Avg.",
                    f"{expect['value']:.2f}",
                    _told(expect["source"], expect.get("note")),
                )
            )
        _values(rows)
        if recipe["facts"]:
            say("stated by the sources, and no recipe key:", indent=2)
            print_columns(
                [
                    (key, _told(shown_value(v["value"]), v["source"], v["note"]))
                    for key, v in recipe["facts"].items()
                ],
                indent=2,
            )


# --- reference results ---


def _references(facts: Facts) -> None:
    rows = facts["references"]
    if not rows:
        say(f"no number of {facts['name']} is known from the papers' tables")
        return
    headline = [r for r in rows if r["task"] == "Avg." and r["metric"] == "spearman"]
    names = facts["printed_variants"]
    order = {"unsupervised": 0, "supervised": 1}
    printed: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}  # cells -> paper -> tables
    for r in sorted(
        headline, key=lambda r: (order.get(r["setting"], 9), r["backbone"], variant_here(r, names))
    ):
        score = f"{r['value']:.2f}" + (f" ± {r['std']:.2f}" if r["std"] is not None else "")
        cells = (r["setting"], r["backbone"], variant_here(r, names), score)
        printed.setdefault(cells, {}).setdefault(r["paper"], {})[r["table"]] = None
    if printed:
        title("what the papers print: Avg. of the seven STS sets, Spearman × 100", blank=False)
        lines = [
            [*cells, "; ".join(f"{p} {', '.join(t)}" for p, t in where.items())]
            for cells, where in printed.items()
        ]
        variant, table = Column("variant", wrap=12), Column("in table", wrap=16)
        backbone = Column("backbone", wrap=12)
        print_grid(grid(("setting", backbone, variant, "Avg.", table), lines), indent=2)
    rest = len(rows) - len(headline)
    if rest:
        kinds = ", ".join(dict.fromkeys(r["metric"] for r in rows if r not in headline))
        title(
            f"{rest} other printed numbers ({kinds}): bench methods {facts['name']} --json, under references",
            blank=bool(printed),
        )


# --- the first screen of ``bench methods NAME``; what it leaves out, its options say ---


def show_head(facts: Facts) -> None:
    head = {
        "paper": facts["paper"],
        "settings": ", ".join(facts["settings"]),
        "trains": facts["trains"],
        "from": facts["from"],
    }
    say(f"{facts['name']}: {facts['summary']}" if facts["summary"] else facts["name"])
    print_facts(list(head.items()))


def show_summary(facts: Facts) -> None:
    """At most 40 lines of 80 characters: what it is, what can be set, which recipes there are, and what says more."""
    show_head(facts)
    keys = facts["keys"]
    own = [key for key, v in keys.items() if v["own"]]
    with_values = ", ".join(
        f"{key} {_cut(shown_value(keys[key]['default']), KEYS_WIDE)}" for key in own
    )
    said = [
        ("--variant", ", ".join(facts["variants"])),
        ("--set", with_values if len(with_values) <= LINES * 66 else ", ".join(own)),
    ]
    if shared := len(keys) - len(own):
        said.append(
            (
                "",
                f"{'and ' if own else ''}{shared} key{'s' * (shared > 1)} that other methods share: bench methods --keys",
            )
        )
    if said := [(option, text) for option, text in said if text]:
        click.echo()
        print_columns(said)
    recipes = sorted(facts["recipes"], key=lambda recipe: recipe["backbone"] == "builtin")
    if recipes:
        settings = list(dict.fromkeys(recipe["setting"] for recipe in recipes))
        only = f", {settings[0]}" if len(settings) == 1 and len(facts["settings"]) > 1 else ""
        title(
            f"recipes{only}"
            + (
                "; Avg. is what the papers print"
                if any(recipe["expect"] for recipe in recipes)
                else ""
            )
        )
        _recipe_lines(recipes, several=len(settings) > 1)
    title(f"more: bench methods {facts['name']} ...")
    there = {
        "about": facts["about"],
        "recipes": recipes or own or facts["variants"],
        "templates": facts["templates"],
        "disagreements": facts["disagreements"],
        "numbers": facts["references"],
    }
    more = [(f"--{part}", told) for part, told in PARTS.items() if there[part]]
    if recipes:
        more.append(
            (f"--backbone {recipes[0]['backbone']}", "its recipes, each value with its source")
        )
    print_columns([*more, ("--all", "everything")], indent=2)


def _recipe_lines(recipes: Sequence[Facts], several: bool) -> None:
    rows = []
    for recipe in recipes[:ROWS]:
        values = [
            shown_value(recipe["values"][key]["value"]) if key in recipe["values"] else ""
            for key in ("batch_size", "learning_rate")
        ]
        expect = f"{recipe['expect']['value']:.2f}" if recipe["expect"] else ""
        setting, corpus = recipe["setting"] if several else "", _cut(recipe["corpus"] or "", 12)
        rows.append([setting, recipe_names([recipe]), corpus, *values, expect])
    numbers = [Column(name, right=True, drop=1) for name in ("batch", "rate")]
    columns: list[Column | str] = [
        "setting",
        "backbone",
        Column("corpus", drop=2),
        *numbers,
        Column("Avg.", right=True),
    ]
    print_grid(grid(columns, rows, whole="--recipes"), indent=2)
    if len(recipes) > ROWS:
        say(f"and {len(recipes) - ROWS} more: --recipes", indent=2)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def recipe_names(recipes: Sequence[Facts]) -> str:
    return ", ".join(r["backbone"] + (f" +{r['variant']}" if r["variant"] else "") for r in recipes)


def shown_value(value: Any) -> str:
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        digits, exponent = f"{value:e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    if value is None:
        return "none"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


# --- everything that is known of one method, as data: what ``bench methods NAME --json`` prints and the terminal lays out ---


def describe(plugin: Plugin, variant: str = "") -> dict[str, Any]:
    """``about``: the class's own words, or else its module's. ``keys`` are the recipe keys with their defaults; a recipe's ``values`` are
    all of it, merged, as a run would have it. With a ``variant`` only its recipes and printed numbers. Raises UnknownName for one that
    the method lacks."""
    from bench.references import results
    from bench.run.plan import learns
    from bench.run.recipe_file import read
    from bench.run.recipes import HELP, TRAINING, check_variant, merge, variants_of, whole_entry

    cls = plugin.cls
    trained = any(learns(cls, setting) for setting in cls.settings)
    keys = merge(cls, None, "", {}, trained=trained).values_with_source()
    file = read(plugin.folder, plugin.name)
    printed, names = file.printed.get("method", plugin.name), dict(file.printed.get("variants", {}))
    references = [asdict(r) for r in results(printed)] if printed else []
    recipes = []
    check_variant(cls, variant)
    for entry in _of_variant(file.recipes, variant):
        learnt = learns(cls, entry.setting)
        whole, _ = whole_entry(
            cls, [entry], entry.setting, entry.backbone, entry.variant, trained=learnt
        )
        merged = merge(cls, whole, entry.variant, {}, trained=learnt).values_with_source()
        recipes.append(
            {
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
        )
    return {
        "name": f"{plugin.name}+{variant}" if variant else plugin.name,
        "summary": cls.summary,
        "paper": cls.paper,
        "settings": list(cls.settings),
        "trains": cls.trains,
        "from": f"{plugin.package} {plugin.version}".strip(),
        "about": inspect.cleandoc(cls.__dict__.get("__doc__") or plugin.module.__doc__ or ""),
        "variants": {
            name: {key: _plain(v) for key, v in changes.items()}
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
        "recipes": recipes,
        "templates": _template_lists(plugin.module),
        "disagreements": [asdict(d) for d in file.disagreements],
        "references": [r for r in references if not variant or variant_here(r, names) == variant],
        "printed_variants": names,
    }


def _template_lists(module: ModuleType) -> dict[str, dict[str, list[str]]]:
    """Source -> kind -> templates, of a module that has POSITIVE and NEGATIVE lists of them by source; the paper's first."""
    lists = {kind: getattr(module, kind.upper(), None) for kind in ("positive", "negative")}
    if not all(isinstance(by_source, Mapping) for by_source in lists.values()):
        return {}
    sources = sorted(
        set.intersection(*(set(by_source) for by_source in lists.values())),  # type: ignore[arg-type]
        key=lambda source: source != "paper",
    )
    return {
        source: {kind: list(by_source[source]) for kind, by_source in lists.items()}  # type: ignore[index]
        for source in sources
    }


def _of_variant(recipes: Sequence[Entry], variant: str) -> list[Entry]:
    """All recipes; of a variant its own, or where it has none the method's with its changes."""
    own = [entry for entry in recipes if not variant or entry.variant == variant]
    return own or [
        replace(entry, variant=variant, expect=None) for entry in recipes if not entry.variant
    ]


def variant_here(printed: Facts, names: Mapping[str, str]) -> str:
    """What the variant of a printed number is called here, by ``names`` (ours -> printed) or on its backbone; else as it is printed."""
    from bench.references.ours import meaning

    means = meaning(printed["method"], printed["variant"], printed["setting"], printed["backbone"])
    known = next(
        (ours for ours, name in names.items() if name == printed["variant"]), printed["variant"]
    )
    return means.variant if means.holds else known


def _plain(value: Any | Value) -> Any:
    from bench.method import Value

    return value.value if isinstance(value, Value) else value
