"""A submission that anybody may have made -> files in a new folder, or one line that says why not.

Nothing in it is executed or unpickled. Names, kinds, sizes and numbers are looked at before a byte is unpacked; what is unpacked is
counted, and its hash compared, while it is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.base.errors import BenchError, DataDamaged
from bench.runs.record import loads

# --- what a submission is made of: the names that may be in it, how large each may be, and the list at its beginning ---
# submission.json                        who sends it, and the sha256 of every other file
# runs/<run id>/run.json                 the record
# runs/<run id>/curve.jsonl              the training curve
# runs/<run id>/predictions/STS12.npz    what the model said of every item; predictions/mteb/... of mteb's tasks
# runs/<run id>/checkpoint/...           weights and JSON, where they are small


SCHEMA = "bench.submission/1"
HEADER = "submission.json"
MiB = 1 << 20
MOST_BYTES = 512 * MiB  # of the file, and of everything in it when unpacked
MOST_FILES = 5000
MOST_RUNS = 200
CHECKPOINT_BYTES = 32 * MiB  # of one run's checkpoint
LONGEST_NAME = 120  # characters of who sends it
_SIZES = {
    "header": 2 * MiB,
    "record": 8 * MiB,
    "curve": 4 * MiB,
    "predictions": 16 * MiB,
    "checkpoint": CHECKPOINT_BYTES,
}
_RUN = r"(?P<run>[A-Za-z0-9][A-Za-z0-9._+@=-]{0,199})"
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_NAMES = {
    "header": re.compile(re.escape(HEADER)),
    "record": re.compile(rf"runs/{_RUN}/run\.json"),
    "curve": re.compile(rf"runs/{_RUN}/curve\.jsonl"),
    "predictions": re.compile(
        rf"runs/{_RUN}/predictions/(mteb/)?[A-Za-z0-9_%~][A-Za-z0-9_.~ @%-]{{0,199}}\.npz"
    ),
    "checkpoint": re.compile(
        rf"runs/{_RUN}/checkpoint/({_PART}/){{0,3}}{_PART}\.(safetensors|json|txt)"
    ),
}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Member:
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


def place(name: str) -> Member | None:
    """None for whatever has no place in a submission: folders, paths that lead elsewhere, programs, pickles."""
    for kind, pattern in _NAMES.items():
        if match := pattern.fullmatch(name):
            return Member(kind, match.groupdict().get("run", ""))
    return None


def sender(text: str | None) -> str | None:
    """Who sends it, as it is kept. Raises ValueError for a name that does not fit on one line."""
    if text is None or not text.strip():
        return None
    name = " ".join(text.split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"the sender's name has {len(name)} characters; up to {LONGEST_NAME}, all of them printable"
        )
    return name


def header_bytes(header: Header, bench_version: str) -> bytes:
    content = {
        "schema": SCHEMA,
        "submitted_by": header.by,
        "bench_version": bench_version,
        "files": dict(header.files),
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def header_of(data: bytes) -> Header:
    """Raises DataDamaged where it is none; the message goes on where the name of the file stands."""
    try:
        content: Any = loads(data)
    except (ValueError, RecursionError):
        raise DataDamaged(f"its {HEADER} is not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        schema = content.get("schema") if isinstance(content, dict) else None
        raise DataDamaged(f"its {HEADER} is of {str(schema)[:40]!r}, not {SCHEMA}")
    by, files = content.get("submitted_by"), content.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(file, str) and _SHA256.fullmatch(file) for file in files.values()
    ):
        raise DataDamaged(f"its {HEADER} has no list of files with a sha256 each")
    if not (by is None or isinstance(by, str)):
        raise DataDamaged(f"its {HEADER}: submitted_by is no name")
    try:
        return Header(by=sender(by), files=files)
    except ValueError as error:
        raise DataDamaged(f"its {HEADER}: {error}") from None


# --- unpacking it ---


_END = struct.Struct(
    "<4s4H2LH"
)  # the last record of a zip: signature, disks, members, size and place of the list, comment
_LONGEST_ENTRY = 600  # bytes of one member in the list: a name and a little more


@dataclass(frozen=True)
class Unpacked:
    """``folder`` holds one folder per run, ``runs`` are their names in alphabetical order."""

    by: str | None
    folder: Path
    runs: tuple[str, ...]


def unpack(file: Path, into: Path) -> Unpacked:
    """The runs in a submission as ``into``/<run id>/...; ``into`` is made here.

    Raises DataDamaged, with one line, for whatever ``bench submit`` would not have written; BenchError where it cannot be read, or
    the disk is full. Then nothing stays of it.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # opening a pipe would wait for ever
            raise DataDamaged("it is no file")
        with file.open("rb") as stream:
            _check_end(stream, file)
            with zipfile.ZipFile(stream) as archive:
                members = _checked_members(archive.infolist())
                into.mkdir(parents=True)
                try:
                    return _write(archive, members, into)
                except BaseException:
                    shutil.rmtree(into, ignore_errors=True)
                    raise
    except DataDamaged as error:
        raise DataDamaged(
            f"{file.name} is refused: {error.message}",
            "bench submit RUN ... makes a file that is taken",
        ) from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        what = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataDamaged(
            f"{file.name} is refused: it cannot be unpacked: {what}", "ask its sender for it again"
        ) from None
    except OSError as error:
        raise BenchError(f"{file.name} cannot be unpacked: {error.strerror or error}") from None


