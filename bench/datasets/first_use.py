"""Files whose checksum nobody knew when the manifest was written: held against what was recorded when they were first fetched."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from bench.datasets.manifest import DataFile, DataSet
from bench.datasets.receipts import read_receipt, receipt_path
from bench.errors import DataDamaged
from bench.fetching.file import file_hash


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
