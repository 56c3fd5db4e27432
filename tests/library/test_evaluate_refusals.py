"""A function whose answers change while it is scored is told of, and its run is failed; a prompt
that nothing would read is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bags import bag
from evaluated import CHECK

import bench
from bench.base.errors import BenchError


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


def test_a_prompt_of_queries_is_refused_where_no_task_has_any(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="prompt_query: no task that is scored has queries"):
        bench.evaluate(bag, runs=tmp_path, prompt_query="query: ", **CHECK)
    assert not list(tmp_path.iterdir())
