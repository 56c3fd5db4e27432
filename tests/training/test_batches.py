"""The feed of the loop: the same rows as the same features, whoever makes them and when."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import TOY_ROWS, Columns, built, sentences, toy, toy_recipe

from bench.base.errors import BenchError
from bench.method.batch import Batch
from bench.method.checks import check_last_batch
from bench.method.features import pad
from bench.methods.simcse import SimCSE
from bench.training.batches import batch_of, batches, row_order

CPU = torch.device("cpu")


def same(a: Batch, b: Batch) -> bool:
    views = zip(a.columns, b.columns, strict=True)
    equal = all(
        x.keys() == y.keys() and all(torch.equal(x[key], y[key]) for key in x) for x, y in views
    )
    return equal and a.step == b.step and a.tokens == b.tokens and np.array_equal(a.rows, b.rows)


def test_a_batch_is_the_rows_of_the_corpus_and_their_tokens_are_counted(tmp_path: Path) -> None:
    batch = batch_of(toy(tmp_path), Columns(TOY_ROWS), 0, np.array([2, 0]), 5)
    assert batch.columns[0]["input_ids"].tolist() == [[4, 4, 1], [1, 0, 0]]
    assert (batch.tokens, batch.step, batch.size, batch.rows.tolist()) == (4, 5, 2, [2, 0])


def test_a_thread_makes_the_same_batches(tiny: str, tmp_path: Path) -> None:
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=3)
    corpus = Columns(method.token_ids(sentences(10)))

    def feed(ahead: int) -> list[Batch]:
        made = batches(method, corpus, row_order(1, 10, 3, first=2), 2, device=CPU, ahead=ahead)
        return list(islice(made, 7))

    assert all(same(a, b) for a, b in zip(feed(0), feed(3), strict=True))


@pytest.mark.parametrize("as_arrays", [True, False])
def test_rows_are_framed_as_by_hand(as_arrays: bool) -> None:
    rows: list[Any] = [[5, 6, 7, 8], [], [9]]
    given = [np.array(row, dtype=np.uint16) for row in rows] if as_arrays else rows
    made = pad(given, 0, before=[1, 2], after=[3], longest=3)
    assert made["input_ids"].tolist() == [
        [1, 2, 5, 6, 7, 3],
        [1, 2, 3, 0, 0, 0],
        [1, 2, 9, 3, 0, 0],
    ]
    assert made["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]]
    assert made["input_ids"].dtype == made["attention_mask"].dtype == torch.int64


@pytest.mark.parametrize(
    ("rows", "values", "said"),
    [
        (17, {}, "17 rows in batches of 16 leave a last batch of 1"),
        (17, {"drop_last": True}, None),
        (17, {"max_steps": 1}, None),
        (1, {"drop_last": True}, "1 rows in batches of 16"),
    ],
)
def test_a_last_batch_that_is_too_small_is_refused_before_the_first_step(
    rows: int, values: dict[str, Any], said: str | None
) -> None:
    recipe = toy_recipe(**{"batch_size": 16} | values)
    if said is None:
        check_last_batch("unsee", recipe, rows, 2)
        return
    with pytest.raises(BenchError, match=said):
        check_last_batch("unsee", recipe, rows, 2)
