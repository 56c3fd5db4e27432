"""The planned questions beside the main one: each row that they judge, with its difference from its
own baseline in every suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.base.grid import Grid, grid
from bench.board.board import Board
from bench.board.matrix import MatrixCell, other_questions
from bench.board.pages.links import method_link
from bench.board.pages.matrix import ShownCell, ShownRow, cell_texts, shown_cell
from bench.board.tables import BoardTable
from bench.compare.words.names import baseline_name, row_name, setting_words, suite_name


class AnsweredQuestion(NamedTuple):
    """A question of a plan, and the rows that answer it."""

    text: str
    # "SimCSE, supervised": what the rows are compared with, and their setting
    against: str
    # a cell per column of ``AnsweredQuestions``
    rows: Sequence[ShownRow]


class AnsweredQuestions(NamedTuple):
    """The questions that the matrix does not answer."""

    # "STS", "CxC", ...
    columns: Sequence[str]
    questions: Sequence[AnsweredQuestion]


def answered_questions(board: Board) -> AnsweredQuestions | None:
    """Return the planned questions that the headline and the matrix do not answer; None if there
    are none."""
    shown_on_page = {page.shown.anchor for page in board.page_tables}
    asked: dict[tuple[str, str], list[BoardTable]] = {}
    for shown in other_questions(board.tables, board.matrix):
        if shown.table.head is not None and shown.anchor in shown_on_page:
            against = f"{baseline_name(shown.table)}, {setting_words(shown.table.setting)}"
            asked.setdefault((shown.table.question, against), []).append(shown)
    scored = {shown.table.suite for tables in asked.values() for shown in tables}
    in_order = dict.fromkeys(shown.table.suite for shown in board.tables)
    columns = [suite for suite in in_order if suite in scored]
    questions = []
    for (text, against), tables in asked.items():
        questions.append(AnsweredQuestion(text, against, _rows(board, tables, columns)))
    if not questions:
        return None
    return AnsweredQuestions([suite_name(suite) for suite in columns], questions)


def _rows(board: Board, tables: Sequence[BoardTable], columns: Sequence[str]) -> list[ShownRow]:
    """Return a row for each that the tables of one question judge, with a cell per suite."""
    cells: dict[tuple[str, str], dict[str, ShownCell]] = {}  # by the row's name and page
    for shown in tables:
        for place, row in enumerate(shown.table.rows):
            if row.is_asked_about and not row.is_baseline:
                key = row_name(row, shown.table), method_link(board, row.method)
                cell = MatrixCell(shown=shown, place=place, row=row)
                anchor = board.row_anchors[shown.anchor, place]
                cells.setdefault(key, {})[shown.table.suite] = shown_cell(cell, anchor)
    rows = []
    for (name, page), of_row in cells.items():
        in_order = [of_row.get(suite) for suite in columns]
        rows.append(ShownRow(name=name, page=page, claimed="", of="", cells=in_order))
    return rows


def questions_grid(answered: AnsweredQuestions) -> Grid:
    """Lay out the questions as a table of texts, for Markdown."""
    lines = []
    for question in answered.questions:
        for row in question.rows:
            lines.append([question.text, row.name, question.against, *cell_texts(row)])
    return grid(["question", "row", "against", *answered.columns], lines)
