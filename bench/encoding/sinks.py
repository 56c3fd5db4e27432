"""Files of vectors that grow by blocks and can be gone on with after a kill: NumPy's .npy and Parquet.

A sink writes below one folder of its own. What ``append`` has returned from is on the disk; ``resume(blocks, rows, dim)``
goes back to a state in which that many had been appended; ``finish`` leaves the whole file at ``sink.whole``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

HEADER = 128  # bytes before the first value of a .npy file: a multiple of 64, with room for any number of rows
WHOLE = "whole"


class Sink(Protocol):
    whole: Path

    def resume(self, blocks: int, rows: int, dim: int) -> None: ...

    def append(self, block: int, sentences: Sequence[str], vectors: np.ndarray) -> None: ...

    def finish(self, blocks: int, rows: int, dim: int, about: Mapping[str, Any]) -> None: ...


class NpySink:
    """(rows, dim) little-endian float32 behind a header that is written last, so that the rows never move."""

    def __init__(self, folder: Path) -> None:
        self.whole, self._growing = folder / WHOLE, folder / "rows"

    def resume(self, blocks: int, rows: int, dim: int) -> None:
        if self.whole.exists():  # the last process was killed when it was all but done
            os.replace(self.whole, self._growing)
        if not blocks:
            with self._growing.open("wb") as file:
                file.write(b"\0" * HEADER)
        elif self._growing.stat().st_size < HEADER + 4 * rows * dim:
            raise OSError(f"{self._growing} is shorter than the {rows:,} vectors that were written")
        else:
            os.truncate(self._growing, HEADER + 4 * rows * dim)

    def append(self, block: int, sentences: Sequence[str], vectors: np.ndarray) -> None:
        with self._growing.open("ab") as file:
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            _to_disk(file)

    def finish(self, blocks: int, rows: int, dim: int, about: Mapping[str, Any]) -> None:
        with self._growing.open("r+b") as file:
            file.write(npy_header(rows, dim))
            _to_disk(file)
        os.replace(self._growing, self.whole)


class ParquetSink:
    """A row group a block, with the columns ``sentence`` (string) and ``vector`` (a list of dim float32).

    Each block is a file of its own until the end, because the index of a Parquet file is its last part; they are then joined,
    one block in memory at a time, which for a while needs the space twice.
    """

    def __init__(self, folder: Path) -> None:
        self.whole, self._folder = folder / WHOLE, folder

    def resume(self, blocks: int, rows: int, dim: int) -> None:
        self.whole.unlink(missing_ok=True)
        for block in range(blocks):
            if not self._block(block).is_file():
                raise OSError(f"{self._block(block)} is missing")

    def append(self, block: int, sentences: Sequence[str], vectors: np.ndarray) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1))
        columns = [pa.array(sentences, pa.string()), pa.FixedSizeListArray.from_arrays(values, vectors.shape[1])]
        aside = self._folder / "block.tmp"
        with aside.open("wb") as file:
            pq.write_table(pa.table(columns, names=["sentence", "vector"]), file, use_dictionary=False)
            _to_disk(file)
        os.replace(aside, self._block(block))

    def finish(self, blocks: int, rows: int, dim: int, about: Mapping[str, Any]) -> None:
        import json

        import pyarrow.parquet as pq

        aside = self._folder / "whole.tmp"
        schema = pq.read_schema(self._block(0)).with_metadata({"bench": json.dumps(about)})
        with aside.open("wb") as file:
            with pq.ParquetWriter(file, schema, use_dictionary=False) as writer:
                for block in range(blocks):
                    writer.write_table(pq.read_table(self._block(block)).cast(schema))
            _to_disk(file)
        os.replace(aside, self.whole)

    def _block(self, block: int) -> Path:
        return self._folder / f"{block:08d}.parquet"


SINKS: Mapping[str, type[NpySink] | type[ParquetSink]] = {".npy": NpySink, ".parquet": ParquetSink}


def npy_header(rows: int, dim: int) -> bytes:
    """The first HEADER bytes of a version 1.0 .npy file of (rows, dim) float32 (NumPy enhancement proposal 1)."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}".encode("ascii")
    room = HEADER - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
