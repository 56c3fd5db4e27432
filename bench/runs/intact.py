"""What lies in a run's folder: its curve; whether checkpoint and predictions are those that its record names, cheaply enough for every contact.

A large file is read once: its hash is remembered in the cache under its place, size and times. One that was written, replaced
or touched since is read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import DataDamaged, DataMissing
from bench.base.files import CacheEntry, file_sha256, is_settled, values_sha256
from bench.runs.record import AVERAGE, RunRecord, Score
from bench.runs.run import Run
from bench.runs.store import FOREIGN

CHECKPOINT = "checkpoint"
SMALL = 1 << 20  # bytes; reading so much costs less than looking up what is remembered
MISSING, CUT = "missing", "cut short or damaged"
AGAIN = "give its command again; bench runs RUN shows it"
AGAIN_FRESH = "give its command again, with --fresh; bench runs RUN shows it"


def checkpoint_problem(record: RunRecord, folder: Path) -> str | None:
    """What is wrong with the checkpoint, in words that name the file; None where it is whole.

    Of a record without hashes (``bench.run/1``) nothing is known. Files that no record names are nobody's.
    """
    place = folder / CHECKPOINT
    if not place.is_dir():
        return f"{place} is {MISSING}"
    for name, recorded in sorted((record.checkpoint or {}).items()):
        file = place / name
        if not file.is_file():
            return f"{file} is {MISSING}"
        try:
            if remembered_sha256(file) != recorded:
                return f"{file} is cut short or altered: its hash is not the recorded one"
        except OSError as error:
            return f"{file} cannot be read ({error.strerror})"
    return None


def prediction_problems(
    record: RunRecord, folder: Path
) -> dict[tuple[str, str, str, str | None], str]:
    """Score -> what is wrong with its stored predictions: "missing", "cut short or damaged" or "altered"."""
    return {
        score.key: problem
        for score in record.scores
        if score.task != AVERAGE
        and (problem := _prediction_problem(record, score, folder)) is not None
    }


def _prediction_problem(record: RunRecord, score: Score, folder: Path) -> str | None:
    try:
        arrays = Run(record, folder).predictions(score.key)
        if score.sha256_of(arrays) not in (None, values_sha256(arrays)):
            return "altered"
        if score.suite in FOREIGN:  # the tool that scored it keeps files of its own
            for file in foreign_files(score, folder):
                json.loads(file.read_bytes())
    except (DataMissing, OSError):
        return MISSING
    except (DataDamaged, ValueError, RecursionError):
        return CUT
    return None


def foreign_files(score: Score, folder: Path) -> list[Path]:
    """The files of the tool that scored a task of its own. A record may have been sent in: what it names elsewhere is not opened."""
    named = score.detail.get("results")
    names = (
        [Path(name) for name in named if isinstance(name, str)]
        if isinstance(named, list | tuple)
        else []
    )
    return [
        folder / name
        for name in names
        if name.parts[:1] == (score.suite,) and ".." not in name.parts
    ]


def remembered_sha256(file: Path) -> str:
    """As ``file_sha256``, without reading a large file that has not changed since it was last read. Raises OSError."""
    facts = file.stat()
    if facts.st_size < SMALL:
        return file_sha256(file)
    entry = CacheEntry(
        "hashes",
        str(file.resolve()),
        [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino],
    )
    if (known := entry.read()) is not None:
        return str(known)
    sha256 = file_sha256(file)
    if is_settled(max(facts.st_mtime_ns, facts.st_ctime_ns)):
        entry.write(sha256)
    return sha256


# --- what a training leaves beside the record: its curve, read without torch, and the name of the batch that failed ---


CURVE = "curve.jsonl"
FAILED_BATCH = "failed-batch.tsv"  # the rows on which the loss became no number


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """The entries of ``folder/curve.jsonl``, by step; a line that a crash cut short is left out. Empty where there is none."""
    try:
        lines = (folder / CURVE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and _is_number(entry.get("step")):
            entries.append(entry)
    return sorted(entries, key=lambda entry: entry["step"])


def series(curve: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """(step, value) of one key, where it was written and is a number."""
    return [
        (float(entry["step"]), float(entry[key])) for entry in curve if _is_number(entry.get(key))
    ]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )
