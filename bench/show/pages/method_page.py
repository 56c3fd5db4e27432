"""The page of one method: how it works, its numbers on all tables, its runs, its recipes, its searches, and what papers printed of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.base.text import duration, plural
from bench.board.board import Board, BoardTable, MethodDescription
from bench.board.names import link, search_file
from bench.board.repeat import without_folders
from bench.compare.formatting import Block, blocks, score, setting_words, signed_number, spans
from bench.compare.statistics.expected_best import expected_best
from bench.compare.statistics.table import Cell as ScoreCell
from bench.run.recipe_file import Disagreement, Entry
from bench.runs.searches import RECIPE, Search, best_trial
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.board import first_sentences, score_table_values
from bench.show.pages.engine import naming, run_link, value_text
from bench.show.pages.engine import render as rendered
from bench.show.pages.printed import printed_papers
from bench.show.tables.report import heads

UP = 1  # folders between a method's page and its version


def render(board: Board, method: str) -> str:
    """The page ``methods/<method>.html`` as HTML, a function of the board and of the method's source where it is installed. Raises
    BenchError where it cannot be made."""
    with naming(f"the page of method {method}"):
        values = score_table_values(board, UP)
        described = values["described"].get(method)
        tables, links = method_tables(board, method)
        return rendered(
            "method.html",
            **values
            | {
                "values": values | {"row_link": lambda row: links[row.runs], "describe": describe},
                "value_text": value_text,
                "code": sorted(
                    {
                        f"{code.package} {code.version}"
                        for run in board.runs
                        if run.record.method == method
                        and (code := run.record.provenance.plugin).package
                    }
                ),
                "method": method,
                "one": described,
                "caveat": first_sentences(board.note or "")[0],
                "paragraphs": paragraphs(described) if described else [],
                "spans": spans,
                "tables": tables,
                "runs": runs_grid(board, method),
                "recipes": recipe_grids(described) if described else [],
                "searches": [
                    searched(one, method) for one in board.searches if method in one.trials
                ],
                "disagreements": disagreements(described.file.disagreements if described else ()),
                "papers": printed_papers(board, method, UP),
            },
        )


def paragraphs(described: MethodDescription) -> list[Block]:
    """What the method says of itself, without a first line that is the paper's title, which the citation has too."""
    first, *others = blocks(described.about) or (Block("paragraph", ""),)
    texts, cited = (
        set(re.findall(r"\w{4,}", text.lower())) for text in (first.text, described.paper)
    )
    is_title = first.kind == "paragraph" and len(texts & cited) > len(texts) / 2
    return others if is_title else [first, *others]


def method_tables(board: Board, method: str) -> tuple[list[BoardTable], dict[tuple[str, ...], str]]:
    """(the rows of the method, one table per suite and protocol, whatever the setting and backbone; link of each row to its table)"""
    groups: dict[tuple[object, ...], list[Any]] = {}
    links = {}
    for place in board.by_method.get(method, ()):
        table = place.of.table
        form = (table.suite, table.protocol, table.text, table.metric, table.columns)
        groups.setdefault(form, []).append(place)
        links[place.row.runs] = f"{link('index.html', UP)}#{place.of.anchor}"
    tables = []
    for places in groups.values():
        first = places[0].of
        rows = tuple(replace(place.row, footnotes=()) for place in places)
        table = replace(first.table, setting=None, backbone=None, rows=rows, footnotes=(), notes=())
        tables.append(replace(first, table=table, beside=()))
    return tables, links


def describe(cell: ScoreCell) -> str:
    """ "6 seeds, 18,850 items; 95 % interval 59.27 to 62.43; +0.18 from the baseline" """
    d, spread, against = cell.decimals, cell.spread, cell.against
    parts = [f"{plural(len(cell.values), 'seed')}, {cell.n:,} items"]
    if spread:
        ends = f"{score(spread.low, d)} to {score(spread.high, d)}"
        parts.append(f"{100 * spread.level:g} % interval {ends}")
    if against:
        parts.append(f"{signed_number(against.difference, d)} from the baseline")
    return "; ".join(parts)


