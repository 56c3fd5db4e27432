"""The planned questions beside the main one: what each of their tables finds, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.board.board import Board
from bench.board.matrix import other_questions
from bench.compare.words.finding import table_finding
from bench.compare.words.names import setting_words, suite_name


class Answer(NamedTuple):
    """What one table finds."""

    # "CxC, supervised"
    where: str
    sentence: str
    # the table's address on the page
    anchor: str


class AnsweredQuestion(NamedTuple):
    """A question of a plan, and the answer of each of its tables."""

    text: str
    answers: Sequence[Answer]


def answered_questions(board: Board) -> list[AnsweredQuestion]:
    """Return the planned questions that the headline and the matrix do not answer."""
    shown_on_page = {page.shown.anchor for page in board.page_tables}
    answers: dict[str, list[Answer]] = {}
    for shown in other_questions(board.tables, board.matrix):
        table = shown.table
        sentence = table_finding(table).text
        if sentence and shown.anchor in shown_on_page:
            where = f"{suite_name(table.suite)}, {setting_words(table.setting)}"
            answer = Answer(where, sentence, shown.anchor)
            answers.setdefault(table.question, []).append(answer)
    return [AnsweredQuestion(text, of_text) for text, of_text in answers.items()]
