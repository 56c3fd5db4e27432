"""Our half of each parity check can be built; the authors' half needs their repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

PARITY = Path(__file__).parents[2] / "benchmarks" / "parity"
BUILD = """
import importlib, sys
from pathlib import Path
import ours, tiny
folder = Path(sys.argv[2])
backbones = tiny.tiny_backbones(folder)
for case in importlib.import_module(sys.argv[1]).CASES:
    for family in case.families:
        ours.build(case, backbones[family], folder)
        print(case.name)
"""


@pytest.mark.parametrize("name", ["simcse", "promcse", "focal_infonce", "promptbert"])
def test_every_case_is_built(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, name, tmp_path],
        cwd=PARITY,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3
