"""Rows of the published version, as ``bench compare --format json`` has them: numbers on pages of
docs and golden numbers are checked with these. What names a version takes the newest from here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NEWEST = max((ROOT / "leaderboards").glob("v[0-9]*"), key=lambda folder: int(folder.name[1:]))
VERSION = f"leaderboards/{NEWEST.name}"


def compared(runs: str, *options: str) -> list[dict[str, Any]]:
    """Return the tables of those runs as the command prints them."""
    words = ["compare", "--runs", runs, "--format", "json", *options]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout)["tables"])
