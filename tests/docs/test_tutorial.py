"""The tutorial's commands print the output on the page."""

from __future__ import annotations

import re
from pathlib import Path

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
