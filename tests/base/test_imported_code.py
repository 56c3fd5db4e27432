"""The identity of code covers everything that a file imports within its reach, however it imports
it, and nothing else.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from written_plugins import write_plugin

from bench import methods
from bench.base.import_scope import CodeFile, ImportScope
from bench.base.import_search import find_installed
from bench.base.imported_code import code_files, files_of_plugin, hash_code, hash_file, hash_module
from bench.base.installed_code import hash_of_method, installed_methods
from bench.run.plugins import discover

METHODS = Path(methods.__file__).parent


# (the plugin's text, files next to it that it imports, files that it does not import)
IMPORTS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "a module": ("import helper", {"helper.py": ""}, {"other.py": ""}),
    "a name": ("from helper import VALUE", {"helper.py": "VALUE = 1"}, {"VALUE.py": ""}),
    "under another name": ("import helper as h", {"helper.py": ""}, {"h.py": ""}),
    "in a function": ("def f():\n    from helper import x", {"helper.py": ""}, {}),
    "in a condition": (
        "try:\n    import fast\nexcept ImportError:\n    import slow",
        {"fast.py": "", "slow.py": ""},
        {},
    ),
    "a helper's helper": (
        "import one",
        {"one.py": "import two", "two.py": "import three", "three.py": "import one"},
        {},
    ),
    "a package": (
        "import a.b.c",
        {"a/__init__.py": "", "a/b/__init__.py": "", "a/b/c.py": ""},
        {"a/d.py": "", "a/b/e.py": "", "c.py": ""},
    ),
    "a module from a package": (
        "from a import b",
        {"a/__init__.py": "", "a/b.py": ""},
        {"b.py": "", "a/c.py": ""},
    ),
    "relative imports": (
        "import a",
        {
            "a/__init__.py": "from . import b",
            "a/b.py": "from .c import x\nfrom ..a import d",
            "a/c.py": "",
            "a/d.py": "",
        },
        {"b.py": "", "c.py": "", "a/e.py": ""},
    ),
    "a folder without __init__": ("import a.b", {"a/b.py": ""}, {"a/c.py": ""}),
    "a star": ("from helper import *", {"helper.py": "from deeper import *", "deeper.py": ""}, {}),
    "a star from a package": (
        "from a import *",
        {"a/__init__.py": "__all__ = ['b']\n__all__ += ['c']", "a/b.py": "", "a/c.py": ""},
        {"a/d.py": ""},
    ),
    "importlib": (
        "import importlib\nimportlib.import_module('helper')",
        {"helper.py": ""},
        {"other.py": ""},
    ),
    "importlib under another name": (
        "from importlib import import_module as load\nfor name in ('one', 'two'):\n    load(name)",
        {"one.py": "", "two.py": ""},
        {"three.py": ""},
    ),
    "importlib, relative": (
        "from importlib import import_module\nimport_module('.b', 'a')",
        {"a/__init__.py": "", "a/b.py": ""},
        {"b.py": ""},
    ),
    "importlib, a name put together": (
        "import importlib\nimportlib.import_module(f'parts.{name}')",
        {"parts/__init__.py": "", "parts/one.py": "", "parts/two/__init__.py": ""},
        {"other.py": ""},
    ),
    "__import__": ("__import__('helper')", {"helper.py": ""}, {}),
    "by its path": (
        "from importlib.util import spec_from_file_location\n"
        "spec_from_file_location('h', Path(__file__).parent / 'parts' / 'helper.py')",
        {"parts/helper.py": "import mine"},
        {"helper.txt": ""},
    ),
    "all modules of a package": (
        "import a",
        {
            "a/__init__.py": "import pkgutil\nlist(pkgutil.iter_modules(__path__))",
            "a/b.py": "",
            "a/c/__init__.py": "",
        },
        {"b.py": ""},
    ),
    "for type checkers only": (
        "if TYPE_CHECKING:\n    import one\nelse:\n    import two",
        {"two.py": ""},
        {"one.py": ""},
    ),
    "a word that is no import": (
        "name = 'helper'  # import helper\n'''import helper'''",
        {},
        {"helper.py": ""},
    ),
    "libraries": ("import json, numpy as np\nfrom torch import nn", {}, {}),
}


@pytest.mark.parametrize("kind", IMPORTS)
def test_an_edit_of_what_is_imported_moves_the_hash_and_no_other_edit_does(
    kind: str, tmp_path: Path
) -> None:
    text, imported, others = IMPORTS[kind]
    mine = write_plugin(tmp_path, {"mine.py": text, **imported, **others})
    first = hash_file(mine)
    assert {file.path.relative_to(tmp_path).as_posix() for file in files_of_plugin(mine)} == {
        "mine.py",
        *imported,
    }
    for name in others:
        (tmp_path / name).write_text("EDITED = 1")
        assert hash_file(mine) == first, name
    for name in ("mine.py", *imported):
        path = tmp_path / name
        before = path.read_text()
        path.write_text(f"# a comment\n{before}\n")
        assert hash_file(mine) == first, name
        path.write_text(f"{before}\nEDITED = 1\n")
        assert hash_file(mine) != first, name
        path.write_text(before)
    assert hash_file(mine) == first


def test_a_copy_elsewhere_has_the_same_hash(tmp_path: Path) -> None:
    files = {
        "mine.py": "import helper",
        "helper.py": "import a.b",
        "a/__init__.py": "",
        "a/b.py": "",
    }
    mine = write_plugin(tmp_path / "one", files)
    shutil.copytree(tmp_path / "one", tmp_path / "two" / "deeper")
    assert hash_file(mine) == hash_file(tmp_path / "two" / "deeper" / "mine.py")


def test_a_plugin_file_in_a_package_has_its_package(tmp_path: Path) -> None:
    write_plugin(
        tmp_path,
        {
            "pack/__init__.py": "",
            "pack/mine.py": "from . import helper\nfrom pack.sub import x",
            "pack/helper.py": "",
            "pack/sub/__init__.py": "",
            "pack/other.py": "",
        },
    )
    found = files_of_plugin(tmp_path / "pack" / "mine.py")
    assert [file.name for file in found] == ["", "pack", "pack.helper", "pack.sub"]


def test_a_plugin_covers_the_built_in_method_that_it_changes(tmp_path: Path) -> None:
    copy = tmp_path / "methods"
    shutil.copytree(METHODS, copy)
    mine = tmp_path / "mine.py"
    mine.write_text("from bench.methods.simcse import SimCSE")
    scope = ImportScope((tmp_path,), None, {"bench.methods": copy})
    first = hash_code(CodeFile("", mine), scope)
    with (copy / "losses.py").open("a") as losses:
        losses.write("\nEDITED = 1\n")
    assert hash_code(CodeFile("", mine), scope) != first
    names = [file.name for file in code_files(CodeFile("", mine), scope)]
    assert {"bench.methods.simcse", "bench.methods.losses"} <= set(names)


def test_a_plugin_suite_covers_the_metrics_that_it_uses_and_not_the_frame(tmp_path: Path) -> None:
    lines = (
        "from bench.score.metrics.correlation import spearman",
        "from bench.score.suites import Suite",
        "import bench.training.loop",
    )
    mine = write_plugin(tmp_path, {"mine.py": "\n".join(lines)})
    found = find_installed("bench.score.suites.transfer")
    assert found is not None
    of_transfer = {file.name for file in code_files(*found)}
    assert "bench.score.metrics.probe" in of_transfer
    from bench.base.import_scope import package_of_file, scope_of_file

    start = CodeFile("", mine, package_of_file(mine)[1])
    names = {file.name for file in code_files(start, scope_of_file(mine))}
    assert "bench.score.metrics.correlation" in names
    assert not {name for name in names if name.startswith("bench.training")}


def importers_of(changed: str, sources: Mapping[str, str]) -> set[str]:
    """The modules of methods/ that import one, directly or not, by a search for the words:
    independent of what is tested.
    """
    reached = {changed}
    while True:
        more = {
            name
            for name, text in sources.items()
            if any(
                re.search(rf"from bench\.methods\.{re.escape(one)} import", text) for one in reached
            )
        }
        if more <= reached:
            return reached
        reached |= more


@pytest.mark.nightly
@pytest.mark.slow
def test_an_edit_of_each_module_of_methods_moves_the_methods_that_use_it(tmp_path: Path) -> None:
    copy = tmp_path / "methods"
    shutil.copytree(METHODS, copy)
    scope = ImportScope((), None, {"bench.methods": copy})
    modules = {
        module.rpartition(".")[2]
        for module in installed_methods().values()
        if module.startswith("bench.methods.")
    }

    def hashes() -> dict[str, str]:
        return {
            name: hash_code(CodeFile("", copy / f"{name}.py", "bench.methods"), scope)
            for name in modules
        }

    sources = {path.stem: path.read_text() for path in copy.glob("*.py")}
    before = hashes()
    assert len(set(before.values())) == len(modules) > 30
    for name in sorted(sources):
        path = copy / f"{name}.py"
        path.write_text(f"{sources[name]}\n# a comment\n\n\n")
        assert hashes() == before, name
        path.write_text(f"{sources[name]}\nEDITED = 1\n")
        now = hashes()
        moved = {module for module in modules if now[module] != before[module]}
        print(f"{name}: {' '.join(sorted(moved)) or 'none'}")
        assert moved == importers_of(name, sources) & modules, name
        path.write_text(sources[name])
    assert "matryoshka" in importers_of("losses", sources)


@pytest.mark.slow
def test_reading_finds_what_importing_finds() -> None:
    registry = discover()
    ours = [plugin for plugin in registry.plugins.values() if plugin.package == "sentence-bench"]
    for plugin in ours:
        assert hash_of_method(plugin.name, plugin.package) == plugin.sha256, plugin.name
    assert hash_of_method("no-such-method") is None


def test_reading_imports_neither_torch_nor_numpy(tmp_path: Path) -> None:
    mine = write_plugin(
        tmp_path, {"mine.py": "import helper", "helper.py": "raise SystemExit('was run')"}
    )
    code = f"""
