"""Counts of the overlap of a corpus with tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.data.corpora import open_corpus_file
from bench.data.overlap import Overlap, ScoredSentences, count_overlaps

LINES = """A man is playing a guitar .
A man is playing a guitar .
Do n't go there , my friend !
The cat sat on the red mat today .
Nothing of this stands anywhere .
?!"""
TASK = ScoredSentences("sts", "STS12", "", LINES.splitlines())
OTHER = ScoredSentences("transfer", "MR", "", ["a man is playing a guitar"])
CORPUS = [
    "a man is playing a guitar",  # the same
    "Don't go there, my friend",  # the same: a tokeniser's blanks are not in the letters
    "The cat sat on the blue mat today",  # 6 of 8 words: another
    "The cat sat on the red mat",  # 6 of 7: near
    "A MAN is playing a guitar!",  # the same once more, in another row
    # the same words in another order: near, and the task has it exactly already
    "Guitar a man is playing",
    "",
]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_counts_by_hand(tmp_path: Path, cache: Path) -> None:
    corpus = open_corpus_file(write(tmp_path / "c.txt", "\n".join(CORPUS)))
    first, other = count_overlaps(corpus, [TASK, OTHER], cache=cache)
    assert first == Overlap("sts", "STS12", "", sentences=4, exact=2, near=1, rows=5)
    assert other == Overlap("transfer", "MR", "", sentences=1, exact=1, near=0, rows=3)
