"""Says of one file which text form it is, by checksum, or what is wrong with it and where; and keeps receipts of what was fetched."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.base.errors import DataDamaged
from bench.base.files import file_sha256, write_whole
from bench.data.sets.manifest import ANY, DataFile, DataSet, cells, content_hash, lf, once_encoded_hashes

OTHER = "other"


@dataclass(frozen=True)
class Found:
    """A file that was read and recognised. ``form`` is "any", a form of the manifest, or "other"."""

    file: DataFile
    path: Path
    form: str
    sha256: str
    """The manifest's hash of that form; of the bytes found, where the form is "other"."""
    text: str = ""
    """Decoded; empty of a packed file and one of ``first_use``, which may be large."""


def damaged_file(wanted: DataSet, what: str) -> DataDamaged:
    """The error that says what is wrong with a file of a set, and what gets another."""
    return DataDamaged(f"{wanted.name}: {what}", f"replace the file; to get it: {wanted.get}")


def recognise(wanted: DataSet, file: DataFile, path: Path) -> Found:
    """Reads a file and says which form it is. Raises DataDamaged with the file's name, expected and found counts or hash."""
    if file.first_use:
        return Found(file, path, ANY, recognise_first_use(wanted, file, path))
    if file.packed is not None:
        return _recognise_packed(wanted, file, path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise damaged_file(wanted, f"cannot read ({error.strerror}) in {path}") from None
    digests = {hashlib.sha256(data).hexdigest(), hashlib.sha256(lf(data)).hexdigest()}
    known = {digest: name for name, form in file.forms.items() for digest in (form.sha256, form.sha256_lf) if digest}
    try:
        text = data.decode(file.encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise damaged_file(wanted, f"line {line} is not {file.encoding.upper()} in {path}") from None
    for digest in digests:
        if digest in known:
            return Found(file, path, known[digest], file.forms[known[digest]].sha256, text)
    if any(digest in known for digest in once_encoded_hashes(data)):
        raise damaged_file(wanted, f"encoded twice: bytes that were read as latin-1 and written again as UTF-8 in {path}")
    rows = cells(text, file)
    if len(rows) != file.rows:
        raise damaged_file(wanted, f"{len(rows):,} rows found, {file.rows:,} expected in {path}")
    short = next((i for i, row in enumerate(rows) if len(row) < file.columns), None)
    if short is not None:
        raise damaged_file(wanted, f"line {short + 1 + file.header} has {len(rows[short])} columns, {file.columns} expected, in {path}")
    content = content_hash(rows)
    if file.content is None or content != file.content:
        expected = file.content or next(iter(file.forms.values())).sha256
        raise damaged_file(wanted, f"altered text: content hash {content[:12]} found, {expected[:12]} expected, in {path}")
    if not file.varies:  # the cells are right and only white space differs: the manifest's hash speaks for it
        return Found(file, path, ANY, file.forms[ANY].sha256, text)
    return Found(file, path, OTHER, hashlib.sha256(lf(data)).hexdigest(), text)


def _recognise_packed(wanted: DataSet, file: DataFile, path: Path) -> Found:
    try:
        with lzma.open(path, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise damaged_file(wanted, f"{path} cannot be unpacked ({error})") from None
    known = {form.sha256: name for name, form in file.forms.items()}
    if sha256 not in known:
        expected = next(iter(known))
        raise damaged_file(wanted, f"altered text: sha256 {sha256[:12]} inside, {expected[:12]} expected, in {path}")
    return Found(file, path, known[sha256], sha256)


# --- files whose checksum nobody knew when the manifest was written: held against what was recorded when they were first fetched ---


def recognise_first_use(wanted: DataSet, file: DataFile, path: Path) -> str:
    """The file's sha256, if it is the one that its receipt recorded and has the rows that it should have.

    A copy that was not fetched by this package has no receipt: then only the rows are checked. Raises DataDamaged.
    """
    try:
        sha256 = file_sha256(path)
        rows = _rows(path, file.encoding) - file.header
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise damaged_file(wanted, f"cannot read {path} ({error})") from None
    if rows != file.rows:
        raise damaged_file(wanted, f"{rows:,} rows found, {file.rows:,} expected in {path}")
    receipt = read_receipt(receipt_path(path.parent, path.name))
    expected = receipt.downloads.get(file.path) if receipt else None
    if expected is not None and sha256 != expected:
        raise damaged_file(wanted, f"sha256 {sha256[:12]} found, {expected[:12]} was fetched, in {path}")
    return sha256


def _rows(path: Path, encoding: str) -> int:
    """Rows of a CSV file (its fields may hold line ends), lines of any other."""
    with path.open("rb") as raw:
        if path.suffix == ".csv":
            return sum(1 for row in csv.reader(io.TextIOWrapper(raw, encoding, newline="")) if row)
        count, last = 0, b"\n"
        while block := raw.read(1 << 20):
            count, last = count + block.count(b"\n"), block[-1:]
        return count + (last != b"\n")


# --- receipts: what was fetched, from where, which revision and which bytes; a small file beside the data, so that it travels with it ---
# Where nobody could know a checksum beforehand, the first receipt is the checksum: trust on first use.

RECEIPT = "bench.receipt/1"


@dataclass(frozen=True)
class Receipt:
    source: str
    url: str
    revision: str
    fetched: str
    """Date and time, UTC, ISO 8601."""
    downloads: Mapping[str, str]
    """Path in the source -> sha256 of what was downloaded."""


def receipt_path(folder: Path, source: str) -> Path:
    return folder / f"{source}.receipt.json"


def read_receipt(path: Path) -> Receipt | None:
    """None where there is none. Raises DataDamaged where it cannot be read: it is what later fetches are held against."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["schema"] != RECEIPT:
            raise ValueError(f"schema {raw['schema']}")
        return Receipt(raw["source"], raw["url"], raw["revision"], raw["fetched"], dict(raw["downloads"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataDamaged(f"{path} is no receipt of a download ({error})", "remove it to fetch again and trust what comes") from None


def write_receipt(path: Path, receipt: Receipt, aside: Path | None = None) -> None:
    """Add this fetch to what is known; what was known of other files of the same revision stays. ``aside``: a folder to write in, of whoever
    removes what a killed process leaves there. Raises OSError."""
    before = read_receipt(path)
    known = dict(before.downloads) if before and before.revision == receipt.revision else {}
    content = {"schema": RECEIPT, **asdict(receipt), "downloads": known | dict(receipt.downloads)}
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode(), aside)
