"""The senders of submitted runs.

A submission has the file ``submitted_by.txt`` next to its record. In a published version,
``tables.json`` names the sender of each run. No table has the runs of two senders, or of a sender
and the publisher: see ``bench.compare.submitted``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from bench.base.errors import DataDamaged, one_line
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.compare.sender_rows import row_labels
from bench.compare.statistics.rows import SENDER
from bench.compare.together import read_together
from bench.records.record import RecipeValue, RunRecord
from bench.records.run import Run

SENDER_FILE = "submitted_by.txt"
LONGEST_NAME = 120
"""Characters of who submits."""
NAMELESS = "somebody"
"""The sender of a submitted folder that does not name its sender."""
BOARD = "bench.board/"
"""How the name of the schema of a version's tables.json begins."""


class _Published(Struct):
    run_id: str
    submitted_by: str | None = None


class _Board(Struct):
    runs: list[_Published]


class _AnyFile(Struct):
    schema: str = ""


def sender_of(record: RunRecord) -> str:
    """Name who submitted the run, as ``with_sender`` wrote it into the record; "" for the
    publisher's own."""
    entry = record.recipe.get(SENDER)
    return "" if entry is None else str(entry.value)


def with_sender(run: Run, name: str | None) -> Run:
    """Return the run with its sender in the recipe, which sets its row apart; the run itself if
    ``name`` is None.
    """
    if name is None:
        return run
    entry = RecipeValue(value=name, source="the submission")
    record = structs.replace(run.record, recipe={**run.record.recipe, SENDER: entry})
    return Run(record, run.folder)


def with_senders(runs: Sequence[Run]) -> list[Run]:
    """Return the runs; a submitted one with the sender that its row names, as far as the folders
    say so.

    Raises DataDamaged if the file of a published version that says so cannot be read.
    """
    versions: dict[Path, dict[str, str | None]] = {}
    labels: dict[Path, str] = {}
    new: list[Run] = []
    for run in runs:
        if read_sender(run.folder) is not None:
            new.append(run)
            continue
        runs_folder = os.path.dirname(os.path.abspath(run.folder))
        if os.path.basename(runs_folder) == "runs":
            version = Path(os.path.dirname(runs_folder))
            if version not in versions:
                versions[version] = published_senders(version)
            if (name := versions[version].get(run.record.run_id)) is not None:
                labels[run.folder] = name
    together = {run.record.run_id: read_together(run.folder) for run in new}
    sent = [(run.record, read_sender(run.folder) or NAMELESS) for run in new]
    named = row_labels(sent, list(labels.values()), together)
    labels |= {run.folder: named[run.record.run_id] for run in new}
    return [with_sender(run, labels.get(run.folder)) for run in runs]


def read_sender(folder: Path) -> str | None:
    """Return the name in a submission's folder, on one line; None if the folder is no submission. A
    file that holds no name still makes it one.
    """
    try:
        text = read_plain_file(f"{folder}{os.sep}{SENDER_FILE}", 4 * LONGEST_NAME, folder).decode(
            "utf-8"
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return NAMELESS
    name = " ".join(text.split())
    return name if 0 < len(name) <= LONGEST_NAME and name.isprintable() else NAMELESS


def published_senders(version: Path) -> dict[str, str | None]:
    """Run id -> who submitted it, of a published version's ``tables.json``; empty if the folder is
    no version. Raises DataDamaged."""
    path = version / "tables.json"
    try:
        content = read_plain_file(path, TABLES_BYTES)
        if not msgspec.json.decode(content, type=_AnyFile).schema.startswith(BOARD):
            return {}
    except (OSError, ValueError, RecursionError):  # somebody's own file of that name
        return {}
    try:
        board = msgspec.json.decode(content, type=_Board)
    except (ValueError, RecursionError) as error:
        raise DataDamaged(
            f"{path} cannot be read: {one_line(error)}",
            "a published version never changes: restore it (git checkout)",
        ) from None
    return {run.run_id: run.submitted_by for run in board.runs}
