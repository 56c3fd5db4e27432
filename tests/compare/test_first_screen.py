"""The first screen of ``bench compare``: verdicts in words, notes in letters, names of tables."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from judged_rows import judged_row, judged_table
from rich.console import Console

from bench.base.printing import draw_grid, drawn_text
from bench.compare.formatting import budget_words
from bench.compare.forms.first_screen import (
    table_names,
    table_title,
    untrained_line,
    verdict_grid,
    verdict_legend,
)
from bench.compare.forms.row_notes import note_rows
from bench.compare.statistics.table import Footnote, Table

BASE = judged_row("simcse", 60.0)


def made() -> Table:
    """Make a table in which rows differ in search, source of values, length and version."""
    rows = [
        judged_row("tsdae", 62.0, "better", top=True, footnotes=(0, 3), values="tuned: 6 trials"),
        replace(BASE, values="tuned: 6 trials"),
        judged_row("flow", 59.0, "inconclusive", footnotes=(1, 4, 5, 6), values="paper"),
        judged_row("ct", 55.0, "worse", variant="big", footnotes=(2, 7), values="tuned: 6 trials"),
        replace(judged_row("pcl", 54.0), untested="fewer than three seeds", setting="none"),
    ]
    notes = (
        Footnote("search", "second", "tsdae", "first"),
        Footnote("values", "paper", "flow", "tuned: 6 trials"),
        Footnote("max_seq_length", "128", "ct", "32"),
        Footnote("max_seq_length", "50", "tsdae", "32"),
        Footnote("steps", "313", "flow", "100"),
        Footnote("batch_size", "16", "flow", "64"),
        Footnote("learning_rate", "0.001", "flow", "searched"),
        Footnote("torch", "2.9", "ct", "2.13"),
        Footnote("protocol", "senteval-wmean/1 only", "old", "senteval-all/1"),
    )
    return replace(judged_table(*rows, tested=4, baseline="simcse"), footnotes=notes)


def test_notes_are_grouped_by_meaning() -> None:
    notes = [(note.letter, note.text, sorted(note.rows)) for note in note_rows(made())]
    assert notes == [
        ("a", "tuned in another search than most rows (6 trials each)", [0]),
        ("b", "not tuned: flow (published values, 313 steps of 16)", [2]),
        ("c", "other sentence length: 50 to 128 tokens instead of 32", [0, 3]),
        ("d", "made with other versions: torch 2.9 instead of 2.13", [3]),
        (
            "",
            "protocol: senteval-wmean/1 only (old) instead of senteval-all/1",
            [],
        ),
    ]


def test_settings_of_tuned_rows_are_told_with_their_values() -> None:
    table = made()
    rows = tuple(replace(row, values="tuned: 6 trials", footnotes=()) for row in table.rows)
    rows = (replace(rows[0], footnotes=(0, 1)), replace(rows[1], footnotes=(2,)), *rows[2:])
    notes = (
        Footnote("batch_size", "32", "tsdae", "64"),
        Footnote("values", "tuned: 12 trials", "tsdae", "tuned: 6 trials"),
        Footnote("batch_size", "128", "simcse", "64"),
    )
    told = [note.text for note in note_rows(replace(table, rows=rows, footnotes=notes))]
    assert told == [
        "values from another source than in most rows: tsdae (tuned: 12 trials)",
        "batch_size: 32 and 128 instead of 64",
    ]


def test_each_row_has_its_verdict_in_words() -> None:
    table = made()
    console = Console(file=io.StringIO(), width=120)
    shown = draw_grid(verdict_grid(table, note_rows(table), "made"), console, 120)
    lines = drawn_text(shown, console).splitlines()
    assert lines[0] == "made"
    assert lines[2].startswith("tsdae ◆ ") and lines[2].endswith("▲ better    a c")
    assert lines[3].startswith("simcse ") and lines[3].endswith("baseline")
    assert lines[4].startswith("flow ") and lines[4].endswith("b")
    assert lines[5].startswith("ct+big ") and lines[5].endswith("▼ worse     c d")
    assert lines[6].endswith("not tested")
    assert {line.count("[") for line in lines[2:6]} == {0, 1}


def test_the_legend_explains_only_signs_of_the_table() -> None:
    whole = "\n".join(verdict_legend(made()))
    assert all(sign in whole for sign in ("◆", "▲", "▼", "blank")) and "3 comparisons" in whole
    assert "2.0 points (median)" in whole
    rows = (judged_row("bad", 50.0, "worse"), BASE)
    less = "\n".join(verdict_legend(judged_table(*rows, tested=2, baseline="simcse")))
    assert "▼" in less and not any(sign in less for sign in ("◆", "▲", "blank", "(median)"))
    assert "1 comparison)" in less


def test_tables_are_named_by_what_sets_them_apart() -> None:
    first = made()
    others = [
        replace(first, setting="supervised"),
        replace(first, length="1000steps"),
        replace(first, setting="none", backbone=None),
        replace(first, suite="cxc", protocol="cxc-parekh/1"),
        replace(first, suite="cxc", protocol="cxc-promcse/1"),
        replace(first, protocol="senteval-wmean/1"),
    ]
    assert table_names(others, first) == [
        "STS, supervised",
        "STS, 1,000 steps",
        "STS, finished encoders",
        "CxC (cxc-parekh/1)",
        "CxC (cxc-promcse/1)",
        "STS (senteval-wmean/1)",
    ]
    assert [budget_words(text) for text in ("1000steps", "10m", "1e6sentences", "")] == [
        "1,000 steps",
        "10m",
        "1e6sentences",
        "",
    ]


def test_the_title_has_the_steps_of_most_runs() -> None:
    def records(*steps: int) -> dict[str, Any]:
        return {
            str(i): SimpleNamespace(training=SimpleNamespace(steps=count))
            for i, count in enumerate(steps)
        }

    rows = [replace(BASE, runs=("0", "1", "2"))]
    table = judged_table(*rows, baseline="simcse")
    assert table_title(table, records(100, 100, 313)) == (
        "STS, unsupervised, built-in backbone, 100 steps, 3 seeds"
    )
    assert "steps" not in table_title(table, records(100, 200, 300))
    assert "steps" not in table_title(table, {})


def test_untrained_rows_are_named_unless_all_are() -> None:
    assert untrained_line(made()) == "encoder not trained: pcl"
    every = tuple(replace(row, setting="none") for row in made().rows)
    assert untrained_line(replace(made(), rows=every)) == ""
