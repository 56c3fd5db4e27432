"""Text files with a row on each line, for a user's own suites.

table = read_table(data, "pairs.tsv", columns=3)
first, second, ratings = table.texts(0), table.texts(1), table.numbers(2)
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder, single_spaced


@dataclass(frozen=True)
class TextTable:
    """The rows of a file, each with the same number of cells; row i is line i + 1."""

    # as the file is called in messages
    name: str
    rows: list[list[str]]
    # of the file's bytes
    sha256: str

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, column: int) -> list[str]:
        """Return the cells of a column."""
        return [row[column] for row in self.rows]

    def numbers(self, column: int) -> np.ndarray:
        """Return a column as (N,) float64.

        Raises DataDamaged for a cell that is not a finite number, naming its line.
        """
        values = []
        for line, cell in enumerate(self.texts(column), start=1):
            try:
                value = float(cell)
            except ValueError:
                value = math.nan
            if not math.isfinite(value):
                raise DataDamaged(
                    f"{self.name}: line {line}: '{cell[:40]}' in column {column + 1}, expected a "
                    "number",
                    "correct the cell, or leave the line out",
                )
            values.append(value)
        return np.array(values, dtype=np.float64)


def read_table(data: DataFolder, name: str, columns: int) -> TextTable:
    """Read a UTF-8 file of the data folder with cells separated by tabs.

    Only LF and CR LF end a line (U+2028 and others are white space of a text), a byte order mark is
    dropped, and a line end after the last row makes no row. The words of a cell have one space
    between, as in the sets of this package. Raises DataMissing, and DataDamaged for text that is
    not UTF-8, a carriage return alone, a file without rows, and a row with more or fewer cells,
    naming its line.
    """
    content = data.file(name).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = content.count(b"\n", 0, error.start) + 1
        raise DataDamaged(f"{name}: line {bad} is not UTF-8", "iconv converts text") from None
    if not text:
        raise DataDamaged(f"{name} is empty", f"expected rows of {columns} cells")
    rows = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        line = line.removesuffix("\r")
        if "\r" in line:
            raise DataDamaged(
                f"{name}: line {number} has a carriage return (CR) in it",
                r"only LF and CR LF end a line; to make both of CR alone: perl -pe "
                r"'s/\r\n?/\n/g' OLD > NEW",
            )
        cells = [single_spaced(cell) for cell in line.split("\t")]
        if len(cells) != columns:
            raise DataDamaged(
                f"{name}: line {number} has {len(cells)} cells, expected {columns}, separated by "
                "tabs",
                "an empty cell needs its tab, and a blank line is no row",
            )
        rows.append(cells)
    return TextTable(name, rows, hashlib.sha256(content).hexdigest())
