"""kill -9 at random moments of every kind of work, more than 100 times: nothing is lost, nothing is
there twice. ``tools/kills.py`` has more kinds.

``BENCH_TEST_KILLS``: kills of each kind, instead of these numbers.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import kills
import pytest

KILLS = {"train-simcse": 30, "score-check": 20, "search": 30, "publish": 20}
KILLS |= {"evaluate": 12, "submit": 12, "export": 12}
KILLS |= {"record": 6, "data-fetch": 4, "data-overlap": 2}


@pytest.mark.nightly
@pytest.mark.parametrize("name", KILLS)
def test_killed_work_continues_and_ends_as_undisturbed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))  # the works' own is set in it
    (work,) = kills.works(tmp_path / "inputs", None, [name])
    count = int(os.environ.get("BENCH_TEST_KILLS", KILLS[name]))
    told = kills.killed(work, tmp_path / "place", count, random.Random(f"1 {name}"))
    print(f"\n{told.line()}")
    assert told.wrong == [] and told.ends >= 1
