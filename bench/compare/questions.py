"""The planned questions of runs, and the rows of a table that are judged: its family.

Runs keep the question in their plans. Its comparisons are the family of each table that has such
runs, and all other rows come below them. Without a question the family is all rows that train or
fit something.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.base.errors import BenchError, UnknownName
from bench.base.reading import PLAN_BYTES, read_plain_file
from bench.base.text import list_names
from bench.compare.baseline import compare_with_baseline, find_row
from bench.compare.starts import rows_with_starts
from bench.compare.statistics.table import FOR_COMPARISON, FOR_SCALE, Row, Table, by_standing
from bench.compare.words.names import row_name
from bench.records.names import PLAN
from bench.records.question import Question
from bench.records.run import Run

OPTION = "[question]"
"""How an error on a row's name begins."""


@dataclass(frozen=True)
class Asked:
    """A question, and the runs that have it in their plans."""

    question: Question
    runs: frozenset[str]


def questions_of(runs: Sequence[Run]) -> list[Asked]:
    """Return the questions of the runs' plans that name comparisons: the first one asked comes
    first. A plan that cannot be read has none."""
    having: dict[Question, list[Run]] = {}
    for run in runs:
        question = _question_of(run)
        if question is not None and question.compares:
            having.setdefault(question, []).append(run)

    def first_asked(item: tuple[Question, list[Run]]) -> tuple[object, ...]:
        question, of_question = item
        created = min(run.record.provenance.created for run in of_question)
        return created, question.text, question.baseline, question.rows, question.suites

    return [
        Asked(question, frozenset(run.record.run_id for run in of_question))
        for question, of_question in sorted(having.items(), key=first_asked)
    ]


def _question_of(run: Run) -> Question | None:
    try:
        content = read_plain_file(run.folder / PLAN, PLAN_BYTES, run.folder)
        if b"question" not in content:
            return None
        return Question.of_plan(tomllib.loads(content.decode("utf-8")).get("question", ""))
    except (OSError, ValueError, RecursionError):
        return None


def asked_tables(
    tables: Sequence[Table], asked: Sequence[Asked], baseline: str | None
) -> list[Table]:
    """Return the tables with their baselines and families; ``baseline``: a row that the user names.

    Raises UnknownName if no table has it, and BenchError if it means several rows of a table.
    """
    made = []
    for table in tables:
        made += ask(table, asked, baseline)
    if baseline is not None and not any(table.baseline for table in made):
        rows = [(row, table) for table in tables for row in table.rows]
        names = {row_name(row, of) if row.is_start else row.name for row, of in rows}
        raise UnknownName("baseline", baseline, names, "among these runs")
    return made


def ask(table: Table, asked: Sequence[Asked], baseline: str | None) -> list[Table]:
    """Return the table with its baseline and its family, by the first question that it answers; and
    for each further question one with only its rows and their untrained starts.

    ``baseline``: the row that the user names; then only questions about it count.
    """
    answering = [one for one in asked if _answers(table, one, baseline)]
    if table.head is None or not answering:
        return [with_family(compare_with_baseline(table, baseline), ())]
    made = []
    for number, one in enumerate(answering):
        question = one.question
        planned = {name: _find(table, name, one.runs) for name in question.rows}
        rows = [row for row in planned.values() if row is not None]
        missing = [name for name, row in planned.items() if row is None]
        of_question = replace(table, question=question.text or _rows_of(question))
        if number:
            base = _find(table, question.baseline)
            judged = [row for row in table.rows if row is base or row in rows]
            kept = rows_with_starts(judged, table)
            of_question = replace(of_question, rows=tuple(kept), is_further=True)
        if missing:
            note = f"planned, and not here: {list_names(missing, len(missing))}"
            of_question = replace(of_question, notes=(*of_question.notes, note))
        of_question = compare_with_baseline(of_question, baseline or question.baseline)
        made.append(with_family(of_question, [row.runs for row in rows]))
    return made


def _rows_of(question: Question) -> str:
    """Return the words for a question without a text: "ct and promcse against simcse"."""
    return f"{list_names(question.rows, len(question.rows))} against {question.baseline}"


def _answers(table: Table, asked: Asked, baseline: str | None) -> bool:
    """Say if the table has runs that were made for the question, its baseline and one of its
    rows."""
    question = asked.question
    if question.suites and not {table.suite, table.protocol} & set(question.suites):
        return False
    if not any(asked.runs.intersection(row.runs) for row in table.rows):
        return False
    base = _find(table, question.baseline)
    if base is None or not any(_find(table, name, asked.runs) for name in question.rows):
        return False
    return baseline is None or find_row(table, baseline, "--baseline") is base


def _find(table: Table, name: str, made_for: frozenset[str] = frozenset()) -> Row | None:
    """Return the row of a name, of several the one with runs of ``made_for``; None if the table has
    none, or several."""
    of_question = tuple(row for row in table.rows if made_for.intersection(row.runs))
    for rows in (of_question, table.rows):
        try:
            found = find_row(replace(table, rows=rows), name, OPTION)
        except BenchError:
            continue
        if found is not None:
            return found
    return None


def with_family(table: Table, planned: Sequence[tuple[str, ...]]) -> Table:
    """Return the table with the role of each row; judged rows come first.

    ``planned``: the runs of each row of a question; none: there is no question. In a table of
    ready-made encoders only, they are judged.
    """
    if table.head is None:
        return table
    has_trained = any(row.is_fitted for row in table.rows)
    rows = []
    for row in table.rows:
        stands = ""
        if not row.is_baseline and row.runs not in planned:
            if has_trained and not row.is_fitted:
                stands = FOR_SCALE
            elif planned:
                stands = FOR_COMPARISON
        rows.append(replace(row, stands=stands))
    return replace(table, rows=by_standing(rows))
