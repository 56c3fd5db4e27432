"""One way from stored arrays to a score, against other people's arithmetic; and arrays that are not
what they should be.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.base.errors import BenchError, DataDamaged
from bench.records.arrays import read_arrays
from bench.score.suites import rescore

N = 60
DRAW = np.random.default_rng(3)
COSINES = {
    "prediction": DRAW.normal(size=N),
    "gold": DRAW.integers(0, 6, N).astype(float),
    "subset": np.array(["a", "b", "b"] * (N // 3)),
}


def test_pairs() -> None:
    found = rescore(("sts", "STS12", "senteval-all/1"), COSINES)
    assert found is not None and (found.n, found.std) == (N, None)
    assert found.value == pytest.approx(
        100 * spearmanr(COSINES["prediction"], COSINES["gold"]).statistic, abs=1e-10
    )
    assert rescore(("check", "captions", "check/2"), COSINES) == found
    assert rescore(("check", "CHECK", "check/1"), COSINES) == found, "of an earlier bench"


ODD = {
    "missing": lambda a: {key: value for key, value in a.items() if key != "gold"},
    "nothing": lambda a: {},
    "short": lambda a: a | {"gold": a["gold"][:-1]},
    "text": lambda a: a | {"prediction": np.array(["x"] * N)},
    "not a number": lambda a: a | {"prediction": np.full(N, np.nan)},
    "infinite": lambda a: a | {"prediction": np.where(np.arange(N) == 0, np.inf, a["prediction"])},
    "empty": lambda a: {key: value[:0] for key, value in a.items()},
    "deep": lambda a: a | {"prediction": np.zeros((2, 2, 2))},
    "scalar": lambda a: a | {"prediction": np.array(1.0)},
}
KEYS = [
    ("sts", "STS12", "senteval-all/1"),
    ("cxc", "CxC-STS", "cxc-parekh/1"),
    ("transfer", "MRPC", "senteval-probe/1"),
    ("transfer-quick", "MR-quick", "logreg-probe/1"),
    ("fewshot", "MR-16", "senteval-fewshot/1"),
    ("clustering", "AgNews", "sccl-kmeans/1"),
    ("geometry", "alignment", "geometry-stsb/1"),
    ("geometry", "uniformity", "geometry-stsb/1"),
    ("mteb", "x", "mteb/2"),
    ("check", "captions", "check/2"),
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("suite", "task", "protocol"), KEYS, ids=[f"{a} {b}" for a, b, _ in KEYS])
def test_arrays_that_are_something_else_never_give_a_score_that_is_no_number(
    suite, task, protocol, odd
):
    more = {"fold": np.zeros(N, dtype=int), "image": np.arange(N), "caption1": np.arange(N)}
    arrays = ODD[odd](COSINES | more | {"inertia": np.ones(10)})
    try:
        found = rescore((suite, task, protocol), arrays, "cosine_spearman")
    except DataDamaged as error:
        assert task in error.message or "prediction" in error.message
        assert error.message.isprintable()
    else:
        assert found is None or np.isfinite(found.value)


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


class Mine:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("unpickled",))


def test_predictions_files_that_somebody_made_up(tmp_path: Path) -> None:
    good = npy(np.arange(3))
    huge = good.replace(b"(3,)", b"(9999999999999,)").replace(b" " * 12, b"", 1)
    assert list(read_arrays(npz(tmp_path / "good.npz", a=good))["a"]) == [0, 1, 2]
    for name, data in {
        "pickle": npy(np.array([Mine()], dtype=object)),
        "huge": huge,
        "none": b"",
        "text": b"hello",
        "cut": good[:-1],
        "backwards": good.replace(b"(3,)", b"(-3, -1)").replace(b" " * 4, b"", 1),
        "newer": good[:6] + b"\x03" + good[7:],
    }.items():
        with pytest.raises(DataDamaged, match=f"{name}.npz is not a predictions file"):
            read_arrays(npz(tmp_path / f"{name}.npz", a=data))
    by_column = np.asfortranarray(np.arange(6).reshape(2, 3))
    arrays = {"a": npy(by_column), "b": npy(np.zeros((2, 0))), "c": npy(np.array(["", ""]))}
    both = npz(tmp_path / "two.npz", **arrays)
    read = read_arrays(both)
    assert np.array_equal(read["a"], by_column) and read["b"].shape == (2, 0)
    assert list(read["c"]) == ["", ""] and list(read_arrays(both, ("b", "z"))) == ["b"]
    whole = (tmp_path / "good.npz").read_bytes()
    # a byte that flipped anywhere is an error or changes nothing that is read
    for i in range(0, len(whole), 3):
        flipped = whole[:i] + bytes([whole[i] ^ 0x41]) + whole[i + 1 :]
        (tmp_path / "flipped.npz").write_bytes(flipped)
        try:
            read_arrays(tmp_path / "flipped.npz")
        except BenchError as error:
            assert error.message.startswith(str(tmp_path))


def test_a_file_that_unpacks_to_more_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.records.arrays.LARGEST", 10_000)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(np.zeros(10_000)))
    with pytest.raises(DataDamaged, match="too much"):
        read_arrays(tmp_path / "bomb.npz")
