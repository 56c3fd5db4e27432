"""Batches without equal texts: against a plain search, sentence-transformers, and real texts."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.base.errors import BenchError
from bench.data.corpora import open_corpus_file
from bench.data.corpora.token_cache import as_text
from bench.training.batches import row_order
from bench.training.distinct import distinct_batches, distinct_row_order


def drawn_texts(rows: int, columns: int, kinds: int, seed: int = 0) -> np.ndarray:
    """Return numbers of texts, most of which occur several times, in any column."""
    return np.random.default_rng(seed).zipf(1.4, (rows, columns)) % kinds


def first_that_fit(order: list[int], texts: np.ndarray, batch_size: int) -> list[list[int]]:
    """Make each batch by going through all rows that are left."""
    left, batches = list(order), []
    while left:
        batch: list[int] = []
        for row in left:
            there = {text for other in batch for text in texts[other].tolist()}
            if len(batch) < batch_size and there.isdisjoint(texts[row].tolist()):
                batch.append(row)
        batches.append(batch)
        left = [row for row in left if row not in batch]
    return batches


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kinds", [2, 12])
def test_each_batch_has_the_first_rows_that_share_no_text(columns: int, kinds: int) -> None:
    for seed in range(4):
        texts = drawn_texts(60, columns, kinds, seed)
        order = np.random.default_rng(seed).permutation(60)
        made = [batch.tolist() for batch in distinct_batches(order, texts, 8)]
        assert made == first_that_fit(order.tolist(), texts, 8)
        assert sorted(row for batch in made for row in batch) == list(range(60))
        for batch in made:
            of_rows = [text for row in batch for text in set(texts[row].tolist())]
            assert len(of_rows) == len(set(of_rows))


def test_batches_are_those_of_sentence_transformers() -> None:
    datasets = pytest.importorskip("datasets")
    sampler = pytest.importorskip("sentence_transformers.base.sampler")
    texts = drawn_texts(300, 2, 90)
    table = datasets.Dataset.from_dict({"anchor": texts[:, 0], "positive": texts[:, 1]})
    theirs = sampler.NoDuplicatesBatchSampler(
        table, batch_size=16, drop_last=False, generator=torch.Generator(), seed=3
    )
    order = torch.randperm(300, generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    ours = [batch.tolist() for batch in distinct_batches(order.numpy(), texts, 16)]
    assert ours == list(theirs)


def test_distinct_texts_come_in_the_order_of_every_training() -> None:
    texts = np.arange(50)[:, None]
    for drop_last in (False, True):
        usual = list(islice(row_order(7, 50, 8, drop_last), 20))
        made = list(islice(distinct_row_order(7, texts, 8, drop_last), 20))
        assert [(epoch, rows.tolist()) for epoch, rows in made] == [
            (epoch, rows.tolist()) for epoch, rows in usual
        ]


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_epoch_has_no_more_steps_than_without_and_no_row_twice(drop_last: bool) -> None:
    texts = drawn_texts(100, 1, 40)
    made = list(islice(distinct_row_order(7, texts, 8, drop_last), 60))
    for epoch in range(4):
        batches = [rows.tolist() for number, rows in made if number == epoch]
        rows = [row for batch in batches for row in batch]
        assert len(rows) == len(set(rows))
        if drop_last:
            assert {len(batch) for batch in batches} == {8}
        else:
            assert len(batches) == math.ceil(100 / 8)
    # any later start gives the same batches: a training goes on as if it had not been stopped
    for first in (1, 12, 13, 40):
        rest = islice(distinct_row_order(7, texts, 8, drop_last, first=first), 60 - first)
        for (epoch, rows), (other_epoch, other) in zip(rest, made[first:], strict=True):
            assert epoch == other_epoch and rows.tolist() == other.tolist()


def test_a_corpus_without_a_whole_batch_is_refused() -> None:
    texts = np.zeros((9, 1), dtype=int)
    assert [len(rows) for _, rows in islice(distinct_row_order(1, texts, 4), 3)] == [1, 1, 1]
    with pytest.raises(BenchError, match="no 4 rows without equal texts"):
        next(distinct_row_order(1, texts, 4, drop_last=True))


def test_equal_texts_have_equal_hashes_in_any_column(tmp_path: Path) -> None:
    rows = ["a b,c,1", "c,a b,1", "d,d,0", "A B,,1"]
    (tmp_path / "t.csv").write_text("\n".join(["sent0,sent1,score", *rows]) + "\n")
    corpus = as_text(open_corpus_file(tmp_path / "t.csv", tmp_path / "cache"), tmp_path / "cache")
    texts = [["a b", "c"], ["c", "a b"], ["d", "d"], ["A B", " "]]
    words = sorted({text for row in texts for text in row})
    numbers = np.array([[words.index(text) for text in row] for row in texts])
    hashes = corpus.text_hashes
    equal = hashes.reshape(-1, 1) == hashes.reshape(1, -1)
    assert (equal == (numbers.reshape(-1, 1) == numbers.reshape(1, -1))).all()
