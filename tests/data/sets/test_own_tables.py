"""The reader that plugin suites get, and ratings with which no correlation is defined: named before
anything is encoded.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder
from bench.data.sets.sts import SentencePairs
from bench.data.sets.tables import TextTable, read_table
from bench.score.suites import Task
from bench.score.suites.sts import LoadedPairs, score_pairs


def table(folder: Path, content: str | bytes, columns: int = 3) -> TextTable:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "own.tsv").write_bytes(data)
    return read_table(DataFolder(folder), "own.tsv", columns)


PLAIN = "a b\tc\t4.8\nd\te\t1\n"


@pytest.mark.parametrize(
    "content",
    ["\ufeff" + PLAIN.replace("\n", "\r\n"), PLAIN.replace("a b", "a\u2028b")],
)
def test_the_same_rows_whatever_else_the_file_holds(tmp_path: Path, content: str) -> None:
    read = table(tmp_path, content)
    assert (read.texts(0), read.texts(1), read.numbers(2).tolist()) == (
        ["a b", "d"],
        ["c", "e"],
        [4.8, 1.0],
    )
    assert len(read) == 2 and read.sha256 == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PLAIN + "x\ty\n", "line 3 has 2 cells, expected 3"),
        (PLAIN.replace("4.8", "nan"), "line 1: 'nan' in column 3, expected a number"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(DataDamaged) as caught:
        table(tmp_path, content).numbers(2)
    assert says in caught.value.message and "\n" not in caught.value.message


def own_task(read: Any, n: int) -> Task:
    return Task(
        suite="own",
        name="Own",
        protocol="own/1",
        metric="spearman",
        n=n,
        read=read,
        rescore=score_pairs,
    )


def pairs(*gold: float, first: str = "a") -> LoadedPairs:
    task = own_task(lambda *_: None, len(gold))
    texts = [first, *("x" for _ in gold[1:])]
    same = ["Own" for _ in gold]
    return LoadedPairs(
        task, SentencePairs("Own", texts, texts, np.array(gold), same, "test", "0" * 64)
    )


def test_ratings_that_rank_nothing_are_refused_and_no_model_is_blamed() -> None:
    for gold, says in (
        ((3, 3, 3), "all 3 pairs have the rating 3"),
        ((1, np.nan, 2), "the rating of pair 2 is nan"),
        ((1, 2, np.inf), "the rating of pair 3 is inf"),
    ):
        with pytest.raises(DataDamaged) as caught:
            pairs(*gold)
        assert says in caught.value.message and "training" not in (caught.value.hint or "")
