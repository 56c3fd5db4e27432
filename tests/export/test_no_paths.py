"""An export says nothing of the folders of the machine that made it."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import record
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.export.model import check_export, refuse_written_paths


def test_a_run_that_names_a_folder_is_not_exported(tmp_path: Path) -> None:
    one = record("simcse", 1, status="finished")
    check_export(one, tmp_path / "new")
    origin = replace(one.provenance, command="bench run --data ~/sets")
    with pytest.raises(BenchError, match="provenance.command holds the absolute path of 'sets'"):
        check_export(replace(one, provenance=origin), tmp_path / "new")


@pytest.mark.parametrize("name", ["README.md", "results/x/1/run_settings.jsonl"])
def test_written_files_are_searched_for_absolute_paths(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"a": "https://example.org/x"}\n', encoding="utf-8")
    refuse_written_paths(tmp_path)
    file.write_text('{"a": 1}\n{"cache": "/home/ada/cache"}\n', encoding="utf-8")
    with pytest.raises(BenchError, match=f"{name}, line 2 holds the absolute path of 'cache'"):
        refuse_written_paths(tmp_path)
