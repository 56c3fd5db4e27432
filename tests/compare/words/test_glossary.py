"""docs/glossary.md and the pages explain a word alike, and each word once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from bench.board.pages.words import explained
from bench.compare.words.glossary import TERMS

PAGE = Path(__file__).parents[3] / "docs" / "glossary.md"
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text("utf-8"), flags=re.M)[1:]


def test_the_page_has_the_meaning_that_pages_show() -> None:
    assert {term: meaning for term, meaning in ROWS if term in TERMS} == TERMS


def test_each_word_has_one_meaning() -> None:
    words = [word for row, _ in ROWS for word in row.split(", ")]
    assert [word for word, count in Counter(words).items() if count > 1] == []


def test_a_known_word_says_what_it_means_and_nothing_else_changes() -> None:
    text = "DCPCSE+MLM <b> on STS-B, unsupervised"
    html = explained(text)
    assert re.sub(r"</?dfn[^>]*>", "", html) == "DCPCSE+MLM &lt;b&gt; on STS-B, unsupervised"
    assert re.findall(r'<dfn title="([^"]+)">([^<]+)</dfn>', html) == [
        (TERMS["MLM"], "MLM"),
        (TERMS["unsupervised"], "unsupervised"),
    ]
