"""Says of one file which text form it is, by checksum, or what is wrong with it and where."""

from __future__ import annotations

import csv
import hashlib
import io
import lzma
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import DataDamaged
from bench.data.fetching.file import file_hash
from bench.data.sets.manifest import ANY, DataFile, DataSet, cells, content_hash, lf, once_encoded_hashes, unpacked
from bench.data.sets.receipts import read_receipt, receipt_path

OTHER = "other"


@dataclass(frozen=True)
class Found:
    """A file that was read and recognised. ``form`` is "any", a form of the manifest, or "other"."""

    file: DataFile
    path: Path
    form: str
    sha256: str
    """The manifest's hash of that form; of the bytes found, where the form is "other"."""
    text: str | None
    """Decoded text, for files that are not packed."""


def recognise(wanted: DataSet, file: DataFile, path: Path) -> Found:
    """Reads a file and says which form it is. Raises DataDamaged with the file's name, expected and found counts or hash."""

    def damaged(what: str) -> DataDamaged:
        return DataDamaged(f"{wanted.name}: {what} in {path}", f"replace the file; to get it: {wanted.get}")

    if file.first_use:
        return Found(file, path, ANY, recognise_first_use(wanted, file, path), None)
    if file.packed is not None:
        return _recognise_packed(wanted, file, path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged(f"cannot read ({error.strerror})") from None
    digests = {hashlib.sha256(data).hexdigest(), hashlib.sha256(lf(data)).hexdigest()}
    known = {digest: name for name, form in file.forms.items() for digest in (form.sha256, form.sha256_lf) if digest}
    try:
        text = data.decode(file.encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise damaged(f"line {line} is not {file.encoding.upper()}") from None
    for digest in digests:
        if digest in known:
            return Found(file, path, known[digest], file.forms[known[digest]].sha256, text)
    if any(digest in known for digest in once_encoded_hashes(data)):
        raise damaged("encoded twice: bytes that were read as latin-1 and written again as UTF-8")
    rows = cells(text, file)
    if len(rows) != file.rows:
        raise damaged(f"{len(rows):,} rows found, {file.rows:,} expected")
    short = next((i for i, row in enumerate(rows) if len(row) < file.columns), None)
    if short is not None:
        raise damaged(f"line {short + 1 + file.header} has {len(rows[short])} columns, {file.columns} expected,")
    found = content_hash(rows)
    if file.content is None or found != file.content:
        expected = file.content or next(iter(file.forms.values())).sha256
        raise damaged(f"altered text: content hash {found[:12]} found, {expected[:12]} expected,")
    if not file.varies:  # the cells are right and only white space differs: the manifest's hash speaks for it
        return Found(file, path, ANY, file.forms[ANY].sha256, text)
    return Found(file, path, OTHER, hashlib.sha256(lf(data)).hexdigest(), text)


def _recognise_packed(wanted: DataSet, file: DataFile, path: Path) -> Found:
    digest = hashlib.sha256()
    try:
        for block in unpacked(path, file.packed):
            digest.update(block)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataDamaged(f"{wanted.name}: {path} cannot be unpacked ({error})", f"to get it: {wanted.get}") from None
    known = {form.sha256: name for name, form in file.forms.items()}
    if digest.hexdigest() not in known:
        expected = next(iter(known))
        raise DataDamaged(
            f"{wanted.name}: altered text: sha256 {digest.hexdigest()[:12]} inside, {expected[:12]} expected, in {path}",
            f"replace the file; to get it: {wanted.get}",
        )
    return Found(file, path, known[digest.hexdigest()], digest.hexdigest(), None)


# --- files whose checksum nobody knew when the manifest was written: held against what was recorded when they were first fetched ---


def recognise_first_use(wanted: DataSet, file: DataFile, path: Path) -> str:
    """The file's sha256, if it is the one that its receipt recorded and has the rows that it should have.

    A copy that was not fetched by this package has no receipt: then only the rows are checked. Raises DataDamaged.
    """
    hint = f"replace the file; to get it: {wanted.get}"
    try:
        found = file_hash(path)
        rows = _rows(path, file.encoding) - file.header
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataDamaged(f"{wanted.name}: cannot read {path} ({error})", hint) from None
    if rows != file.rows:
        raise DataDamaged(f"{wanted.name}: {rows:,} rows found, {file.rows:,} expected in {path}", hint)
    receipt = read_receipt(receipt_path(path.parent, path.name))
    expected = receipt.downloads.get(file.path) if receipt else None
    if expected is not None and found != expected:
        raise DataDamaged(f"{wanted.name}: sha256 {found[:12]} found, {expected[:12]} was fetched, in {path}", hint)
    return found


def _rows(path: Path, encoding: str) -> int:
    """Rows of a CSV file (its fields may hold line ends), lines of any other."""
    with path.open("rb") as raw:
        if path.suffix == ".csv":
            return sum(1 for row in csv.reader(io.TextIOWrapper(raw, encoding, newline="")) if row)
        count, last = 0, b"\n"
        while block := raw.read(1 << 20):
            count, last = count + block.count(b"\n"), block[-1:]
        return count + (last != b"\n")
