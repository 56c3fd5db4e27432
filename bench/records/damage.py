"""Files that are missing, cut short or altered: checks that are cheap enough for every command.

A hash of a large file is remembered until the file changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from io import BufferedReader
from pathlib import Path

from bench.base.cache import CacheEntry, is_settled
from bench.base.errors import DataDamaged, DataMissing
from bench.base.hashes import values_sha256
from bench.base.reading import SETTINGS_BYTES, list_plain_files, open_plain_file, read_plain_file
from bench.records.names import CHECKPOINT, FOREIGN
from bench.records.record import AVERAGE, RunRecord, Score
from bench.records.run import Run

SMALL = 1 << 20  # bytes; hashing a smaller file costs less than looking into the cache
MISSING, CUT = "missing", "cut short or damaged"
UNREADABLE = "cannot be read"
AGAIN = "run its command again; bench runs RUN shows it"
AGAIN_FRESH = "run its command again with --fresh; bench runs RUN shows it"


def checkpoint_problem(record: RunRecord, folder: Path) -> str | None:
    """Find the first damaged file of the checkpoint, and say how; None if all are whole.

    A record without hashes cannot be checked. Files that the record does not name
    are ignored.
    """
    place = folder / CHECKPOINT
    if not place.is_dir():
        return f"{place} is {MISSING}"
    try:
        list_plain_files(place)
    except OSError as error:
        return f"{error.filename} {UNREADABLE} ({error.strerror})"
    for name, recorded in sorted((record.checkpoint or {}).items()):
        file = place / name
        try:
            if remembered_sha256(file, folder) != recorded:
                return f"{file} is cut short or altered: its hash is not the recorded one"
        except (FileNotFoundError, NotADirectoryError):
            return f"{file} is {MISSING}"
        except OSError as error:
            return f"{file} {UNREADABLE} ({error.strerror})"
    return None


def prediction_problems(record: RunRecord, folder: Path) -> dict[tuple[str, str, str], str]:
    """Return score -> the problem of its stored predictions, for scores that have one.

    The problem is "missing", "cut short or damaged" or "altered".
    """
    problems: dict[tuple[str, str, str], str] = {}
    for score in record.scores:
        if score.task == AVERAGE:
            continue
        problem = _prediction_problem(record, score, folder)
        if problem is not None:
            problems[score.key] = problem
    return problems


def _prediction_problem(record: RunRecord, score: Score, folder: Path) -> str | None:
    try:
        arrays = Run(record, folder).predictions(score.key)
        if score.sha256_of(arrays) not in (None, values_sha256(arrays)):
            return "altered"
        if score.suite in FOREIGN:
            for file in foreign_files(score, folder):
                json.loads(read_plain_file(file, SETTINGS_BYTES, folder))
    except (DataMissing, FileNotFoundError, NotADirectoryError):
        return MISSING
    except (DataDamaged, OSError, ValueError, RecursionError):
        return CUT
    return None


def foreign_files(score: Score, folder: Path) -> list[Path]:
    """Return the result files of the tool that scored the task.

    A record may be forged: paths outside of the tool's folder are ignored.
    """
    named = score.detail.get("results")
    names = named if isinstance(named, list | tuple) else ()
    return [
        folder / path
        for path in (Path(name) for name in names if isinstance(name, str))
        if path.parts[:1] == (score.suite,) and ".." not in path.parts
    ]


def remembered_sha256(file: Path, inside: Path | None = None) -> str:
    """Hash a file as ``file_sha256`` does, but read a large file only if it changed since last
    time.

    Raises OSError.

    ``inside``: a folder above the file, below which no link is followed; None: the file's own.
    """
    with open_plain_file(file, inside=inside) as stream:
        facts = os.fstat(stream.fileno())
        if facts.st_size < SMALL:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        return _remembered_sha256(file, stream, facts)


def _remembered_sha256(file: Path, stream: BufferedReader, facts: os.stat_result) -> str:
    entry = CacheEntry(
        "hashes",
        str(file.resolve()),
        [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino],
    )
    if (known := entry.read()) is not None:
        return str(known)
    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if is_settled(max(facts.st_mtime_ns, facts.st_ctime_ns)):
        entry.write(sha256)
    return sha256
