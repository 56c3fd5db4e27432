"""The main page of a version: one sentence that answers, the tables, figures, printed numbers, how
it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from bench.base.foreign_text import make_visible
from bench.base.grid import Grid, GridCell, grid
from bench.base.paths import path_name
from bench.base.text import capitalised, list_names
from bench.board.board import PREVIEW, PREVIEW_NOTE, Board
from bench.board.figures import Figure
from bench.board.pages.claims import ClaimGrids
from bench.board.pages.engine import render_template
from bench.board.pages.gain_sizes import GainSizes
from bench.board.pages.intervals import drawn_rows
from bench.board.pages.links import method_link, method_paper_url
from bench.board.pages.matrix import open_cells, other_findings, shown_matrix
from bench.board.pages.new_row import command_for_row
from bench.board.pages.panel import as_script, panel_data
from bench.board.pages.printed import printed_papers
from bench.board.pages.questions import answered_questions
from bench.board.pages.run_page import run_facts, sentences
from bench.board.pages.words import plain_text
from bench.board.tables import BoardTable, PageTable, board_tables
from bench.compare.forms.scores import (
    NUMBERS,
    beside_names,
    beside_texts,
    number_texts,
    trained_with_grid,
)
from bench.compare.statistics.table import Row, Table
from bench.compare.words.finding import find, main_table, table_finding, verdict_word
from bench.compare.words.legend import HOW_TO_READ, legend, legend_line
from bench.compare.words.names import (
    SEVERAL,
    budget_words,
    level_words,
    method_title,
    row_details,
    row_name,
    setting_words,
    table_name,
    versus,
)
from bench.compare.words.notes import note_lines
from bench.papers import papers
from bench.papers.names import printed_name
from bench.records.record import RunRecord
from bench.records.run import Run


def render_board(
    board: Board,
    figures: Sequence[Figure] = (),
    claims: ClaimGrids | None = None,
    sizes: GainSizes | None = None,
) -> str:
    """Write the page as HTML; it links to board.css and board.js in ``assets/``."""
    note = sentences(board.note or "")
    tables = [shown.table for shown in board.tables]
    main = main_table(tables)
    return render_template(
        "board.html",
        board=board,
        up=0,
        finding=find(tables),
        place=table_name(main) if main is not None else "",
        one_file=board.one_file,
        preview=PREVIEW_NOTE if board.version == PREVIEW else "",
        note=" ".join(note[:2]),
        more_note=" ".join(note[2:]),
        command_for_row="" if board.one_file else command_for_row(board),
        switches=switches(board.tables),
        several=SEVERAL,
        method_title=method_title,
        row_details=row_details,
        row_name=row_name,
        table_name=table_name,
        note_lines=note_lines,
        trained_with=trained_with_grid,
        known_numbers=known_numbers,
        number_texts=texts_of_numbers,
        legend_line=legend_line,
        how_to_read=HOW_TO_READ,
        details_of=details_of,
        anchors=board.row_anchors,
        matrix=shown_matrix(board),
        other_findings=other_findings(board),
        open_cells=open_cells(board),
        plain_text=plain_text,
        citations={paper.name: paper.citation for paper in papers().values()},
        versus=versus,
        level_words=level_words,
        verdict_word=verdict_word,
        table_finding=table_finding,
        drawn_rows=drawn_rows,
        figures=figures,
        claims=claims,
        questions=answered_questions(board),
        gain_sizes=sizes,
        methods=methods_grid(board),
        papers=printed_papers(board),
        about=partial(run_facts, board),
        data=as_script(panel_data(board)),
    )


def comparison(
    runs: Sequence[Run], tables: Sequence[Table], title: str = "Comparison", note: str | None = None
) -> str:
    """Write the main page of any runs and their tables as one file, with everything about each run;
    no network.

    The same runs make the same bytes.
    """
    in_rows: set[str] = set()
    for table in tables:
        in_rows.update(run for row in table.rows for run in row.runs)
    shown = [run for run in runs if run.record.run_id in in_rows]
    return render_board(
        Board(
            version=PREVIEW,
            date=max((run.record.provenance.created for run in shown), default="")[:10],
            title=title,
            note=note,
            answer=find(tables).text,
            runs=tuple(shown),
            left_out=(),
            tables=board_tables(tables, {run.record.run_id: run.record for run in shown}),
            one_file=True,
        )
    )


def details_of(page: PageTable) -> list[str]:
    """Return what may be known of a table besides its notes, a sentence each."""
    said = [f"{capitalised(text)}." for text in legend(page.shown.table, "shaded")]
    return [*said, *filter(None, (page.shown.selection, page.shown.cost_note))]


def known_numbers(table: Table) -> list[str]:
    """Name the further measures of a table, and the columns of ``NUMBERS`` that it has."""
    known = [name for name in NUMBERS if any(number_texts(row)[name][0] for row in table.rows)]
    return [*beside_names(table), *known]


def texts_of_numbers(row: Row) -> Mapping[str, tuple[str, float | None]]:
    """Return these of a row, each as a text and as a number."""
    return number_texts(row) | beside_texts(row)


def switches(tables: Sequence[BoardTable]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return key -> value -> (as the reader sees it, id of the first table that has it), for keys
    with several values."""
    values_of: dict[str, dict[str, tuple[str, str]]] = {}
    for shown in tables:
        table = shown.table
        values = {
            "setting": (table.setting or "", setting_words(table.setting)),
            "backbone": (table.backbone or SEVERAL, table.backbone or SEVERAL),
            "suite": (table.suite, table.suite),
        }
        if table.length:  # of a setting and backbone with several
            values["length"] = table.length, budget_words(table.length)
        for key, (value, text) in values.items():
            values_of.setdefault(key, {}).setdefault(make_visible(value), (text, shown.anchor))
    return {key: options for key, options in values_of.items() if len(options) > 1}


def methods_grid(board: Board) -> Grid:
    """List every method of the board's rows with its summary and paper, or with the origin of its
    code if it is not described."""
    rows: list[list[GridCell | str]] = []
    for method in board.methods:
        name = GridCell(text=printed_name(method), link=method_link(board, method))
        described = board.described.get(method)
        if described is not None:
            paper = described.cls.paper
            cited = GridCell(text=paper, link=method_paper_url(method, paper))
            rows.append([name, plain_text(described.cls.summary), cited])
            continue
        records = [run.record for run in board.runs if run.record.method == method]
        if not any(record.evaluated_as for record in records):
            rows.append([name, code_origin(records), ""])
    return grid(("method", "what it is", "paper"), rows)


def code_origin(records: Sequence[RunRecord]) -> str:
    """Return "a method of mine.py"; "" if no record names the file of the code."""
    packages = {record.provenance.plugin.package for record in records}
    names = sorted({path_name(package) for package in packages if package})
    return f"a method of {list_names(names)}" if names else ""
