"""Batches of Arrow, which Parquet files and saved folders are read in, as numbered records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.base.errors import CorpusError
from bench.data.reading.lines import Record, is_text


def records_of_batches(where: str, batches: Iterable[Any]) -> Iterator[tuple[int, Record]]:
    """Yield (number from 1, cells by column) for each row of some RecordBatches or Tables.

    ``where`` names their file in messages. Raises CorpusError, naming the row, for a NUL, which no
    tokenizer takes.
    """
    number = 0
    for batch in batches:
        # Arrow looks through a column in a hundredth of the time that Python needs
        suspect = any(_has_nul(column) for column in batch.columns)
        for record in batch.to_pylist():
            number += 1
            if suspect and not is_text(record):
                raise CorpusError(f"{where}: row {number} has a NUL character")
            yield number, record


def _has_nul(column: Any) -> bool:
    from pyarrow import compute, types

    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _has_nul(compute.list_flatten(column))
    if types.is_dictionary(kind):
        return _has_nul(column.cast(kind.value_type))
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return False
    return bool(compute.any(compute.match_substring(column, "\0")).as_py())