import sys
from bench.base.installed_code import hash_of_method
print(hash_of_method("simcse"), hash_of_method("zero", {str(mine)!r}))
heavy = ("torch", "numpy", "bench.methods.simcse", "helper")
print(*[name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    hashes, loaded = done.stdout.split("\n")[:2]
    assert hashes.split() == [hash_module("bench.methods.simcse"), hash_file(mine)] and loaded == ""


def test_a_record_may_name_what_is_not_code(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for place in (
        "/dev/zero.py",
        "\0.py",
        str(tmp_path / "absent.py"),
        str(tmp_path / "folder.py"),
    ):
        assert hash_of_method("zero", place) is None
    (tmp_path / "broken.py").write_text("def (")
    assert len(str(hash_of_method("zero", str(tmp_path / "broken.py")))) == 64


def test_an_installed_package_is_covered_whole_and_its_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    write_plugin(
        site,
        {
            "theirs/__init__.py": "",
            "theirs/method.py": "from theirs.middle import x\nimport neighbour",
            "theirs/middle.py": "from .deep import x",
            "theirs/deep.py": "x = 1",
            "neighbour.py": "",
        },
    )
    monkeypatch.syspath_prepend(str(site))
    found = find_installed("theirs.method")
    assert found is not None
    assert [file.name for file in code_files(*found)] == [
        "",
        "theirs",
        "theirs.deep",
        "theirs.middle",
    ]
    first = hash_module("theirs.method")
    (site / "neighbour.py").write_text("x = 2")
    assert hash_module("theirs.method") == first
    (site / "theirs" / "deep.py").write_text("x = 2")
    assert hash_module("theirs.method") != first
    assert hash_module("theirs.absent") is None and hash_module("no_such_package.x") is None
