"""The first screen of ``bench methods NAME``; what it leaves out, its options say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from bench.cli.columns import print_columns, say, title, width

Facts = Mapping[str, Any]
KEYS_WIDE = 24  # characters of a value that still fits beside others
PARTS = {
    "about": "the paper's idea and equations, in words",
    "recipes": "variants, recipe keys, recipes, and where values come from",
    "disagreements": "where paper and code disagree, and what is done here",
    "numbers": "what the papers print of it",
}
"""What there is to know of a method beyond the first screen: an option each."""
ROWS = 9  # of the recipes on the first screen
LINES = 7  # of 66 characters, for the recipe keys


def show_head(facts: Facts) -> None:
    head = {"paper": facts["paper"], "settings": ", ".join(facts["settings"]), "trains": facts["trains"], "from": facts["from"]}
    say(f"{facts['name']}: {facts['summary']}" if facts["summary"] else facts["name"])
    print_columns([(name, text) for name, text in head.items() if text])


def show_summary(facts: Facts) -> None:
    """At most 40 lines of 80 characters: what it is, what can be set, which recipes there are, and what says more."""
    show_head(facts)
    keys = facts["keys"]
    own = [key for key, v in keys.items() if v["own"]]
    with_values = ", ".join(f"{key} {_cut(shown_value(keys[key]['default']), KEYS_WIDE)}" for key in own)
    said = [("--variant", ", ".join(facts["variants"])),
            ("--set", with_values if len(with_values) <= LINES * 66 else ", ".join(own))]  # fmt: skip
    if shared := len(keys) - len(own):
        said.append(
            ("", f"{'and ' if own else ''}{shared} key{'s' * (shared > 1)} that other methods share: bench methods --keys")
        )
    if any(text for _, text in said):
        click.echo()
        print_columns([row for row in said if row[1]])
    recipes = sorted(facts["recipes"], key=lambda recipe: recipe["backbone"] == "builtin")
    if recipes:
        settings = list(dict.fromkeys(recipe["setting"] for recipe in recipes))
        only = f", {settings[0]}" if len(settings) == 1 and len(facts["settings"]) > 1 else ""
        title(f"recipes{only}" + ("; Avg. is what the papers print" if any(recipe["expect"] for recipe in recipes) else ""))
        _recipes(recipes, several=len(settings) > 1)
    title(f"more: bench methods {facts['name']} ...")
    there = {"about": facts["about"], "recipes": recipes or own or facts["variants"], "disagreements": facts["disagreements"],
             "numbers": facts["references"]}  # fmt: skip
    more = [(f"--{part}", told) for part, told in PARTS.items() if there[part]]
    if recipes:
        more.append((f"--backbone {recipes[0]['backbone']}", "its recipes, each value with its source"))
    print_columns([*more, ("--all", "everything")], indent=2)


def _recipes(recipes: Sequence[Facts], several: bool) -> None:
    columns = {"batch_size": "batch", "learning_rate": "rate"}
    rows = []
    for recipe in recipes[:ROWS]:
        values = [shown_value(recipe["values"][key]["value"]) if key in recipe["values"] else "" for key in columns]
        expect = f"{recipe['expect']['value']:.2f}" if recipe["expect"] else ""
        rows.append([recipe["setting"] if several else "", named([recipe]), _cut(recipe["corpus"] or "", 12), *values, expect])
    headings = ["setting", "backbone", "corpus", *columns.values(), "Avg."]
    kept = [i for i in range(len(headings)) if any(row[i] for row in rows)]
    for i in (2, 3, 4):  # where the terminal is narrow, the backbone and the number are what to keep
        if sum(max(len(row[one]) for row in [headings, *rows]) + 2 for one in kept) > width():
            kept = [one for one in kept if one != i]
    print_columns([[row[i] for i in kept] for row in rows], indent=2, headings=[headings[i] for i in kept])
    if len(recipes) > ROWS:
        say(f"and {len(recipes) - ROWS} more: --recipes", indent=2)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def named(recipes: Sequence[Facts]) -> str:
    return ", ".join(r["backbone"] + (f" +{r['variant']}" if r["variant"] else "") for r in recipes)


def shown_value(value: Any) -> str:
    if isinstance(value, float) and 0 < abs(value) < 1e-3:
        digits, exponent = f"{value:e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    return value if isinstance(value, str) and value else "none" if value is None else json.dumps(value, ensure_ascii=False)
