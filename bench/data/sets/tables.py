"""Text files with a row on each line, for a user's own suites.

table = read_table(data, "pairs.tsv", columns=3)
first, second, ratings = table.texts(0), table.texts(1), table.numbers(2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.base.errors import DataDamaged
from bench.base.hashes import file_sha256
from bench.data.reading.lines import read_lines, whole_lines
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

    Lines end as in all files of a user (``bench.data.reading``). The words of a cell have one
    space between, as in the sets of this package. Raises DataMissing, CorpusError for text that
    cannot be read, and DataDamaged for a file without rows, and for a row with more or fewer
    cells, naming its line.
    """
    path = data.file(name)
    rows = []
    for number, line in whole_lines(name, read_lines(path)):
        cells = [single_spaced(cell) for cell in line.split("\t")]
        if len(cells) != columns:
            raise DataDamaged(
                f"{name}: line {number} has {len(cells)} cells, expected {columns}, separated by "
                "tabs",
                "an empty cell needs its tab, and a blank line is no row",
            )
        rows.append(cells)
    if not rows:
        raise DataDamaged(f"{name} is empty", f"expected rows of {columns} cells")
    return TextTable(name, rows, file_sha256(path))
