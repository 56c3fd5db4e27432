"""The letters at rows that differ from most: at most five, grouped by meaning."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import record

from bench.board.pages.row_letters import (
    letters_grid,
    row_differences,
    row_letters,
    table_letters,
)
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Footnote, Table

NOTES = (
    Footnote("values", "paper", "flow", "tuned: 6 trials"),
    Footnote("search", "v4", "tsdae", "v3"),
    Footnote("learning_rate", "0.001", "flow", "searched"),
    Footnote("steps", "313", "flow", "100"),
    Footnote("batch_size", "32", "flow", "64"),
    Footnote("max_seq_length", "75", "tsdae", "32"),
    Footnote("training text", "a tenth of STS12", "cosent"),
    Footnote("torch", "2.1", "cosent", "2.6"),
    Footnote("some new setting", "1", "cosent", "2"),
)
OF_ROWS = {"flow": (0, 2, 3, 4), "tsdae": (1, 5), "cosent": (6, 7, 8), "simcse": ()}


@pytest.fixture
def table() -> Table:
    (plain,) = summarise([record(name, 1) for name in OF_ROWS])
    rows = tuple(replace(row, footnotes=OF_ROWS[row.method]) for row in plain.rows)
    return replace(plain, rows=rows, footnotes=NOTES)


def test_settings_of_one_meaning_have_one_letter(table: Table) -> None:
    letters = {row.method: row_letters(row, table) for row in table.rows}
    assert letters == {"flow": "a b", "tsdae": "a c", "cosent": "a d e", "simcse": ""}
    assert [one.letter for one in table_letters(table).values()] == list("abcde")
    meanings = [one.meaning for one in table_letters(table).values()]
    assert len(set(meanings)) == 5 and "tuned" in meanings[0] and "batch size" in meanings[1]


def test_letters_are_those_of_the_groups_that_the_table_has(table: Table) -> None:
    rows = tuple(
        replace(row, footnotes=(5,) if row.method == "tsdae" else ()) for row in table.rows
    )
    few = replace(table, rows=rows)
    assert [row_letters(row, few) for row in rows if row.footnotes] == ["a"]
    assert "sentence length" in next(iter(table_letters(few).values())).meaning
    none = replace(table, rows=tuple(replace(row, footnotes=()) for row in rows))
    assert table_letters(none) == {}


def test_the_exact_difference_is_in_the_panel_and_below(table: Table) -> None:
    (flow,) = (row for row in table.rows if row.method == "flow")
    assert row_differences(flow, table)[2:] == [
        "steps 313 (most rows: 100)",
        "batch_size 32 (most rows: 64)",
    ]
    grid = letters_grid(table)
    assert len(grid.rows) == len(NOTES)
    letters = [row.cells[0].main for row in grid.rows]
    assert letters == sorted(letters) and set(letters) == set("abcde")
