"""Code of a model folder: no export holds or names it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench.base.errors import RunFailed
from bench.export.code import check_code, remove_code_names


def test_names_of_code_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "1_Dense").mkdir()
    config = {"auto_map": {"AutoModel": "evil.M"}, "inner": [{"auto_map": ["a.B"], "size": 2}]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "1_Dense" / "config.json").write_text(json.dumps({"auto_map": "other/repo--x.Y"}))
    vocabulary = {"auto_map": 7, "a": 0}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    remove_code_names(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {"inner": [{"size": 2}]}
    assert json.loads((tmp_path / "1_Dense" / "config.json").read_text()) == {}
    assert json.loads((tmp_path / "vocab.json").read_text()) == vocabulary


def test_only_the_module_files_of_bench_may_be_there(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("a = 1\n")
    folder = tmp_path / "export"
    (folder / "below").mkdir(parents=True)
    shutil.copyfile(own, folder / "own.py")
    check_code(folder, [own])
    for name, text in (("other.py", ""), ("below/own.py", "a = 1\n"), ("x.so", "")):
        (folder / name).write_text(text)
        with pytest.raises(RunFailed, match="neither data nor a module of bench"):
            check_code(folder, [own])
        (folder / name).unlink()
    (folder / "own.py").write_text("a = 2\n")
    with pytest.raises(RunFailed, match="own.py"):
        check_code(folder, [own])
