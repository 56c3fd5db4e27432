"""The senders of submitted runs.

A submission has the file ``submitted_by.txt`` next to its record. In a published version,
``tables.json`` names the sender of each run. A name proves nothing; each has tables of its own
(``bench.compare.tables``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from bench.base.errors import DataDamaged, one_line
from bench.base.paths import find_path
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.compare.statistics.rows import SENDER
from bench.records.record import RecipeValue, RunRecord
from bench.records.run import Run

SENDER_FILE = "submitted_by.txt"
LONGEST_NAME = 120
"""Characters of who submits."""
MOST_BYTES = 1024
"""Of the file with the name."""
NAMELESS = "somebody"
"""The sender of a submitted folder that does not name its sender."""
BOARD = "bench.board/"
"""How the name of the schema of a version's tables.json begins."""
_EXPECTED = f"a name of at most {LONGEST_NAME} characters, which can be read"


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
    """Return the runs; a submitted one with its sender, as far as the folders say so.

    Raises DataDamaged if the file of a published version that says so cannot be read.
    """
    versions: dict[Path, dict[str, str | None]] = {}
    labelled = []
    for run in runs:
        name = read_sender(run.folder)
        runs_folder = os.path.dirname(os.path.abspath(run.folder))
        if name is None and os.path.basename(runs_folder) == "runs":
            version = Path(os.path.dirname(runs_folder))
            if version not in versions:
                versions[version] = published_senders(version)
            name = versions[version].get(run.record.run_id)
        labelled.append(with_sender(run, name))
    return labelled


def read_sender(folder: Path) -> str | None:
    """Return the name in a submission's folder; None if the folder is no submission.

    A file that holds no name still makes it one.
    """
    if not os.path.lexists(f"{folder}{os.sep}{SENDER_FILE}"):
        return None
    try:
        return submitter_of(folder)
    except DataDamaged:
        return NAMELESS


def submitter_of(folder: Path) -> str:
    """Return the name of who submits the run in a folder.

    Raises DataDamaged for anything but a name on one line.
    """
    try:
        text = read_plain_file(folder / SENDER_FILE, MOST_BYTES, folder).decode("utf-8")
    except (OSError, ValueError):
        raise DataDamaged(f"{SENDER_FILE} must contain {_EXPECTED}") from None
    return check_name(text, f"{SENDER_FILE} must contain")


def check_name(text: str, must: str = "--by must be") -> str:
    """Return the name with single blanks. Raises DataDamaged for one that is empty or too long, or
    has characters that a reader cannot see."""
    name = " ".join(text.split())
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise DataDamaged(f"{must} {_EXPECTED}")
    if find_path(name) is not None:
        raise DataDamaged(f"{must} a name, not the absolute path of a folder")
    return name


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
