"""The rows of one file of a hub data set: the columns that were asked for, under the names that corpora have here."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.corpora.lines import read_lines
from bench.corpora.rows import ALSO, COLUMNS
from bench.errors import CorpusError

if TYPE_CHECKING:
    from bench.corpora.hub_name import HubName

TEXT = (".jsonl", ".json", ".csv", ".tsv", ".txt")
SUFFIXES = {".parquet", *TEXT, *(f"{one}{packed}" for one in TEXT for packed in (".gz", ".xz"))}
BATCH = 10_000  # rows of a parquet file that are in memory at once

HubRow = dict[str, str | int | None]


def suffix_of(file: str) -> str:
    """ ".parquet", ".jsonl", ".csv.gz", ... in lower case; of a packed file both."""
    path = Path(file.lower())
    return "".join(path.suffixes[-2:]) if path.suffix in (".gz", ".xz") else path.suffix


def named(columns: Sequence[str]) -> tuple[str, ...]:
    """What the columns of a data set are called here: by their names where all are known, else by their order."""
    known = tuple(ALSO.get(column, column) for column in columns)
    if any(sorted(known) == sorted(one) for one in COLUMNS):
        return known
    if len(columns) == 3 and ALSO.get(columns[2], columns[2]) == "label":
        return COLUMNS[3]
    return COLUMNS[len(columns) - 1]


def read_rows(path: Path, file: str, name: HubName) -> Iterator[HubRow]:
    """The rows of a file that lies at ``path`` and is called ``file`` in its data set; rows without a gold label (-1) are left
    out. Raises CorpusError where it has no such columns, or they hold no text."""
    ours = named(name.columns)
    for number, record in enumerate(_records(path, file, name), start=1):
        row = {our: record.get(column) for our, column in zip(ours, name.columns, strict=True)}
        if row.get("label") in (-1, "-1", "-"):
            continue
        for our, column in zip(ours, name.columns, strict=True):
            value = row[our]
            if not (value is None or isinstance(value, str) or (our == "label" and type(value) is int)):
                raise CorpusError(
                    f"{name.text}: row {number} of {file} has a {type(value).__name__} in '{column}', expected text"
                )
        yield row


def _records(path: Path, file: str, name: HubName) -> Iterator[Mapping[str, Any]]:
    suffix = suffix_of(file)
    if suffix == ".parquet":
        yield from _parquet(path, file, name)
        return
    lines = read_lines(path)
    kind = "." + suffix.split(".")[1]
    if kind == ".txt":
        (column,) = check_columns(name, file, ("text", "sentence"), most=1)
        yield from ({column: line.removesuffix("\r")} for line in lines)
    elif kind in (".jsonl", ".json"):
        yield from _json_lines(lines, file, name)
    elif kind == ".tsv":
        header = next(lines, "").removesuffix("\r").split("\t")
        check_columns(name, file, header)
        yield from (dict(zip(header, line.removesuffix("\r").split("\t"), strict=False)) for line in lines)
    else:
        table = csv.reader(line + "\n" for line in lines)
        header = next(table, [])
        check_columns(name, file, header)
        yield from (dict(zip(header, cells, strict=False)) for cells in table if cells)


def check_columns(name: HubName, file: str, there: Sequence[str], most: int = 3) -> tuple[str, ...]:
    """The columns that were asked for. Raises CorpusError where one is not ``there``, or none was named."""
    missing = [column for column in name.columns if column not in there]
    if missing or not name.columns or len(name.columns) > most:
        what = f"no column '{missing[0]}'" if missing else "its columns were not named" if not name.columns else "one column"
        raise CorpusError(
            f"{name.text}: {what} in {file}; it has {', '.join(map(str, there))}",
            f"for example hub:{name.repo}:{there[0] if there else 'text'}",
        )
    return name.columns


def _json_lines(lines: Iterator[str], file: str, name: HubName) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise CorpusError(f"{name.text}: line {number} of {file} is no JSON object", "expected one object a line")
        if number == 1:
            check_columns(name, file, list(record))
        yield record


def _parquet(path: Path, file: str, name: HubName) -> Iterator[Mapping[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as table:
            check_columns(name, file, table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=BATCH, columns=list(name.columns)):
                columns = [batch.column(column).to_pylist() for column in name.columns]
                yield from (dict(zip(name.columns, cells, strict=True)) for cells in zip(*columns, strict=True))
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(
            f"{name.text}: {file} is no parquet file that can be read: {' '.join(str(error).split())[:120]}"
        ) from None
