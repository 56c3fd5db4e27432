"""The tutorial's commands print the output on the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import make_tutorial
import pytest


def masked(text: str) -> str:
    """Mask what differs between machines: digits of scores, run ids, and the blanks that align
    them.
    """
    text = re.sub(r"-[0-9a-f]{8}\b", "-ID", text)
    return re.sub(r"[ ─]+", " ", re.sub(r"[+-]?\d+(\.\d+)?", "N", text))


@pytest.mark.nightly
@pytest.mark.slow(seconds=300)
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    page = make_tutorial.PAGE.read_text(encoding="utf-8")
    shown = make_tutorial.run_page(page, tmp_path)
    assert len(shown) == 4
    for block in shown:
        assert block.on_page, f"run tools/make_tutorial.py: {block.commands} has no output"
        assert masked(block.today) == masked(block.on_page), block.commands


def test_lines_are_left_out_where_the_page_says_so() -> None:
    assert make_tutorial.select_lines("a\nb\nc\n", "last", "2") == "...\nb\nc\n"
    assert make_tutorial.select_lines("a\nb\nc\n", "first", "1") == "a\n...\n"
    assert make_tutorial.select_lines("a\nb\n", "last", "2") == "a\nb\n"
    assert make_tutorial.select_lines("a\n", None, None) == "a\n"


@pytest.mark.parametrize("old", ["", "```\nold\n```\n"])
def test_a_block_is_made_or_replaced(old: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(make_tutorial, "run_command", lambda line, folder: f"{line}\nnew\n")
    page = f"```sh\nbench a\n```\n\n<!-- output: last 1 -->\n{old}\nThen:\n\n```sh\nbench b\n```\n"
    (shown,) = make_tutorial.run_page(page, tmp_path)
    made = make_tutorial.fill_block(page, shown)
    assert made == page.replace(f"last 1 -->\n{old}", "last 1 -->\n```\n...\nnew\n```\n")
