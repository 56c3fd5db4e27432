"""What a submission is made of: the names that may be in it, how large each may be, and the list at its beginning.

submission.json                        who sends it, and the sha256 of every other file
runs/<run id>/run.json                 the record
runs/<run id>/curve.jsonl              the training curve
runs/<run id>/predictions/STS12.npz    what the model said of every item; predictions/mteb/... of mteb's tasks
runs/<run id>/checkpoint/...           weights and JSON, where they are small
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.base.errors import DataDamaged
from bench.runs.reading import loads

SCHEMA = "bench.submission/1"
HEADER = "submission.json"
MiB = 1 << 20
MOST_BYTES = 512 * MiB  # of the file, and of everything in it when unpacked
MOST_FILES = 5000
MOST_RUNS = 200
CHECKPOINT_BYTES = 32 * MiB  # of one run's checkpoint
LONGEST_NAME = 120  # characters of who sends it
_SIZES = {"header": 2 * MiB, "record": 8 * MiB, "curve": 4 * MiB, "predictions": 16 * MiB, "checkpoint": CHECKPOINT_BYTES}
_RUN = r"(?P<run>[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199})"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_NAMES = {
    "header": re.compile(re.escape(HEADER)),
    "record": re.compile(rf"runs/{_RUN}/run\.json"),
    "curve": re.compile(rf"runs/{_RUN}/curve\.jsonl"),
    "predictions": re.compile(rf"runs/{_RUN}/predictions/(mteb/)?[A-Za-z0-9_%~][A-Za-z0-9_.~ @%-]{{0,199}}\.npz"),
    "checkpoint": re.compile(rf"runs/{_RUN}/checkpoint/({_PART}/){{0,3}}{_PART}\.(safetensors|json|txt)"),
}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Place:
    """What a name in a submission stands for."""

    kind: str  # "header", "record", "curve", "predictions" or "checkpoint"
    run: str = ""  # "" of the header

    @property
    def most_bytes(self) -> int:
        """Unpacked."""
        return _SIZES[self.kind]


@dataclass(frozen=True, kw_only=True)
class Header:
    """What ``submission.json`` says. ``files``: every other file and its sha256."""

    by: str | None
    files: Mapping[str, str]


def place(name: str) -> Place | None:
    """None for whatever has no place in a submission: folders, paths that lead elsewhere, programs, pickles."""
    for kind, pattern in _NAMES.items():
        if found := pattern.fullmatch(name):
            return Place(kind, found.groupdict().get("run", ""))
    return None


def sender(text: str | None) -> str | None:
    """Who sends it, as it is kept. Raises ValueError for a name that does not fit on one line."""
    if text is None or not text.strip():
        return None
    name = " ".join(text.split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"the sender's name has {len(name)} characters; up to {LONGEST_NAME}, all of them printable")
    return name


def header_bytes(header: Header, bench_version: str) -> bytes:
    content = {"schema": SCHEMA, "submitted_by": header.by, "bench_version": bench_version, "files": dict(header.files)}
    return json.dumps(content, indent=1).encode() + b"\n"


def header_of(data: bytes) -> Header:
    """Raises DataDamaged where it is none; the message goes on where the name of the file stands."""
    try:
        content: Any = loads(data)
    except (ValueError, RecursionError):
        raise DataDamaged(f"its {HEADER} is not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else None
        raise DataDamaged(f"its {HEADER} is of {str(found)[:40]!r}, not {SCHEMA}")
    by, files = content.get("submitted_by"), content.get("files")
    if not isinstance(files, dict) or not all(isinstance(file, str) and _SHA256.fullmatch(file) for file in files.values()):
        raise DataDamaged(f"its {HEADER} has no list of files with a sha256 each")
    if not (by is None or isinstance(by, str)):
        raise DataDamaged(f"its {HEADER}: submitted_by is no name")
    try:
        return Header(by=sender(by), files=files)
    except ValueError as error:
        raise DataDamaged(f"its {HEADER}: {error}") from None
