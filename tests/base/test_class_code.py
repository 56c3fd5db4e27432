"""The hash of a class that a notebook defines covers the code that it computes with, and nothing
else.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bench.base.class_code import has_changed_since_import, hash_class, is_typed_in

NOTEBOOK = """
    import functools
    import numpy as np
    import helper
    from helper import scaled

    SCALE = 2.0
    TABLE = np.arange(3.0)
    UNUSED = 1

    def halved(x):
        return x / SCALE

    def other(x):
        return x

    def twice(function):
        @functools.wraps(function)
        def called(*args):
            return 2 * function(*args)
        return called

    class Base:
        rate = 0.1

        def first(self, x):
            return halved(x)

    class Mine(Base):
        name = "mine"
        chosen = halved
        settings = {"a", "b", "c"}

        @twice
        def loss(self, x, power=2):
            # a comment
            return self.first(x) ** power + TABLE[0]

        def lazy(self, x):
            import lazy_helper
            return scaled(lazy_helper.f(x)) in {"x", "y", "z"}

        @property
        def size(self):
            return max(map(lambda item: item + 1, [1, 2]))
"""
numbers = count()


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of helpers that the notebook imports."""
    (tmp_path / "helper.py").write_text("def scaled(x):\n    return 3 * x\n")
    (tmp_path / "lazy_helper.py").write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("helper", "lazy_helper"):
        sys.modules.pop(name, None)


def typed(source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the class Mine of a notebook cell.

    Its module has no file; its source is in linecache, as a notebook's kernel does it.
    """
    text = dedent(source)
    name = f"/tmp/ipykernel_1/{next(numbers)}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = types.ModuleType("a_notebook")
    monkeypatch.setitem(sys.modules, "a_notebook", module)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    return module.Mine


SAME = {
    "comment": ("# a comment", "# another, longer one"),
    "layout": ("    SCALE = 2.0", "    SCALE   =   2.0\n\n"),
    "docstring": ("def halved(x):", 'def halved(x):\n        """Halve."""'),
    "what is not used": ("UNUSED = 1", "UNUSED = 2"),
    "a function that is not used": ("return x\n\n    def twice", "return -x\n\n    def twice"),
}
OTHER = {
    "its own code": ("** power", "** (power + 1)"),
    "a default": ("power=2", "power=3"),
    "a value of the class": ("rate = 0.1", "rate = 0.2"),
    "a set": ('{"a", "b", "c"}', '{"a", "b", "d"}'),
    "a global number": ("SCALE = 2.0", "SCALE = 4.0"),
    "a global array": ("arange(3.0)", "arange(1.0, 4.0)"),
    "a function that it calls": ("x / SCALE", "x / SCALE / 2"),
    "which function stands there": ("chosen = halved", "chosen = other"),
    "its base": ("return halved(x)", "return -halved(x)"),
    "a decorator": ("2 * function", "3 * function"),
    "a lambda": ("item + 1", "item + 2"),
    "a property": ("return max(", "return min("),
    "a constant in a set": ('"y"', '"w"'),
    "two functions that change places": ("def halved(x):", "def halved(x):\n        x = other(x)"),
}


@pytest.mark.parametrize("change", SAME)
def test_changes_outside_of_the_computation_keep_the_hash(
    change: str, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = SAME[change]
    assert before in NOTEBOOK
    first = hash_class(typed(NOTEBOOK, monkeypatch))
    assert first == hash_class(typed(NOTEBOOK.replace(before, after), monkeypatch))


@pytest.mark.parametrize("change", OTHER)
def test_everything_that_it_computes_with_changes_the_hash(
    change: str, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = OTHER[change]
    assert before in NOTEBOOK
    first = hash_class(typed(NOTEBOOK, monkeypatch))
    assert first != hash_class(typed(NOTEBOOK.replace(before, after), monkeypatch))


@pytest.mark.parametrize("file", ["helper.py", "lazy_helper.py"])
def test_a_file_that_it_imports_counts(
    file: str, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls = typed(NOTEBOOK, monkeypatch)
    first = hash_class(cls)
    assert hash_class(cls) == first
    (beside / file).write_text("def scaled(x):\n    return 4 * x\n\n\nf = scaled\n")
    assert hash_class(cls) != first


def test_a_method_of_this_package_that_it_derives_from_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = "from bench.methods.simcse import SimCSE\nclass Mine(SimCSE):\n    name = 'mine'\n"
    cls = typed(source, monkeypatch)
    assert is_typed_in(cls)
    first = hash_class(cls)
    monkeypatch.setattr("bench.base.class_parts.hash_module", lambda name: "another code")
    assert hash_class(cls) != first


def test_a_class_whose_file_was_edited_after_the_import_is_noticed(beside: Path) -> None:
    file = beside / "helper.py"
    file.write_text("class Mine:\n    def loss(self, x):\n        return x\n")
    import helper  # type: ignore[import-not-found]

    assert not is_typed_in(helper.Mine) and not has_changed_since_import(helper.Mine)
    file.write_text("# a comment\nclass Mine:\n    def loss(self, x):\n        return x\n")
    assert not has_changed_since_import(helper.Mine)
    file.write_text("class Mine:\n    def loss(self, x):\n        return 2 * x\n")
    assert has_changed_since_import(helper.Mine)
