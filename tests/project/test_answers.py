"""The files and names that docs/architecture.md and CONTRIBUTING.md give as answers exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
ROW = re.compile(r"\| (?P<question>[^|]+\?) \| (?P<answer>[^|]+) \|")
CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# a file or a folder of the repository, named from its root
PLACE = re.compile(r"(?:bench|methods|tests|tools|docs|benchmarks|\.ci)/[\w./-]*")

SCRIPT_NAME = re.compile(r"^ *(?:const|function) (\w+)", re.MULTILINE)


def answers() -> list[tuple[str, str]]:
    """Return (question, answer) of the table in docs/architecture.md."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return [
        (row["question"], row["answer"]) for row in map(ROW.fullmatch, text.splitlines()) if row
    ]


def defined_names(path: Path) -> set[str]:
    """Return the functions, classes, methods and constants that a file defines."""
    if path.suffix == ".js":
        return set(SCRIPT_NAME.findall(path.read_text(encoding="utf-8")))
    if path.suffix != ".py":
        return set()
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("page", PAGES)
def test_every_place_that_a_page_names_exists(page: str) -> None:
    text = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    places = [word for word in CODE.findall(text) if PLACE.fullmatch(word) and "NAME" not in word]
    assert len(places) >= 10
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_answers_are_places_and_names_that_they_define() -> None:
    assert len(answers()) >= 15
    wrong = []
    for question, answer in answers():
        words = CODE.findall(answer)
        files = [ROOT / word for word in words if PLACE.fullmatch(word)]
        assert files, question
        names = set[str]().union(*map(defined_names, files))
        for word in words:
            if word.isidentifier() and word not in names:
                wrong.append((question, word))
    assert wrong == []


def test_contributing_names_what_the_code_defines() -> None:
    """CONTRIBUTING says in which files a suite, a figure and a format are added."""
    assert "BUILT_IN" in defined_names(ROOT / "bench/score/suites/registry.py")
    assert "board_figures" in defined_names(ROOT / "bench/board/figures/__init__.py")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "`BUILT_IN`" in text and "`board_figures()`" in text
