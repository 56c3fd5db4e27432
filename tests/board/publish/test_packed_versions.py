"""A version with its predictions in one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recomputed_scores import packed_arrays

from bench.base.errors import DataDamaged
from bench.base.hashes import values_sha256
from bench.records.arrays import read_arrays
from bench.records.packed import NAME, Packed, narrow, read_packed


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.arange(5), "int8"),
        (np.array([-40_000, 7]), "int32"),
        (np.array([0.5, np.nan, -0.0, np.inf]), "float16"),
        (np.array([0.1]), "float64"),
        (np.array([np.float32(0.1)]), "float32"),
        (np.array([True, False]), "bool"),
        (np.array([["a", "ü\n"], ["", "c"]]), "<U2"),
        (np.array(3), "int8"),
        (np.asfortranarray(np.arange(6).reshape(2, 3)), "int8"),
        (np.zeros((0, 4)), "float16"),
    ],
)
def test_arrays_are_the_same_when_read_again(
    tmp_path: Path, values: np.ndarray, dtype: str
) -> None:
    assert narrow(values).dtype == dtype
    packed = Packed()
    packed.add("runs/a/predictions/T.npz", {"prediction": values, "gold": values})
    packed.add("runs/b/predictions/T.npz", {"prediction": values})
    packed.write(tmp_path / NAME)
    for run in "ab":
        arrays = read_arrays(tmp_path / "runs" / run / "predictions" / "T.npz")
        assert values_sha256({"": arrays["prediction"]}) == values_sha256({"": values})
    only = read_packed(tmp_path / "runs/a/predictions/T.npz", ("gold",))
    assert only is not None and list(only) == ["gold"]


def test_ranks_are_the_same_when_read_again(tmp_path: Path) -> None:
    """Equal ones are stored once."""
    draw = np.random.default_rng(1)
    near = np.arange(400, dtype=np.int16)
    ranks = {
        "simcse-builtin-s1-0a": near,
        "simcse-builtin-s2-0b": near[::-1].copy(),
        "tsdae-builtin-s1-0c": draw.integers(-(2**15), 2**15, 400).astype(np.int16),
        "tsdae-builtin-s2-0d": near,
        "tsdae-builtin-s3-0e": draw.integers(-(2**15), 2**15, 400).astype(np.int16),
        "tsdae-builtin-s4-0f": np.arange(401, dtype=np.int16),
    }
    ranks["tsdae-builtin-s5-10"] = ranks["tsdae-builtin-s3-0e"]
    packed = Packed()
    for run, values in ranks.items():
        packed.add(f"runs/{run}/predictions/T.npz", {"prediction": values})
    packed.write(tmp_path / NAME)
    assert [row[5] for row in packed.rows] == [None, None, None, 0, None, None, 4]
    for run, values in ranks.items():
        path = f"runs/{run}/predictions/T.npz"
        found = read_arrays(tmp_path / path)["prediction"]
        assert found.dtype == np.int16 and np.array_equal(found, values)
        assert np.array_equal(packed_arrays(tmp_path / NAME)[path]["prediction"], values)


def test_a_file_that_is_not_one_of_ours_costs_one_line(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "runs" / "a" / "predictions" / "T.npz"
    row = {"file": "runs/a/predictions/T.npz", "array": "gold", "same": None}
    hostile = [
        {**row, "dtype": "i8", "shape": [1 << 30], "data": b"x"},
        {**row, "dtype": "O", "shape": [1], "data": b"x" * 8},
        {**row, "dtype": "U", "shape": [1], "data": b"[[[["},
        {**row, "dtype": "i1", "shape": [-1], "data": b"x"},
        {**row, "dtype": "i1", "shape": [1], "data": None, "same": 99},
        {**row, "dtype": "i1", "shape": [1], "data": b"x", "same": 0},
        {**row, "dtype": "d2", "shape": [1], "data": b"xx"},
    ]
    for content in hostile:
        parquet.write_table(pa.Table.from_pylist([content]), tmp_path / NAME)
        with pytest.raises(DataDamaged, match="not a predictions file"):
            read_arrays(path)
    whole = (tmp_path / NAME).read_bytes()
    for data in (b"", b"PAR1", whole[: len(whole) // 2], whole[:40] + b"\xff" * 40 + whole[80:]):
        (tmp_path / NAME).write_bytes(data)
        with pytest.raises(DataDamaged):
            read_arrays(path)
