"""What words and signs mean is written once, and docs/read-a-leaderboard.md has it word for word."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bench.compare.words.glossary import TERMS
from bench.compare.words.legend import HOW_TO_READ

PAGE = (Path(__file__).parents[3] / "docs" / "read-a-leaderboard.md").read_text("utf-8")
MEANINGS = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.split("\n## Terms\n")[1], flags=re.M)[1:]


def test_the_docs_say_what_terminal_and_pages_say() -> None:
    lines = PAGE.splitlines()
    begin = lines.index("| you see | it means |") + 2
    rows = [f"| {term} | {meaning} |" for term, meaning in HOW_TO_READ.items()]
    assert lines[begin : begin + len(rows)] == rows
    assert lines[begin + len(rows)] == ""


def test_a_term_has_the_meaning_that_pages_show() -> None:
    assert {term: meaning for term, meaning in MEANINGS if term in TERMS} == TERMS


def test_each_word_has_one_meaning() -> None:
    words = [word for row, _ in MEANINGS for word in row.split(", ")]
    assert [word for word, count in Counter([*words, *HOW_TO_READ]).items() if count > 1] == []
