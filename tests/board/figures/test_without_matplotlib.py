"""matplotlib is an extra: what draws says so before it does anything, and all else works without
it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import tree
from made_runs import made_runs

BLOCKED = "import sys; sys.modules['matplotlib'] = None; from bench.cli import main; main()"
INSTALL = "in a clone of bench: pip install -c constraints.txt '.[publish]'"


def blocked(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "BENCH_CACHE": str(folder / "cache")}
    words = [sys.executable, "-c", BLOCKED, *arguments]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    return tmp_path


@pytest.mark.nightly
def test_drawing_without_matplotlib_names_it_and_writes_nothing(here: Path) -> None:
    before = tree(here)
    done = blocked(here, "publish")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-2:] == [
        "error: bench publish draws figures with matplotlib, which is not installed",
        f"try: {INSTALL}",
    ]
    assert {
        name: seen for name, seen in tree(here).items() if not name.startswith("cache")
    } == before
    assert not (here / "leaderboards").exists()
