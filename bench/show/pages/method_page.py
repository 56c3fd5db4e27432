"""The page of one method: how it works, its numbers on all tables, its runs, its recipes, its searches, and what papers printed of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.base.text import duration, value_text
from bench.board.board import Board, MethodDescription, link
from bench.board.repeat import repeat_search
from bench.compare.docstrings import Block, blocks, spans
from bench.compare.formatting import heads, score, setting_words
from bench.compare.statistics.table import Row, Table
from bench.records.searches import RECIPE, Search, best_trial, expected_best
from bench.run.recipes import Entry
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import render_template, run_link
from bench.show.pages.printed import printed_papers
from bench.show.pages.run_page import remarks, sentences
from bench.show.tables.scores import score_grid

UP = 1  # folders between a method's page and its version


def render(board: Board, method: str) -> str:
    """The page ``methods/<method>.html`` as HTML, a function of the board and of the method's source where it is installed."""
    described = board.described.get(method)
    plugins = (run.record.provenance.plugin for run in board.runs if run.record.method == method)
    stated = described.file.disagreements if described else ()
    return render_template(
        "method.html",
        board=board,
        up=UP,
        method=method,
        one=described,
        code=sorted({f"{one.package} {one.version}" for one in plugins if one.package}),
        notes=[" ".join(sentences(board.note or "")[:2]), *remarks(board, method)],
        paragraphs=paragraphs(described) if described else [],
        spans=spans,
        value_text=value_text,
        tables=method_tables(board, method),
        runs=runs_grid(board, method),
        recipes=recipe_grids(described) if described else [],
        searches=[one for one in board.searches if method in one.trials],
        search_command=repeat_search,
        trials=trials_grid,
        disagreements=grid(
            ("about", "the paper", "the code", "here"),
            [(one.topic, one.paper, one.code, one.use) for one in stated],
        ),
        papers=printed_papers(board, method, UP),
    )


def paragraphs(described: MethodDescription) -> list[Block]:
    """What the method says of itself, without a first line that is the paper's title, which the citation has too."""
    first, *others = blocks(described.about) or (Block("paragraph", ""),)
    texts, cited = (
        set(re.findall(r"\w{4,}", text.lower())) for text in (first.text, described.cls.paper)
    )
    is_title = first.kind == "paragraph" and len(texts & cited) > len(texts) / 2
    return others if is_title else [first, *others]


def method_tables(board: Board, method: str) -> list[tuple[Table, Grid]]:
    """The rows of the method, one table per suite and protocol, whatever the setting and backbone. Each row leads to its table."""
    groups: dict[tuple[object, ...], list[tuple[str, Table, Row]]] = {}
    for shown, row in board.rows:
        if row.method == method:
            table = shown.table
            groups.setdefault(
                (
                    table.suite,
                    table.budget,
                    table.protocol,
                    table.text,
                    table.metric,
                    table.columns,
                ),
                [],
            ).append((f"{link('index.html', UP)}#{shown.anchor}", table, row))
    made = []
    for lines in groups.values():
        table = replace(
            lines[0][1],
            setting=None,
            backbone=None,
            rows=tuple(replace(row, footnotes=(), cost=None) for _, _, row in lines),
            footnotes=(),
        )
        made.append(
            (
                table,
                _linked(score_grid(table, intervals=True), [address for address, _, _ in lines]),
            )
        )
    return made


def _linked(table: Grid, addresses: Sequence[str]) -> Grid:
    """The columns that rank come first, without their ±, which each number has; the name of each row leads to its address. What papers printed stands indented below a row."""
    places = iter(addresses)
    rows = [
        (name if name.text.startswith(" ") else replace(name, link=next(places)), *rest)
        for name, *rest in table.rows
    ]
    order = sorted(
        [i for i, column in enumerate(table.columns) if column.name != "±"],
        key=lambda i: (i > 0, not table.columns[i].lead),
    )
    return grid([table.columns[i] for i in order], [[row[i] for i in order] for row in rows])


def runs_grid(board: Board, method: str) -> Grid:
    """Every run of the method, by setting, backbone, variant and seed."""
    rows = []
    records = sorted(
        (run.record for run in board.runs if run.record.method == method),
        key=lambda one: (
            one.setting,
            one.backbone,
            one.variant,
            -1 if one.seed is None else one.seed,
        ),
    )
    for record in records:
        seconds = record.cost.train_seconds
        sender = board.senders.get(record.run_id)  # whose word time and date would be
        rows.append(
            (
                Cell(text=record.run_id, link=run_link(board, record.run_id, UP)),
                f"{setting_words(record.setting)}, {record.backbone_name}",
                "any" if record.seed is None else str(record.seed),
                heads(record),
                sender or "",
                duration(seconds) if seconds and not sender else "",
                "" if sender else record.provenance.created[:10],
            )
        )
    seed, time = Column("seed", right=True), Column("training", right=True)
    return grid(("run", "setting, backbone", seed, "averages", "run by", time, "made"), rows)


# --- the recipes that lie next to a method: each value, which recipes have it, and its source ---


def recipe_grids(described: MethodDescription) -> list[tuple[str, Grid]]:
    """Of each setting: its title, and a line for each value that comes from one source."""

    return [
        (
            setting_words(setting),
            recipe_grid(
                sorted(
                    (entry for entry in described.file.recipes if entry.setting == setting),
                    key=lambda entry: entry.backbone == "builtin",
                )
            ),
        )
        for setting in dict.fromkeys(entry.setting for entry in described.file.recipes)
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


# --- how its values were searched ---


def trials_grid(search: Search, method: str) -> Grid:
    """The values and the dev score of each trial, and the expected best of so many."""
    trials, keys = search.trials[method], list(search.study.methods[method].space)
    counted = [trial for trial in trials if trial.number != RECIPE and trial.state != "running"]
    expected = iter(expected_best([trial.score for trial in counted]))
    best = best_trial(trials)
    rows = []
    for trial in trials:
        ahead = next(expected, None) if trial in counted else None
        rows.append(
            (
                "the recipe as it is" if trial.number == RECIPE else f"trial {trial.number}",
                *(value_text(trial.values[key]) if key in trial.values else "" for key in keys),
                Cell(text=trial.state) if trial.score is None else Cell(number=trial.score),
                "best" if (best is not None and trial.number == best.number) else "",
                "" if ahead is None else score(ahead),
            )
        )
    return grid(
        [
            method,
            *(Column(name, right=True) for name in (*keys, search.study.select_on)),
            "",
            Column("expected best of so many", right=True),
        ],
        rows,
    )
