"""docs/promises.md and the tests here name each other: no promise is without a test."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "promises.md").read_text(encoding="utf-8")


def files_by_promise() -> dict[int, set[str]]:
    """Return the names of the files with a test that is marked with each number."""
    found = defaultdict[int, set[str]](set)
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "pytest.mark.promise":
                continue
            for argument in node.args:
                found[ast.literal_eval(argument)].add(path.name)
    return found


def files_on_the_page() -> dict[int, set[str]]:
    """Return the files that the last cell of each promise's row names."""
    found = {}
    for line in PAGE.partition("## Not kept yet")[0].splitlines():
        row = re.match(r"\| (\d+) \|", line)
        if row is not None:
            cell = line.rstrip("| ").rpartition("|")[2]
            found[int(row[1])] = set(re.findall(r"test_\w+\.py", cell))
    return found


def test_each_promise_names_the_files_that_hold_it() -> None:
    assert list(files_on_the_page()) == list(range(1, 36))
    assert files_on_the_page() == files_by_promise()


def test_no_test_here_imports_what_lies_below_bench() -> None:
    for path in HERE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert [name for name in names if name.startswith("bench.")] == [], path.name
