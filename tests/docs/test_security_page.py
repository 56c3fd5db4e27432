"""SECURITY.md: the tests that it names are there, and its counts are theirs."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ")
][1:]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The files of tests that the table names."""
    found: dict[str, ModuleType] = {}
    for name in sorted(set(re.findall(r"`(tests/[\w/]+\.py)", "".join(row[1] for row in ROWS)))):
        path = ROOT / name
        monkeypatch.syspath_prepend(str(path.parent))
        spec = importlib.util.spec_from_file_location(f"named_{path.stem}", path)
        assert spec is not None and spec.loader is not None, name
        found[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    return found


def cases(module: ModuleType, name: str) -> int:
    """Of one test, or of all in the file where none is named."""
    tests = {
        one: function
        for one, function in vars(module).items()
        if one.startswith("test_") and callable(function)
    }
    return sum(
        math.prod(
            len(mark.args[1])
            for mark in getattr(function, "pytestmark", ())
            if mark.name == "parametrize"
        )
        for one, function in tests.items()
        if name in ("", one)
    )


@pytest.mark.slow
def test_every_row_names_tests_that_are_there_and_counts_them(
    modules: dict[str, ModuleType],
) -> None:
    assert len(ROWS) > 12
    for what, where, often in ROWS:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", where)
        assert named and where.count("`") == 2 * len(named), what
        counts = [cases(modules[file], name) for file, name in named]
        assert 0 not in counts, (what, named)
        assert (
            re.match(r"\d+ cases?\b", often)[0] == f"{sum(counts)} case{'s' * (sum(counts) > 1)}"
        ), (what, sum(counts))  # type: ignore[index]
