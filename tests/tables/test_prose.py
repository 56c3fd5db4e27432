"""The blocks of a docstring."""

from __future__ import annotations

from bench.compare.formatting import Block, blocks, lines


def test_paragraphs_items_and_equations() -> None:
    text = """First line
goes on.

* one
  and its end;
* two:
  x = y

    L = a   + b
      + c
after it

- dash
"""
    assert blocks(text) == (
        Block("paragraph", "First line goes on.", "", True),
        Block("item", "one and its end;", "* ", True),
        Block("item", "two: x = y", "* ", False),
        Block("lines", "    L = a   + b\n      + c", "", True),
        Block("paragraph", "after it", "", False),
        Block("item", "dash", "- ", True),
    )


def test_control_characters_are_shown_and_blanks_stay() -> None:
    assert lines("a\x1b[31m  b\n  c\u202e") == ["a\\x1b[31m  b", "  c\\u202e"]
