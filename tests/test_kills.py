"""kill -9 at random moments of every kind of work: nothing is lost, nothing is there twice. A few of what ``tools/kills.py`` does.

``BENCH_TEST_KILLS``: kills of each kind, in the place of the few.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import kills
import pytest

FEW = {"train-simcse": 4, "score-check": 2, "record": 6, "data-fetch": 4}
FEW |= {"data-overlap": 2, "publish": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_what_is_killed_goes_on_and_ends_as_undisturbed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))  # the works' own is set in it
    (work,) = kills.works(tmp_path / "inputs", None, [name])
    count = int(os.environ.get("BENCH_TEST_KILLS", FEW[name]))
    told = kills.killed(work, tmp_path / "place", count, random.Random(f"1 {name}"))
    print(f"\n{told.line()}")
    assert told.wrong == [] and told.ends >= 1
