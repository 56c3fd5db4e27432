"""The format of the tables in this folder: cells between tabs, and scores in one cell."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from bench.base.errors import BenchError

HERE = Path(__file__).parent


def read_rows(file: Path) -> list[dict[str, str]]:
    """Return the rows of a table with tabs and a header; nothing is quoted."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_scores(row: dict[str, str], file: Path) -> Iterator[tuple[str, str, float, float | None]]:
    """Yield each score of a row: task, value as printed, value, standard deviation or None.

    Raises BenchError, naming the file.
    """
    for score in row["scores"].split(" "):
        try:
            task, printed = score.split("=")
            value, *std = printed.split("±")
            number = float(value)
            spread = float(std[0]) if std else None
        except ValueError:
            raise BenchError(
                f"{file}: '{score}' in the row '{row['label']}' is not a score"
            ) from None
        yield task, value, number, spread
