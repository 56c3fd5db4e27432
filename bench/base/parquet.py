"""Parquet files that others made, unpacked only up to a limit.

A file of a few kilobytes can hold gigabytes: one long text in a dictionary, named by each of a
million rows. The sizes in its metadata count that text once. So a file is read in small batches,
and their contents are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MIB = 1 << 20
BATCH_BYTES = 256 * MIB
"""The size of one batch, if its metadata states the longest value truthfully; one value can always
be as large as its file says.
"""
MOST_ROWS = 10_000
"""Rows of one batch."""


class TooLarge(ValueError):
    """A file that unpacks to more than its kind may have."""


def limit_of(packed: int, times: int, floor: int = 64 * MIB) -> int:
    """Return how many bytes a file of ``packed`` bytes may unpack to.

    It is ``times`` as many, plus ``floor``.
    """
    return floor + times * packed


def read_batches(table: ParquetFile, columns: Sequence[str], limit: int) -> Iterator[Any]:
    """Yield batches of these columns in row order.

    A batch has at most 10,000 rows and, if it can be cut so, 256 MiB. ``limit``: bytes of all
    batches together. Raises TooLarge before it yields the batch beyond it, and pyarrow's errors for
    a damaged file.
    """
    total = 0
    for group in range(table.metadata.num_row_groups):
        rows = _rows_at_once(table, group, columns, limit)
        for batch in table.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns)):
            for column in batch.columns:
                total += unpacked_column_bytes(column)
            if total > limit:
                raise TooLarge(f"it unpacks to more than {limit:,} bytes")
            yield batch


def unpacked_column_bytes(column: Any) -> int:
    """Return the bytes of an Arrow array if each row had its own copy of its value.

    A dictionary holds each value once.
    """
    from pyarrow import compute, types

    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return unpacked_column_bytes(column.flatten()) + 8 * len(column)
    if not types.is_dictionary(kind):
        return int(column.nbytes)
    values = column.dictionary
    if not (types.is_unicode(values.type) or types.is_binary(values.type)):
        return int(values.nbytes) + 8 * len(column)
    lengths = compute.binary_length(values).take(column.indices)
    return int(compute.sum(lengths).as_py() or 0) + 8 * len(column)


def _rows_at_once(table: ParquetFile, group: int, columns: Sequence[str], limit: int) -> int:
    """Return the rows of a group that fit into ``BATCH_BYTES`` with the longest value in each."""
    row_group = table.metadata.row_group(group)
    wanted = set(columns)
    longest = 1
    for i in range(row_group.num_columns):
        column = row_group.column(i)
        if column.path_in_schema.partition(".")[0] not in wanted:
            continue
        # equal numbers, and nothing at all, take no room in a file: eight bytes each when they are
        # unpacked
        size = max(column.total_uncompressed_size, 8 * column.num_values)
        if size > limit:
            raise TooLarge(f"it unpacks to {size:,} bytes, the limit is {limit:,}")
        longest = max(longest, column.total_uncompressed_size)
    return max(1, min(MOST_ROWS, BATCH_BYTES // longest))
