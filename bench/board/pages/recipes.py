"""The recipes next to a method: each value, the recipes that have it, and its source; and the
trials of its searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.text import value_text
from bench.board.board import MethodDescription
from bench.compare.formatting import score
from bench.compare.words.names import setting_words
from bench.method.recipe_files import Entry
from bench.records.searches import RECIPE, Search, best_trial, expected_best


def recipe_grids(described: MethodDescription) -> list[tuple[str, Grid, Grid]]:
    """Return for each setting its title, and a line for each value from one source; then a line
    for each fact that a source states and that no value sets."""
    by_setting: dict[str, list[Entry]] = {}
    for entry in described.file.recipes:
        by_setting.setdefault(entry.setting, []).append(entry)
    grids = []
    for setting, entries in by_setting.items():
        entries.sort(key=lambda entry: entry.backbone == "builtin")
        values = recipe_grid(entries, recipe_lines)
        grids.append((setting_words(setting), values, recipe_grid(entries, stated_lines)))
    return grids


def recipe_grid(
    entries: Sequence[Entry], read: Callable[[Entry], Mapping[str, tuple[str, str]]]
) -> Grid:
    """List what is read of some recipes, with the recipes that have it and its sources."""
    lines_of = [(_recipe_name(entry), read(entry)) for entry in entries]
    keys = dict.fromkeys(key for _, lines in lines_of for key in lines)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key in keys:
        for name, lines in lines_of:
            if key in lines:
                groups.setdefault((key, *lines[key]), []).append(name)
    rows = []
    last = ""
    for (key, value, source), names in groups.items():
        recipes = "all" if len(names) == len(entries) else ", ".join(names)
        rows.append(("" if key == last else key, value, recipes, source))
        last = key
    return grid(("value of", "is", "for", "from"), rows)


def _recipe_name(entry: Entry) -> str:
    return f"{entry.backbone} +{entry.variant}" if entry.variant else entry.backbone


def recipe_lines(entry: Entry) -> dict[str, tuple[str, str]]:
    """Return name -> (value, source) for the values of a recipe, and its note."""
    lines = {"corpus": (entry.corpus, "")} if entry.corpus else {}
    lines |= {key: _sourced(value) for key, value in entry.values.items()}
    if entry.expect:
        lines["paper's Avg."] = (
            f"{entry.expect['value']:.2f}",
            str(entry.expect.get("source", "")),
        )
    if entry.note:
        lines["note"] = (entry.note, "")
    return lines


def stated_lines(entry: Entry) -> dict[str, tuple[str, str]]:
    """Return name -> (value, source) for facts of a recipe's source that no value sets."""
    return {key: _sourced(value) for key, value in entry.facts.items()}


def _sourced(value: Any) -> tuple[str, str]:
    sources = [text for text in (value.source, value.note) if text]
    return value_text(value.value), "; ".join(sources)


def trials_grid(search: Search, method: str) -> Grid:
    """List the values and the dev score of each trial, and the expected best of so many."""
    trials = search.trials[method]
    keys = list(search.study.methods[method].space)
    counted = [trial for trial in trials if trial.number != RECIPE and trial.state != "running"]
    expected = iter(expected_best([trial.score for trial in counted]))
    best = best_trial(trials)
    rows = []
    for trial in trials:
        name = "the recipe as it is" if trial.number == RECIPE else f"trial {trial.number}"
        values = [value_text(trial.values[key]) if key in trial.values else "" for key in keys]
        dev = GridCell(text=trial.state) if trial.score is None else GridCell(number=trial.score)
        is_best = best is not None and trial.number == best.number
        ahead = next(expected, None) if trial in counted else None
        expected_text = "" if ahead is None else score(ahead)
        rows.append((name, *values, dev, "best" if is_best else "", expected_text))
    return grid(
        [
            method,
            *(GridColumn(name, right=True) for name in (*keys, search.study.select_on)),
            "",
            GridColumn("expected best of so many", right=True),
        ],
        rows,
    )