def _check_end(stream: IO[bytes], file: Path) -> None:
    """The size of the list of members before Python's zipfile reads it whole: a million members are refused, not remembered."""
    state = os.fstat(stream.fileno())
    if state.st_size > MOST_BYTES:
        raise DataDamaged(f"{state.st_size:,} bytes; at most {MOST_BYTES:,} are taken")
    if state.st_size < _END.size + 20:
        raise DataDamaged("it is no zip file")
    stream.seek(-_END.size - 20, os.SEEK_END)
    longer, end = stream.read(4), stream.read(16 + _END.size)[16:]
    signature, disk, first_disk, here, count, size, at, comment = _END.unpack(end)
    if signature != b"PK\5\6":
        raise DataDamaged("it is no zip file that bench submit wrote")
    plain = (
        disk == first_disk == comment == 0
        and here == count
        and at + size == state.st_size - _END.size
        and longer != b"PK\6\7"
    )
    if not plain or count > MOST_FILES or size > count * _LONGEST_ENTRY:
        raise DataDamaged(
            f"its list of files is not one that bench submit writes; at most {MOST_FILES:,} files are taken"
        )


def _checked_members(
    listed: Sequence[zipfile.ZipInfo],
) -> Mapping[str, tuple[zipfile.ZipInfo, Member]]:
    """Every member with its place, after everything that can be known without unpacking."""
    if len(listed) > MOST_FILES:
        raise DataDamaged(f"{len(listed):,} files; at most {MOST_FILES:,} are taken")
    members: dict[str, tuple[zipfile.ZipInfo, Member]] = {}
    alike: set[str] = set()
    for member in listed:
        entry = place(member.orig_filename)
        if entry is None:
            raise DataDamaged(f"{member.orig_filename[:80]!r} has no place in a submission")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise DataDamaged(f"{member.orig_filename} is a link or a device, not a file")
        if member.flag_bits & 0x1:
            raise DataDamaged(f"{member.orig_filename} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataDamaged(
                f"{member.orig_filename} is compressed in a way that bench submit does not use"
            )
        if member.file_size > entry.most_bytes:
            raise DataDamaged(
                f"{member.orig_filename} has {member.file_size:,} bytes; at most {entry.most_bytes:,} are taken"
            )
        if member.filename.casefold() in alike:  # one file where capitals make no difference
            raise DataDamaged(f"{member.orig_filename} is in it twice")
        alike.add(member.filename.casefold())
        members[member.orig_filename] = member, entry
    _check_together(members)
    return members


def _check_together(members: Mapping[str, tuple[zipfile.ZipInfo, Member]]) -> None:
    total = sum(member.file_size for member, _ in members.values())
    if total > MOST_BYTES:
        raise DataDamaged(f"{total:,} bytes when unpacked; at most {MOST_BYTES:,} are taken")
    runs = {entry.run for _, entry in members.values() if entry.run}
    if len(runs) > MOST_RUNS or len({run.casefold() for run in runs}) < len(runs):
        raise DataDamaged(
            f"{len(runs):,} runs; at most {MOST_RUNS:,} are taken, and no two whose names differ in capitals only"
        )
    if HEADER not in members or not runs:
        raise DataDamaged("it holds no runs" if HEADER in members else f"it has no {HEADER}")
    for run in sorted(runs):
        if f"runs/{run}/run.json" not in members:
            raise DataDamaged(f"{run} has no record")
        size = sum(
            member.file_size
            for member, entry in members.values()
            if (entry.run, entry.kind) == (run, "checkpoint")
        )
        if size > CHECKPOINT_BYTES:
            raise DataDamaged(
                f"the checkpoint of {run} has {size:,} bytes; at most {CHECKPOINT_BYTES:,} are taken"
            )


def _write(
    archive: zipfile.ZipFile, members: Mapping[str, tuple[zipfile.ZipInfo, Member]], into: Path
) -> Unpacked:
    with archive.open(members[HEADER][0]) as source:
        header = header_of(source.read(members[HEADER][0].file_size))
    for name in sorted({*header.files, *members} - {HEADER}):
        if name not in members:
            raise DataDamaged(f"{name[:80]!r} is in its list and not in it")
        if name not in header.files:
            raise DataDamaged(f"{name} is not in its list")
    for name, (member, _) in members.items():
        if name != HEADER:
            _write_member(archive, member, into.joinpath(*name.split("/")[1:]), header, name)
    return Unpacked(
        header.by, into, tuple(sorted({found.run for _, found in members.values() if found.run}))
    )


def _write_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path, header: Header, name: str
) -> None:
    left, digest = member.file_size, hashlib.sha256()
    to.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, to.open("xb") as target:
        while block := source.read(min(MiB, left + 1)):
            left -= len(block)
            if left < 0:
                raise DataDamaged(f"{name} is larger than it claims")
            digest.update(block)
            target.write(block)
    if left:
        raise DataDamaged(f"{name} is cut: {left:,} bytes are missing")
    if digest.hexdigest() != header.files[name]:
        raise DataDamaged(f"{name} is not what its sender packed: another sha256")
