"""Rows of the published version, as ``bench compare --format json`` has them: numbers on pages of
docs are checked with these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.publish.versions import version_folders

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"leaderboards/{version_folders(ROOT / 'leaderboards')[-1].name}"


def unsupervised_rows(runs: str) -> list[dict[str, Any]]:
    """Return the rows of the unsupervised STS table of those runs on the built-in backbone."""
    words = ["compare", "--runs", runs, "--suite", "sts", "--baseline", "simcse"]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *words, "--format", "json"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    for table in json.loads(done.stdout)["tables"]:
        if (table["setting"], table["backbone"], table["budget"]) == (
            "unsupervised",
            "builtin",
            "",
        ):
            return list(table["rows"])
    raise LookupError(f"{runs}: no unsupervised table on the built-in backbone")
