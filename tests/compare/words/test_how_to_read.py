"""What words and signs mean is written once, and the docs have it word for word."""

from __future__ import annotations

from pathlib import Path

from bench.compare.words.legend import HOW_TO_READ

PAGE = Path(__file__).parents[3] / "docs" / "read-a-leaderboard.md"


def test_the_docs_say_what_terminal_and_pages_say() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    begin = lines.index("| you see | it means |") + 2
    rows = [f"| {term} | {meaning} |" for term, meaning in HOW_TO_READ.items()]
    assert lines[begin : begin + len(rows)] == rows
    assert lines[begin + len(rows)] == ""
