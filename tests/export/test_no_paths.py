"""An export says nothing of the folders of the machine that made it."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import record
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.export.model import check_export


def test_a_run_that_names_a_folder_is_not_exported(tmp_path: Path) -> None:
    one = record("simcse", 1, status="finished")
    check_export(one, tmp_path / "new")
    origin = replace(one.provenance, command="bench run --data ~/sets")
    with pytest.raises(BenchError, match="provenance.command holds the absolute path of 'sets'"):
        check_export(replace(one, provenance=origin), tmp_path / "new")
