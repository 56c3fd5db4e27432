"""Finds which known text a file has by its checksum, or what is wrong with it and where."""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import dataclass
from pathlib import Path

from bench.base.hashes import file_sha256
from bench.data.sets.manifest import ANY, DataFile, DataSet, damaged_file


@dataclass(frozen=True)
class Found:
    """A file that was read. ``form`` is "any" or a form of the manifest."""

    file: DataFile
    path: Path
    form: str
    sha256: str
    """The manifest's hash of that form."""
    text: str = ""
    """Decoded; empty for a packed file and one of ``first_use``, which may be large."""


def cells(text: str, file: DataFile) -> list[list[str]]:
    """Return the rows of a file below its header, each cut to the columns that count.

    CRLF and LF are line ends, nothing else is.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    rows = (line.removesuffix("\r") for line in lines[file.header :])
    return [row.split("\t")[: file.columns] if file.columns > 1 else [row] for row in rows]


def single_spaced(cell: str) -> str:
    """Return the words of a cell with one space between, as SentEval's loaders read text."""
    return " ".join(cell.split())


def lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def recognise(wanted: DataSet, file: DataFile, path: Path) -> Found:
    """Read a file and find its form.

    Raises DataDamaged with the path, and the expected and found counts or hash.
    """
    if file.first_use:
        return Found(file, path, ANY, file_sha256(path))
    if file.packed is not None or file.role == "archive":
        return _recognise_packed(wanted, file, path)
    data = path.read_bytes()
    # the bytes of a known form are text; those of another are only counted by lines
    text = data.decode(file.encoding, errors="replace")
    digests = {hashlib.sha256(data).hexdigest(), hashlib.sha256(lf(data)).hexdigest()}
    for name, form in file.forms.items():
        if digests & {form.sha256, form.sha256_lf}:
            return Found(file, path, name, form.sha256, text)
    rows = len(cells(text, file))
    if rows != file.rows:
        raise damaged_file(wanted, f"{rows:,} rows found, {file.rows:,} expected in {path}")
    raise damaged_file(wanted, f"altered text, or another tokenisation of it, in {path}")


def _recognise_packed(wanted: DataSet, file: DataFile, path: Path) -> Found:
    try:
        with open(path, "rb") if file.packed is None else lzma.open(path, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except (EOFError, lzma.LZMAError) as error:
        raise damaged_file(wanted, f"{path} cannot be unpacked ({error})") from None
    for name, form in file.forms.items():
        if form.sha256 == sha256:
            return Found(file, path, name, sha256)
    raise damaged_file(wanted, f"altered: sha256 {sha256[:12]} is not known, in {path}")
