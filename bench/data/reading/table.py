"""Tables: a file, or a folder that ``save_to_disk`` wrote, read row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import CorpusError
from bench.base.parquet import TooLarge, limit_of, read_batches
from bench.data.reading.batches import records_of_batches
from bench.data.reading.lines import (
    BLOCK,
    COMPRESSED,
    LINES,
    MOST_TIMES,
    Record,
    Seen,
    read_line_records,
)
from bench.data.reading.saved import read_saved

PARQUET = ".parquet"
SAVED = "saved"
"""The format of a folder of ``save_to_disk``, in the place of a file ending such as ".csv"."""
SUFFIXES = (*LINES, PARQUET)
Choose = Callable[[list[str]], Sequence[str]]
"""Returns the columns to read, of those that are there."""


def format_of(file: str | Path) -> str:
    """Return ".jsonl" for "a.jsonl" and "A.JSONL.gz".

    Only text is read compressed: ".gz" for "a.parquet.gz".
    """
    path = Path(file)
    suffix, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if suffix in COMPRESSED and inner in LINES else suffix


@dataclass(frozen=True)
class TableFile:
    """Rows in a file or in a saved folder, in their order.

    ``where`` names it in messages; ``format`` is one of ``SUFFIXES``, or "saved".
    """

    path: Path
    where: str
    format: str

    @property
    def word(self) -> str:
        """The name of a row: "line" if a person finds it by its number in an editor."""
        return "line" if self.format in LINES else "row"

    def records(self, choose: Choose = list, seen: Seen = None) -> Iterator[tuple[int, Record]]:
        """Return (number, cells by column) for each row. ``word`` names the things that are
        counted.

        Of Parquet files and saved folders only the columns that ``choose`` returns are read.
        ``seen`` gets every block of a file's (decompressed) content. Raises CorpusError, naming the
        row.
        """
        if self.format == SAVED:
            return read_saved(self.where, self.path, choose)
        if self.format == PARQUET:
            return _read_parquet(self.where, self.path, choose, seen)
        return read_line_records(self.where, self.path, self.format, seen)

    def stamps(self) -> list[int]:
        """Return size and times of each file; what is known of it holds until one of them changes.

        Times of a change of the file's entry count, so that an edit that keeps size and date is
        noticed.
        """
        files = [self.path]
        if self.format == SAVED:
            files = [*sorted(self.path.glob("*.json")), *sorted(self.path.glob("*.arrow"))]
        stamps: list[int] = []
        for file in files:
            stat = file.stat()
            stamps += [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        return stamps


def open_table(path: Path, where: str = "") -> TableFile:
    """Return the table in a file or saved folder. Raises CorpusError for an unknown format.

    ``where`` names it in messages, and may have the suffix that ``path`` lacks.
    """
    kind = SAVED if path.is_dir() else format_of(path)
    if kind not in (*SUFFIXES, SAVED):
        raise CorpusError(
            f"{where or path}: unknown format '{path.suffix}'; expected {', '.join(LINES)} (plain, "
            f".gz or .xz) or {PARQUET}",
            "rename the file by its content, for example .txt for one sentence per line",
        )
    return TableFile(path, where or str(path), kind)


def _read_parquet(
    where: str, path: Path, choose: Choose, seen: Seen
) -> Iterator[tuple[int, Record]]:
    import pyarrow
    from pyarrow.parquet import read_schema

    try:
        if seen is not None:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    seen(block)
        names = read_schema(path).names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise CorpusError(
                f"{where} has the column '{twice[0][:30]}' twice", "rename or drop one of them"
            )
        limit = limit_of(path.stat().st_size, MOST_TIMES)
        batches = read_batches(path, list(choose(names)), limit)
        yield from records_of_batches(where, batches)
    except (pyarrow.ArrowException, OSError, TooLarge) as error:
        raise CorpusError(
            f"{where} is not a readable Parquet file: {' '.join(str(error).split())[:120]}"
        ) from None
