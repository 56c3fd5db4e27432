"""What every method that trains unsupervised learns; see learning.py. A file for each setting: files are what workers share out."""

from __future__ import annotations

from pathlib import Path

import pytest
from learning import TRAINED, corpora, rises

__all__ = ["corpora"]  # the fixture


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, setting in TRAINED if setting == "unsupervised"])
def test_a_trained_method_rises_above_its_start(name: str, corpora: dict[str, str], shared: Path, tmp_path: Path) -> None:  # noqa: F811
    rises(name, "unsupervised", corpora, shared, tmp_path)
