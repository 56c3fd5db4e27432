"""The differences between the rows of a table, as lettered notes grouped by meaning.

A table's footnotes have one entry for each setting and value. A reader of the first screen wants to
know which rows are not trained or tuned like the rest, and how: all searches are one note, so are
all sentence lengths.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.base.text import list_names
from bench.compare.footnotes import LIBRARIES
from bench.compare.formatting import command_name
from bench.compare.statistics.table import Footnote, Row, Table
from bench.records.value_sources import OWN, PAPER, TUNED

SEARCH_SETTING = "search"
VALUES_SETTING = "values"
LENGTH_SETTING = "max_seq_length"
EFFORT = ("learning_rate", "batch_size", "steps")
"""Settings that the note on a row's values tells, if the row was not tuned."""
VERSIONS = ("bench", "mteb", *LIBRARIES)
KINDS = {PAPER: "published values", OWN: "default recipe"}
"""Source of a row's values -> how a note calls them."""
MOST_VALUES = 4


@dataclass(frozen=True)
class RowNote:
    """One lettered note. ``rows``: the numbers of the rows with it; none for a note on rows of
    other tables."""

    letter: str
    text: str
    rows: frozenset[int]


def note_rows(table: Table) -> list[RowNote]:
    """Return the notes on rows that differ from most rows of the table, grouped by meaning."""
    told = []
    search = _rows_with(table, _footnotes_of(table, SEARCH_SETTING))
    if search:
        told.append((_search_text(table, search), search))
    values = _footnotes_of(table, VALUES_SETTING)
    untuned = frozenset(_untuned_rows(table, values))
    valued = _rows_with(table, values)
    if valued:
        told.append((_values_text(table, values, untuned), valued))
    lengths = _footnotes_of(table, LENGTH_SETTING)
    if lengths:
        found = [table.footnotes[i] for i in lengths]
        told.append((_length_text(found), _rows_with(table, lengths)))
    versions = [number for name in VERSIONS for number in _footnotes_of(table, name)]
    if versions:
        text = f"made with other versions: {_versions_text(table, versions)}"
        told.append((text, _rows_with(table, versions)))
    told += _other_notes(table, untuned)
    notes = []
    for number, (text, rows) in enumerate(told):
        notes.append(RowNote(_letter(number) if rows else "", text, rows))
    return notes


def letters_of(row: int, notes: Iterable[RowNote]) -> str:
    """Return "a c": the letters of the notes on a row."""
    return " ".join(note.letter for note in notes if row in note.rows)


def _letter(number: int) -> str:
    """Return "a" to "z", then "a2", "b2", ..."""
    rounds, place = divmod(number, len(string.ascii_lowercase))
    letter = string.ascii_lowercase[place]
    if rounds:
        letter += str(rounds + 1)
    return letter


def _footnotes_of(table: Table, setting: str) -> list[int]:
    """Return the numbers of the table's footnotes on this setting."""
    return [i for i, note in enumerate(table.footnotes) if note.setting == setting]


def _rows_with(table: Table, footnotes: Iterable[int]) -> frozenset[int]:
    """Return the numbers of the rows with one of these footnotes."""
    wanted = set(footnotes)
    return frozenset(i for i, row in enumerate(table.rows) if wanted.intersection(row.footnotes))


def _search_text(table: Table, rows: Iterable[int]) -> str:
    kinds = {table.rows[i].values for i in rows}
    text = "tuned in another search than most rows"
    if len(kinds) == 1:
        _, _, trials = kinds.pop().partition(f"{TUNED}: ")
        if trials:
            text += f" ({trials} each)"
    return text


def _untuned_rows(table: Table, footnotes: Sequence[int]) -> Iterable[int]:
    """Yield the rows that were not tuned, in a table of rows that mostly were."""
    for i in footnotes:
        note = table.footnotes[i]
        if note.most.startswith(TUNED) and not note.value.startswith(TUNED):
            yield from _rows_with(table, [i])


def _values_text(table: Table, footnotes: Sequence[int], untuned: frozenset[int]) -> str:
    """Write "not tuned: flow (published values, 313 steps of 32), pcl (default recipe)"."""
    named = []
    for i in footnotes:
        note = table.footnotes[i]
        kind = KINDS.get(note.value, note.value)
        for number in sorted(_rows_with(table, [i])):
            row = table.rows[number]
            words = [kind]
            if number in untuned:
                words += filter(None, [_effort_text(row, table)])
            named.append(f"{command_name(row, table)} ({', '.join(words)})")
    begin = "values from another source than in most rows"
    if untuned == _rows_with(table, footnotes):
        begin = "not tuned"
    return f"{begin}: {', '.join(named)}"


def _effort_text(row: Row, table: Table) -> str:
    """Write "313 steps of 32", "313 steps" or "batches of 32"; "" if the row trained like most."""
    found = {}
    for i in row.footnotes:
        note = table.footnotes[i]
        found[note.setting] = note.value
    steps, batch = found.get("steps"), found.get("batch_size")
    if steps and batch:
        return f"{steps} steps of {batch}"
    if steps:
        return f"{steps} steps"
    return f"batches of {batch}" if batch else ""


def _length_text(found: Sequence[Footnote]) -> str:
    """Write "other sentence length: 50 to 128 tokens instead of 32"."""
    lengths = [note.value for note in found]
    if len(lengths) > 1 and all(length.isdigit() for length in lengths):
        lengths.sort(key=int)
        between = f"{lengths[0]} to {lengths[-1]}"
    else:
        between = list_names(lengths, MOST_VALUES)
    return f"other sentence length: {between} tokens instead of {found[0].most}"


def _versions_text(table: Table, footnotes: Sequence[int]) -> str:
    parts = []
    for i in footnotes:
        note = table.footnotes[i]
        parts.append(f"{note.setting} {note.value} instead of {note.most}")
    return list_names(parts, MOST_VALUES)


def _other_notes(table: Table, untuned: frozenset[int]) -> list[tuple[str, frozenset[int]]]:
    """Return a note for each other setting: its values, and the value of most rows."""
    by_setting: dict[str, list[int]] = {}
    for i, note in enumerate(table.footnotes):
        if note.setting not in (SEARCH_SETTING, VALUES_SETTING, LENGTH_SETTING, *VERSIONS):
            by_setting.setdefault(note.setting, []).append(i)
    notes = []
    for setting, numbers in by_setting.items():
        rows = _rows_with(table, numbers)
        if setting in EFFORT and rows:
            numbers = [i for i in numbers if not _rows_with(table, [i]) <= untuned]
            rows = _rows_with(table, numbers)
            if not numbers:
                continue
        found = [table.footnotes[i] for i in numbers]
        notes.append((_difference_text(setting, found, rows), rows))
    return notes


def _difference_text(setting: str, found: Sequence[Footnote], rows: frozenset[int]) -> str:
    """Write "batch_size: 32 or 128 instead of 64"; with names, if no row of the table has it."""
    text = f"{setting}: {list_names([note.value for note in found], MOST_VALUES)}"
    if not rows:
        text += f" ({list_names(dict.fromkeys(note.rows for note in found), MOST_VALUES)})"
    most = found[0].most
    return f"{text} instead of {most}" if most else text
