"""Resampled values that are kept: used again, and never believed when anything differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from bench.compare.shelf import Shelf
from bench.statistics.cells import Predicted
from bench.statistics.resampling import resample_all


def cell(seed: int = 0, **changes: object) -> Predicted:
    rng = np.random.default_rng(seed)
    made = Predicted("T", "spearman", (1, 2), rng.normal(size=(2, 30)), rng.normal(size=30))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_is_kept_is_not_made_again(tmp_path: Path) -> None:
    shelf, one = Shelf(50, 0, tmp_path), cell()
    assert shelf.fetch([one]) == [one]
    (found,) = resample_all([one], draws=50, seed=0)
    shelf.keep(one, found)
    again = cell()
    assert shelf.fetch([again]) == []
    with mock.patch("bench.statistics.resampling._resample", side_effect=AssertionError("resampled again")):
        (kept,) = resample_all([again], draws=50, seed=0)
    assert np.array_equal(kept.value_BS, found.value_BS) and np.array_equal(kept.value_SR, found.value_SR)


@pytest.mark.parametrize("other", [cell(1), cell(task="U"), cell(gold_N=np.arange(30.0)), cell(seeds=(1, 3)),
                                   cell(unit_N=np.repeat(np.arange(15), 2))], ids=["prediction", "task", "gold", "seed names", "unit"])  # fmt: skip
def test_anything_else_is_made_anew(tmp_path: Path, other: Predicted) -> None:
    shelf, one = Shelf(50, 0, tmp_path), cell()
    shelf.keep(one, resample_all([one], draws=50, seed=0)[0])
    same_numbers = other.seeds == (1, 3)  # what a seed is called changes no number
    assert shelf.fetch([other]) == ([] if same_numbers else [other])
    for changed in (Shelf(60, 0, tmp_path), Shelf(50, 1, tmp_path)):
        fresh = cell()
        assert changed.fetch([fresh]) == [fresh]


@pytest.mark.parametrize("content", [b"", b"PK nothing", "arrays"])
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes | str) -> None:
    shelf, one = Shelf(50, 0, tmp_path), cell()
    (found,) = resample_all([one], draws=50, seed=0)
    shelf.keep(one, found)
    (path,) = tmp_path.glob("*.npz")
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, value_SR=np.zeros((2, 1)), value_BS=np.zeros((3, 2)))
    fresh = cell()
    assert shelf.fetch([fresh]) == [fresh]
    shelf.keep(fresh, found)
    assert shelf.fetch([cell()]) == []


def test_a_place_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    shelf, one = Shelf(50, 0, tmp_path / "file" / "below"), cell()
    shelf.keep(one, resample_all([one], draws=50, seed=0)[0])
    shelf.tidy()
    assert shelf.fetch([one]) == [one]


def test_what_was_not_used_for_a_month_goes(tmp_path: Path) -> None:
    import os

    shelf = Shelf(50, 0, tmp_path)
    for seed in (0, 1):
        shelf.keep(cell(seed), resample_all([cell(seed)], draws=50, seed=0)[0])
    old = sorted(tmp_path.glob("*.npz"))[0]
    os.utime(old, (0, 0))
    shelf.tidy()
    assert not old.exists() and len(list(tmp_path.glob("*.npz"))) == 1
