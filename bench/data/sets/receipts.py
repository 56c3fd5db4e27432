"""Receipts of downloads, and files with a checksum that was unknown when the manifest was written.

A receipt says what was fetched, from where, at which revision. It is kept next to the data, so that
it is copied with it. A file of ``first_use`` is compared with the receipt of its first fetch.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from bench.base.errors import DataDamaged
from bench.base.files import write_whole
from bench.base.hashes import file_sha256
from bench.data.sets.manifest import DataFile, DataSet, damaged_file

# A receipt says what was fetched, from where, at which revision; it is stored next to the data, so
# that it is copied with it.


def recognise_first_use(wanted: DataSet, file: DataFile, path: Path) -> str:
    """Return the file's sha256, if a receipt has it. A copy that was not fetched by bench has no
    receipt: then its rows are counted.

    Raises DataDamaged.
    """
    known = {receipt.downloads.get(file.path) for receipt in receipts_in(path.parent)} - {None}
    if not known and (rows := count_rows(wanted, file, path)) != file.rows:
        raise damaged_file(wanted, f"{rows:,} rows found, {file.rows:,} expected in {path}")
    sha256 = file_sha256(path)
    if known and sha256 not in known:
        fetched = " or ".join(str(hash_)[:12] for hash_ in known)
        raise damaged_file(wanted, f"sha256 {sha256[:12]} found, {fetched} was fetched, in {path}")
    return sha256


def count_rows(wanted: DataSet, file: DataFile, path: Path) -> int:
    """Count the data rows of a CSV file (fields may hold line ends), the lines of any other.

    Raises DataDamaged.
    """
    try:
        with path.open(
            encoding=file.encoding, newline="" if path.suffix == ".csv" else "\n"
        ) as text:
            lines = (row for row in csv.reader(text) if row) if path.suffix == ".csv" else text
            return sum(1 for _ in lines) - file.header
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise damaged_file(wanted, f"cannot read {path} ({error})") from None


class Receipt(Struct, frozen=True, kw_only=True):
    schema: Literal["bench.receipt/1"] = "bench.receipt/1"
    source: str
    url: str
    revision: str
    fetched: str
    """Date and time, UTC, ISO 8601."""
    downloads: dict[str, str]
    """Path in the source -> sha256 of what was downloaded."""
    warnings: dict[str, str] = {}
    """Path of our file -> what was unexpected about it."""


def receipt_path(folder: Path, source: str) -> Path:
    return folder / f"{source}.receipt.json"


def read_receipt(path: Path) -> Receipt | None:
    """Return a receipt's content; None if there is none.

    Raises DataDamaged if it cannot be read, because later fetches are compared with it.
    """
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Receipt)
    except (OSError, ValueError, RecursionError) as error:
        raise DataDamaged(
            f"{path} is not a valid receipt of a download ({error})",
            "remove it to fetch again and trust what arrives",
        ) from None


def receipts_in(folder: Path) -> list[Receipt]:
    """Return a receipt for each source of the folder's files. Raises DataDamaged."""
    return list(filter(None, map(read_receipt, sorted(folder.glob("*.receipt.json")))))


def fetch_warning(path: Path) -> str:
    """Return what was unexpected about a file at its first fetch; usually ""."""
    return "; ".join(
        filter(None, (receipt.warnings.get(path.name) for receipt in receipts_in(path.parent)))
    )


def write_receipt(path: Path, receipt: Receipt, aside: Path | None = None) -> None:
    """Add a fetch to the receipt; its entries for other files at the same revision stay.

    ``aside``: as for ``write_whole``. Raises OSError.
    """
    before = read_receipt(path)
    if before and before.revision == receipt.revision:
        receipt = msgspec.structs.replace(
            receipt,
            downloads=before.downloads | receipt.downloads,
            warnings=before.warnings | receipt.warnings,
        )
    write_whole(path, msgspec.json.format(msgspec.json.encode(receipt), indent=1) + b"\n", aside)
