"""The page of one method: how it works, its numbers on all tables, its runs, recipes and searches,
and its printed numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.base.grid import Grid, GridCell, GridColumn, grid, indented
from bench.base.text import format_duration, value_text
from bench.board.addresses import link, method_file
from bench.board.board import Board, MethodDescription
from bench.board.pages.claims import claims_of_method
from bench.board.pages.drawings import learning_curve
from bench.board.pages.engine import render_template
from bench.board.pages.links import minus, run_link
from bench.board.pages.printed import printed_papers
from bench.board.pages.recipes import recipe_grids, trials_grid
from bench.board.pages.run_page import sentences
from bench.board.pages.words import plain_text
from bench.compare.docstrings import Block, blocks, spans
from bench.compare.formatting import heads
from bench.compare.forms.scores import score_grid
from bench.compare.statistics.table import Row, Table
from bench.compare.words.names import level_words, row_name, setting_words, versus
from bench.papers import papers
from bench.papers.names import printed_name
from bench.records.run import Run

UP = 1
"""Folders between a method's page and its version."""


def render_method(board: Board, method: str) -> str:
    """Write ``methods/<method>.html``, a function of the board, of one row's curves, and of the
    method's source if it is installed."""
    described = board.described.get(method)
    plugins = (run.record.provenance.plugin for run in board.runs if run.record.method == method)
    stated = described.file.disagreements if described else ()
    return render_template(
        "method.html",
        board=board,
        up=UP,
        method=method,
        name=printed_name(method),
        page=f"{method_file(method)}.html",
        plain_text=plain_text,
        one=described,
        code=sorted({f"{code.package} {code.version}" for code in plugins if code.package}),
        note=" ".join(sentences(board.note or "")[:2]),
        paragraphs=paragraphs(described) if described else [],
        spans=spans,
        value_text=value_text,
        claims=claims_of_method(board, method),
        tables=method_tables(board, method),
        runs=runs_grid(board, method),
        curve=method_curve(board, method),
        recipes=recipe_grids(described) if described else [],
        searches=[search for search in board.searches if method in search.trials],
        trials=trials_grid,
        disagreements=grid(
            ("about", "the paper", "the code", "here"),
            [(entry.topic, entry.paper, entry.code, entry.use) for entry in stated],
        ),
        papers=printed_papers(board, method, UP),
        citations={paper.name: paper.citation for paper in papers().values()},
    )


def paragraphs(described: MethodDescription) -> list[Block]:
    """Return the method's description, without a first line that is the paper's title: the citation
    has it."""
    first, *others = blocks(described.about) or (Block("paragraph", ""),)
    texts, cited = (
        set(re.findall(r"\w{4,}", text.lower())) for text in (first.text, described.cls.paper)
    )
    is_title = first.kind == "paragraph" and len(texts & cited) > len(texts) / 2
    return others if is_title else [first, *others]


def method_tables(board: Board, method: str) -> list[tuple[Table, Grid]]:
    """Lay out the rows of the method: those in one table that have the same columns, baseline and
    level of intervals. Each row links to its table."""
    groups: dict[tuple[object, ...], list[tuple[str, Table, Row]]] = {}
    for page in board.page_tables:
        table = page.shown.table
        address = f"{link('index.html', UP)}#{page.shown.anchor}"
        measured = (table.suite, table.budget, table.text, table.protocol, table.metric)
        alike = (*measured, table.columns, versus(table), level_words(table))
        for row in table.rows:
            if row.method == method:
                groups.setdefault(alike, []).append((address, table, row))
    made = []
    for lines in groups.values():
        table = replace(
            lines[0][1],
            setting=None,
            backbone=None,
            notes=(),
            rows=tuple(replace(row, cost=None, trained_with={}) for _, _, row in lines),
        )
        addresses = [address for address, _, _ in lines]
        made.append((table, _linked(score_grid(table, intervals=True), addresses)))
    return made


def _linked(table: Grid, addresses: Sequence[str]) -> Grid:
    """Link each row to its address. The page explains the signs of all of its tables above them.

    Indented rows, of numbers that papers published, belong to the row above and have no address.
    """
    remaining = iter(addresses)
    rows = []
    for row in table.rows:
        cells = [replace(cell, text=minus(cell.text)) for cell in row]
        if not row.indent:
            cells[0] = replace(row[0], link=next(remaining))
        rows.append(indented(cells, levels=row.indent))
    return grid(table.columns, rows)


def method_curve(board: Board, method: str) -> dict[str, Any] | None:
    """Draw the learning curves of the method's first row that has some, with its first run."""
    by_id = {run.record.run_id: run for run in board.runs}
    for shown, row in board.rows:
        if row.method == method and not shown.table.sender:
            curve = learning_curve([by_id[run] for run in row.runs])
            if curve is not None:
                return curve | {"run": row.runs[0], "of": row_name(row, shown.table)}
    return None


def runs_of(board: Board, method: str) -> list[Run]:
    """Return every run of the method, by setting, backbone, variant and seed."""

    def order(run: Run) -> tuple[str, str, str, int]:
        record = run.record
        seed = -1 if record.seed is None else record.seed
        return record.setting, record.backbone, record.variant, seed

    return sorted((run for run in board.runs if run.record.method == method), key=order)


def runs_grid(board: Board, method: str) -> Grid:
    """List every run of the method."""
    rows = []
    for run in runs_of(board, method):
        record = run.record
        seconds = record.cost.train_seconds
        # time and date of a submitted run would only be its sender's word
        sender = board.senders.get(record.run_id)
        rows.append(
            (
                GridCell(text=record.run_id, link=run_link(board, record.run_id, UP)),
                f"{setting_words(record.setting)}, {record.backbone_name}",
                "none" if record.seed is None else str(record.seed),
                heads(record),
                sender or "",
                format_duration(seconds) if seconds and not sender else "",
                "" if sender else record.provenance.created[:10],
            )
        )
    seed = GridColumn("seed", right=True)
    time = GridColumn("training", right=True)
    return grid(("run", "setting, backbone", seed, "averages", "run by", time, "made"), rows)
