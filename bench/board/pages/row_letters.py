"""The letters at the rows of a table that differ from most rows, grouped by meaning: at most five.

What exactly differs in a row is in its panel, and in the table that unfolds below.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.base.grid import Grid, GridColumn, grid
from bench.compare.footnotes import LIBRARIES
from bench.compare.statistics.rows import CODE
from bench.compare.statistics.table import Footnote, Row, Table
from bench.compare.statistics.terms import CORPUS, DEV_SET, PRECISION, PROCESSES, SELECT_ON

VALUES = "values"
LENGTH = "length"
TEXT = "text"
DATA = "data"
CODE_AND_MACHINE = "code"
MEANINGS = {
    VALUES: "recipe values from elsewhere: not tuned, or tuned in another search",
    LENGTH: "another length of training or another batch size",
    TEXT: "another sentence length or protocol",
    DATA: "another training text or development set, or test sentences seen in training",
    CODE_AND_MACHINE: "another version of code or libraries, another precision or machine",
}
"""Group -> its meaning, in the order of the letters."""
GROUPS = {
    "steps": LENGTH,
    "max_steps": LENGTH,
    "epochs": LENGTH,
    "budget": LENGTH,
    "batch_size": LENGTH,
    "max_seq_length": TEXT,
    "protocol": TEXT,
    "training text": DATA,
    CORPUS: DATA,
    DEV_SET: DATA,
    SELECT_ON: DATA,
    CODE: CODE_AND_MACHINE,
    PRECISION: CODE_AND_MACHINE,
    PROCESSES: CODE_AND_MACHINE,
    "backbone revision": CODE_AND_MACHINE,
    "bench": CODE_AND_MACHINE,
    "mteb": CODE_AND_MACHINE,
    **dict.fromkeys(LIBRARIES, CODE_AND_MACHINE),
}
"""Setting of a footnote -> its group; every other setting is a recipe value."""
ALPHABET = "abcde"


@dataclass(frozen=True)
class Letter:
    """One letter of a table."""

    letter: str
    meaning: str


def group_of(note: Footnote) -> str:
    """Return the group of a footnote."""
    return GROUPS.get(note.setting, VALUES)


def table_letters(table: Table) -> dict[str, Letter]:
    """Return group -> its letter, for the groups in which rows of the table differ."""
    present: set[str] = set()
    for row in table.rows:
        present.update(group_of(table.footnotes[i]) for i in row.footnotes)
    groups = [group for group in MEANINGS if group in present]
    letters = {}
    for letter, group in zip(ALPHABET, groups, strict=False):
        letters[group] = Letter(letter, MEANINGS[group])
    return letters


def row_letters(row: Row, table: Table) -> str:
    """Return the letters of a row: "a", "b c"."""
    letters = table_letters(table)
    mine = {letters[group_of(table.footnotes[i])].letter for i in row.footnotes}
    return " ".join(sorted(mine))


def row_differences(row: Row, table: Table) -> list[str]:
    """Return what differs in a row: "steps 313 (most rows: 100)"."""
    texts = []
    for i in row.footnotes:
        note = table.footnotes[i]
        most = f" (most rows: {note.most})" if note.most else ""
        texts.append(f"{note.setting} {note.value}{most}")
    return texts


def letters_grid(table: Table) -> Grid:
    """Lay out every difference with its letter, setting, value and rows."""
    letters = table_letters(table)
    lines = []
    for note in table.footnotes:
        known = letters.get(group_of(note))
        letter = known.letter if known else ""
        lines.append((letter, note.setting, note.value, note.rows, note.most))
    lines.sort(key=lambda line: line[0] or "~")
    wrapped = [GridColumn(name, wrap=16) for name in ("value", "rows", "most rows")]
    return grid(["letter", "setting", *wrapped], lines)
