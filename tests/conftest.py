"""Fixtures that several areas share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with evaluation data, corpora and reference vectors: beside the repository, or $BENCH_SHARED."""
    folder = Path(os.environ.get("BENCH_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (folder / "data").is_dir():
        pytest.skip(f"no evaluation data: {folder} does not exist (set BENCH_SHARED)")
    return folder
