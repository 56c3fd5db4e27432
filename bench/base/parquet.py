"""Parquet files that others made, unpacked only up to a limit.

A file of a few kilobytes can hold gigabytes: one long text in a dictionary, named by each of a
million rows. The sizes in its metadata count that text once. So the texts of a dictionary are
measured first, a file is read in batches that have room for the longest, and their contents are
counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData, RowGroupMetaData

MIB = 1 << 20
BATCH_BYTES = 256 * MIB
"""The size of one batch, if its metadata states the longest value truthfully; one value can always
be as large as its file says.
"""
MOST_ROWS = 10_000
"""Rows of one batch."""
STORED_EACH = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"})
"""Encodings of texts that hold each row's text by itself."""
STORED_ONCE = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
"""Encodings of texts that hold a text once for many rows."""


class TooLarge(ValueError):
    """A file that unpacks to more than its kind may have."""


def limit_of(packed: int, times: int) -> int:
    """Return how many bytes a file of ``packed`` bytes may unpack to.

    It is ``times`` as many, plus 64 MiB.
    """
    return 64 * MIB + times * packed


def read_batches(
    source: Any,
    columns: Sequence[str],
    limit: int,
    dictionaries: Sequence[str] = (),
    most_rows: int = MOST_ROWS,
) -> Iterator[Any]:
    """Yield batches of these columns of a file, or of an open one, in row order.

    A batch has at most ``most_rows`` and, if it can be cut so, 256 MiB. ``limit``: bytes of all
    batches together. ``dictionaries``: columns that stay dictionaries. Raises TooLarge before it
    yields the batch beyond the limit, and pyarrow's errors for a damaged file.
    """
    from pyarrow.parquet import ParquetFile

    total = 0
    with ParquetFile(source, read_dictionary=list(dictionaries)) as table:
        for group in range(table.metadata.num_row_groups):
            rows = min(most_rows, _rows_at_once(source, table.metadata, group, columns, limit))
            batches = table.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns))
            for batch in batches:
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


def _rows_at_once(
    source: Any, metadata: FileMetaData, group: int, columns: Sequence[str], limit: int
) -> int:
    """Return the rows of a group that fit into ``BATCH_BYTES`` with the longest value in each."""
    row_group = metadata.row_group(group)
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
        longest = max(longest, _longest_shared(source, metadata, group, row_group, column))
    return max(1, min(MOST_ROWS, BATCH_BYTES // longest))


def _longest_shared(
    source: Any,
    metadata: FileMetaData,
    group: int,
    row_group: RowGroupMetaData,
    column: ColumnChunkMetaData,
) -> int:
    """Return the most bytes of a row that other rows may have, too, without room of their own.

    Texts in a dictionary are measured. Texts that are stored for each row share nothing. In any
    other encoding the whole column may be one value.
    """
    encodings = frozenset(column.encodings)
    if column.physical_type != "BYTE_ARRAY" or not encodings <= STORED_EACH | STORED_ONCE:
        return int(column.total_uncompressed_size)
    if not encodings & STORED_ONCE:
        return 1
    longest = _longest_in_dictionary(source, metadata, group, column.path_in_schema)
    if longest is None:
        return int(column.total_uncompressed_size)
    values_of_a_row = -(-column.num_values // max(1, row_group.num_rows))
    return values_of_a_row * longest


def _longest_in_dictionary(
    source: Any, metadata: FileMetaData, group: int, path: str
) -> int | None:
    """Return the bytes of the longest text in the dictionary of a column of texts or of lists of
    texts; None if its first row, which brings all of the dictionary along, has none.
    """
    from pyarrow import compute, types
    from pyarrow.parquet import ParquetFile

    name = path.partition(".")[0]
    table = ParquetFile(source, metadata=metadata, read_dictionary=[path], pre_buffer=False)
    batch = next(table.iter_batches(batch_size=1, row_groups=[group], columns=[name]))
    values = batch.column(0)
    if types.is_list(values.type):
        values = values.flatten()
    if not types.is_dictionary(values.type):
        return None
    return compute.max(compute.binary_length(values.dictionary)).as_py()
