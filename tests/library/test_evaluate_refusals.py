"""``bench.evaluate`` refuses what is no model in one line, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import Bag, bag
from evaluated import CHECK

import bench
from bench.base.errors import BenchError

WRONG: list[Any] = [
    object(),
    Bag,
    3,
    lambda some: bag(some)[:-1],
    lambda some: bag(some)[0],
    lambda some: bag(some) * np.nan,
    lambda some: some,
    lambda some: [["a", "b"] for _ in some],
    lambda some: [[0.0] * (1 + i % 2) for i in range(len(some))],
    lambda some: None,
    lambda some: 1 / 0,
    "/no/such/folder",
    "vectors:/no/such.npz",
    {},
]
UNKNOWN: list[dict[str, Any]] = [
    {"suites": ["stss"]},
    {"settings": {"pooling": "mean"}},
    {"name": "builtin"},
]


def never(some: list[str]) -> np.ndarray:
    raise AssertionError


def test_other_values_than_models_are_refused_and_nothing_is_written(
    tmp_path: Path, snapshot: Any
) -> None:
    said = []
    for model, options in [*((one, {}) for one in WRONG), *((never, one) for one in UNKNOWN)]:
        with pytest.raises(BenchError) as caught:
            bench.evaluate(model, **{**CHECK, "runs": tmp_path / "runs", **options})
        said.append(caught.value.message.partition(", at ")[0])
        assert "\n" not in said[-1] and not (tmp_path / "runs").exists()
    assert said == snapshot


def test_a_dimension_that_changes_later_is_told_of_and_the_next_try_goes_on(tmp_path: Path) -> None:
    calls: list[int] = []

    def changes(some: list[str]) -> np.ndarray:
        calls.append(len(some))
        return bag(some, 48 if len(calls) < 6 else 47)

    with pytest.raises(BenchError, match="changes returned 47 dimensions, 48 before"):
        bench.evaluate(changes, runs=tmp_path, **CHECK)
    (failed,) = bench.load_runs(tmp_path)
    assert failed.record.status == "failed" and not failed.scores
    with pytest.raises(BenchError, match="not finished"):
        bench.compare_runs([failed])
