"""Finding methods: by entry point, by file; what is broken takes nothing else down."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from bench.base.errors import BenchError
from bench.method import Method
from bench.method.plugins import discover, from_file

GOOD = """
    import numpy as np
    from bench.method import Method

    class Zero(Method):
        name = "{name}"
        settings = ("none",)

        def encode(self, sentences):
            return np.zeros((len(sentences), 2), dtype=np.float32)
"""


def plugin(folder: Path, text: str = GOOD, name: str = "zero", file: str = "mine.py") -> Path:
    path = folder / file
    path.write_text(dedent(text.replace("{name}", name)))
    return path


def test_two_files_cannot_share_a_name_and_one_file_is_given_once(tmp_path: Path) -> None:
    one, two = plugin(tmp_path), plugin(tmp_path, file="other.py")
    with pytest.raises(BenchError, match="'zero'") as caught:
        discover([one, two])
    assert str(one) in caught.value.message and str(two) in caught.value.message
    with pytest.raises(BenchError, match="twice"):
        discover([one, tmp_path / "." / ".." / tmp_path.name / "mine.py"])
    said = "mine.py defines the method 'zero' twice: in the classes Zero and One"
    with pytest.raises(BenchError, match=said):
        discover([plugin(tmp_path, GOOD + "\n    class One(Zero):\n        name = 'zero'\n")])


def test_a_method_whose_file_was_not_named_is_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, name="clse", file="clse.py")
    with pytest.raises(BenchError, match="unknown method 'clse'; nearest: cls") as caught:
        discover()["clse"]
    assert caught.value.hint == "clse.py in place of clse, or --plugin clse.py"
    assert discover([Path("clse.py")])["clse"].package == "clse.py"


def test_a_class_may_have_a_second_name_in_its_file(tmp_path: Path) -> None:
    file = plugin(tmp_path, f"{GOOD}\n    METHOD = Zero\n")
    assert [found.cls.__name__ for found in from_file(file)] == ["Zero"]
    assert discover([file])["zero"].package == str(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("{name}", "No Blanks"), "use a-z, 0-9"),
        ("import sys; sys.exit(3)", "does not import: mine.py:1: SystemExit"),
    ],
)
def test_a_file_that_is_no_plugin_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = plugin(tmp_path, text)
    before = set(sys.modules)
    with pytest.raises(BenchError, match=said) as caught:
        from_file(path)
    assert str(path) in caught.value.message and "\n" not in caught.value.message
    left = [name for name in set(sys.modules) - before if name.startswith("bench_plugin_")]
    assert not left or "does not import" not in said


class Distribution(NamedTuple):
    """A stand-in for an installed package."""

    name: str
    version: str


class Point:
    """A stand-in for an installed package's entry point."""

    dist = Distribution("their-package", "9.1")

    def __init__(self, name: str, found: Any) -> None:
        self.name, self._found = name, found

    def load(self) -> Any:
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found


def with_points(monkeypatch: pytest.MonkeyPatch, *points: Point) -> None:
    installed = list(importlib.metadata.entry_points(group="bench.methods"))
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: [*points, *installed] if group == "bench.methods" else [],
    )


@pytest.mark.parametrize("error", [ImportError("no\nlibfoo"), SystemExit(1)])
def test_a_broken_package_is_named_and_takes_nothing_else_down(
    monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    with_points(monkeypatch, Point("theirs", error))
    registry = discover()
    assert {"simcse", "cls"} <= set(registry)
    (warning,) = registry.warnings
    assert warning.startswith("plugin 'theirs' of their-package was left out: ")
    assert "\n" not in warning


def test_a_third_partys_package_is_an_equal_citizen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (found,) = from_file(plugin(tmp_path))
    module = ModuleType("their_module")
    theirs = type("Theirs", (Method,), {"name": "theirs", "__module__": "their_module"})
    imported = type("Imported", (Method,), {"name": "imported", "__module__": "elsewhere"})
    module.Theirs, module.Imported = theirs, imported  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_module", module)
    with_points(monkeypatch, Point("zero", found.cls), Point("theirs", module))
    registry = discover()
    assert registry.warnings == ()
    assert (registry["zero"].package, registry["zero"].version) == ("their-package", "9.1")
    assert registry["theirs"].cls is theirs
    assert "imported" not in set(registry), "a module's methods are those that it defines itself"


def test_a_package_cannot_take_the_name_of_a_built_in_method(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whichever of them importlib lists first; two other packages: one of them, always the same."""
    built_in = discover()["simcse"]
    (theirs,), (zero,) = (
        from_file(plugin(tmp_path, name=name, file=f"{name}.py")) for name in ("simcse", "zero")
    )
    later = Point("zero", zero.cls)
    later.dist = Distribution("zz-package", "1")
    with_points(
        monkeypatch,
        later,
        Point("theirs", theirs.cls),
        Point("zero", type("Zero", (zero.cls,), {"name": "zero"})),
    )
    registry = discover()
    assert registry["simcse"] == built_in and registry["zero"].package == "their-package"
    first, second = registry.warnings
    assert "'simcse'" in first and "their-package" in first and "sentence-bench" in first
    assert "'zero'" in second and "their-package" in second and "zz-package" in second


def test_a_plugin_s_code_has_the_version_of_the_method_that_it_derives_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
        from bench.methods.simcse import SimCSE

        class Mine(SimCSE):
            name = "mine"
    """
    file = plugin(tmp_path, text)
    first = from_file(file)[0].code
    assert from_file(file)[0].code == first and len(first.sha256 or "") == 64
    monkeypatch.setattr("bench.methods.simcse.SimCSE.code_version", 2)
    assert from_file(file)[0].code.identity == first.identity.replace("version 1", "version 2")


def test_an_installed_package_is_identified_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hashed_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def part():\n    return 1\n")
    plugin(package, GOOD, file="mine.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    cls = importlib.import_module("hashed_package.mine").Zero
    with_points(monkeypatch, Point("zero", cls))
    first = discover()["zero"].sha256
    assert discover()["zero"].sha256 == first
    (package / "parts.py").write_text("def part():\n    return 2\n")
    assert discover()["zero"].sha256 != first


def test_a_code_version_is_a_number_from_one(tmp_path: Path) -> None:
    text = GOOD.replace('settings = ("none",)', 'settings = ("none",); code_version = 0')
    with pytest.raises(BenchError, match=r"mine\.py:5, in Zero: code_version is .*: write 1"):
        from_file(plugin(tmp_path, text))
