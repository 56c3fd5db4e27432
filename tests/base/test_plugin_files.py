"""A plugin file and the files next to it: imported, imported again when they change, and copied for
other machines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from written_plugins import write_plugin

from bench.base.errors import BenchError
from bench.base.plugin_files import hash_plugin, import_file
from bench.run.workers import copy_plugins


@pytest.fixture(autouse=True)
def modules_as_before() -> Iterator[None]:
    before, path = dict(sys.modules), list(sys.path)
    yield
    assert sys.path == path
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def test_a_file_next_to_a_plugin_is_imported_again_if_it_has_changed(tmp_path: Path) -> None:
    mine = write_plugin(
        tmp_path,
        {
            "mine.py": "from helper_a import VALUE",
            "helper_a.py": "from deep_a import VALUE",
            "deep_a.py": "VALUE = 1",
        },
    )
    assert import_file(mine).VALUE == 1
    (tmp_path / "deep_a.py").write_text("VALUE = 12")
    assert import_file(mine).VALUE == 12


def test_a_module_whose_import_is_forbidden_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "forbidden_here", None)
    assert import_file(write_plugin(tmp_path, {"mine.py": "VALUE = 8"})).VALUE == 8


def test_a_function_may_import_a_file_next_to_its_plugin_later(tmp_path: Path) -> None:
    mine = write_plugin(
        tmp_path,
        {
            "mine.py": "def value():\n    from later_a import VALUE\n    return VALUE",
            "later_a.py": "VALUE = 3",
        },
    )
    assert import_file(mine).value() == 3


@pytest.mark.parametrize("name", ["same.py", "same/part.py"])
def test_two_plugins_have_files_of_one_name_next_to_them(name: str, tmp_path: Path) -> None:
    text = "import same.part as same" if "part" in name else "import same"
    first = write_plugin(tmp_path / "one", {"mine.py": text, name: "VALUE = 1"})
    second = write_plugin(tmp_path / "two", {"mine.py": text, name: "VALUE = 2"})
    assert [import_file(one).same.VALUE for one in (first, second, first)] == [1, 2, 1]


def test_a_file_next_to_a_plugin_hides_no_library(tmp_path: Path) -> None:
    mine = write_plugin(
        tmp_path, {"mine.py": "import json, colorsys", "json.py": "x = 1", "colorsys.py": "x = 1"}
    )
    module = import_file(mine)
    assert hasattr(module.json, "loads") and hasattr(module.colorsys, "rgb_to_hsv")


def test_a_plugin_in_a_package_imports_relatively(tmp_path: Path) -> None:
    write_plugin(tmp_path, {"pack_a/__init__.py": "", "pack_a/helper.py": "VALUE = 4"})
    mine = write_plugin(
        tmp_path / "pack_a", {"mine.py": "from .helper import VALUE\nfrom pack_a import helper"}
    )
    assert import_file(mine).VALUE == 4


def test_an_error_in_a_file_next_to_a_plugin_names_its_line(tmp_path: Path) -> None:
    mine = write_plugin(
        tmp_path, {"mine.py": "import helper_c", "helper_c.py": "x = 1\nraise ValueError('no')"}
    )
    with pytest.raises(BenchError, match=r"helper_c\.py:2: ValueError: no"):
        import_file(mine)


def test_copies_for_other_machines_are_whole_and_have_the_same_identity(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "here",
        {
            "pack_b/__init__.py": "",
            "pack_b/sub/__init__.py": "",
            "pack_b/sub/part.py": "VALUE = 6",
            "pack_b/recipes/mine.toml": "",
            "pack_b/unused.py": "",
        },
    )
    mine = write_plugin(tmp_path / "here" / "pack_b", {"mine.py": "from .sub.part import VALUE"})
    single = write_plugin(
        tmp_path / "here" / "single",
        {"mine.py": "from helper_d import VALUE", "helper_d.py": "VALUE = 7"},
    )
    assert [import_file(file).VALUE for file in (mine, single)] == [6, 7]
    here = [hash_plugin(file) for file in (mine, single)]
    copies = [Path(copy) for copy in copy_plugins([str(mine), str(single)], tmp_path / "there")]
    assert [import_file(copy).VALUE for copy in copies] == [6, 7]
    assert [hash_plugin(copy) for copy in copies] == here
    assert (copies[0].parent / "recipes" / "mine.toml").is_file()
    assert not list((tmp_path / "there").rglob("unused.py"))