def runs_grid(board: Board, method: str) -> Grid:
    """Every run of the method, by setting, backbone, variant and seed."""
    runs = [run for run in board.runs if run.record.method == method]
    order = {run.record.run_id: run.record for run in runs}
    rows = []
    for run in sorted(
        runs,
        key=lambda run: (
            run.record.setting,
            run.record.backbone,
            run.record.variant,
            -1 if run.record.seed is None else run.record.seed,
        ),
    ):
        record, seconds = order[run.record.run_id], run.record.cost.train_seconds
        trusted = run.submitted_by is None  # else time and date are the sender's word
        rows.append(
            (
                Cell(text=record.run_id, link=run_link(board, record.run_id, UP)),
                f"{setting_words(record.setting)}, {record.backbone_name}",
                "any" if record.seed is None else str(record.seed),
                heads(record),
                run.submitted_by or "",
                duration(seconds) if trusted and seconds else "",
                record.provenance.created[:10] if trusted else "",
            )
        )
    seed, time = Column("seed", right=True), Column("training", right=True)
    return grid(("run", "setting, backbone", seed, "averages", "run by", time, "made"), rows)


# --- the recipes that lie next to a method: each value, which recipes have it, and its source ---


def recipe_grids(described: MethodDescription) -> list[tuple[str, Grid]]:
    """Of each setting: its title, and a line for each value that comes from one source."""
    entries = sorted(described.file.recipes, key=lambda entry: entry.backbone == "builtin")
    settings = dict.fromkeys(entry.setting for entry in described.file.recipes)
    return [
        (
            setting_words(setting),
            recipe_grid([entry for entry in entries if entry.setting == setting]),
        )
        for setting in settings
    ]


def recipe_grid(entries: Sequence[Entry]) -> Grid:
    names = {
        id(entry): entry.backbone + f" +{entry.variant}" * bool(entry.variant) for entry in entries
    }
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key in dict.fromkeys(key for entry in entries for key in recipe_lines(entry)):
        for entry in entries:
            if key in (lines := recipe_lines(entry)):
                groups.setdefault((key, *lines[key]), []).append(names[id(entry)])
    rows, last = [], ""
    for (key, value, source), recipes in groups.items():
        of = "all" if len(recipes) == len(entries) else ", ".join(recipes)
        rows.append(("" if key == last else key, value, of, source))
        last = key
    return grid(("value of", "is", "for", "from"), rows)


def recipe_lines(entry: Entry) -> dict[str, tuple[str, str]]:
    """Name -> (value, source) of everything that a recipe says: its values, then what its source says and no value changes."""
    lines = {"corpus": (entry.corpus, "")} if entry.corpus else {}
    lines |= {key: _sourced(value) for key, value in entry.values.items()}
    if entry.expect:
        lines["paper's Avg."] = (
            f"{entry.expect['value']:.2f}",
            str(entry.expect.get("source", "")),
        )
    lines |= {f"{key} (stated)": _sourced(value) for key, value in entry.facts.items()}
    return lines | ({"note": (entry.note, "")} if entry.note else {})


def _sourced(value: Any) -> tuple[str, str]:
    return value_text(value.value), "; ".join(filter(None, (value.source, value.note)))


def disagreements(listed: Sequence[Disagreement]) -> Grid:
    return grid(
        ("about", "the paper", "the code", "here"),
        [(one.topic, one.paper, one.code, one.use) for one in listed],
    )


# --- how its values were searched ---


def searched(search: Search, method: str) -> dict[str, Any]:
    """A search as a section of the page: how, with which command, every trial of the method, and where all trials are as data."""
    study = search.study
    return {
        "study": study,
        "command": without_folders(study.command),
        "data": link(search_file(search.name, "json"), UP),
        "trials": trials_grid(search, method),
    }


def trials_grid(search: Search, method: str) -> Grid:
    """The values and the dev score of each trial, and the expected best of so many."""
    trials, keys = search.trials[method], list(search.study.methods[method].space)
    counted = [trial for trial in trials if trial.number != RECIPE and trial.state != "running"]
    expected = iter(expected_best([trial.score for trial in counted]))
    best = best_trial(trials)
    rows = []
    for trial in trials:
        ahead = next(expected, None) if trial in counted else None
        is_best = best is not None and trial.number == best.number
        rows.append(
            (
                "the recipe as it is" if trial.number == RECIPE else f"trial {trial.number}",
                *(value_text(trial.values[key]) if key in trial.values else "" for key in keys),
                Cell(text=trial.state) if trial.score is None else Cell(number=trial.score),
                "best" if is_best else "",
                "" if ahead is None else score(ahead),
            )
        )
    numbers = [Column(name, right=True) for name in (*keys, search.study.select_on)]
    return grid([method, *numbers, "", Column("expected best of so many", right=True)], rows)
