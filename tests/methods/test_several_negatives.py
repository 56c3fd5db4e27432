"""Rows with several hard negatives: every one of them is a candidate of every anchor, in each
method that takes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import cosines, head_outputs, surprise
from harness import info_nce as by_hand
from models import built, sentences

from bench.method import Batch
from bench.method.plugins import discover
from bench.methods.losses import energy_hinge, info_nce

TEXTS = [
    sentences(6, seed=seed, longest=9) for seed in range(1, 6)
]  # anchors, positives, negatives


def batch(method: Any, count: int) -> Batch:
    """Six rows with so many hard negatives."""
    names = ("sent0", "sent1", "hard_neg", "hard_neg_2", "hard_neg_3")[: 2 + count]
    columns: dict[str, Any] = {}
    for name, texts in zip(names, TEXTS, strict=False):
        columns[name] = texts if method.trains_on == "text" else method.backbone.ids(texts)
    return Batch(method.collate(columns, np.arange(6), 0), 0)


@pytest.mark.parametrize("weight", [0.0, 1.5])
@pytest.mark.parametrize("count", [1, 3])
def test_the_loss_of_vectors_is_that_of_plain_loops(count: int, weight: float) -> None:
    rng = np.random.default_rng(count)
    z = [rng.normal(size=(5, 7)) for _ in range(2 + count)]
    rows = [cosines(z[0], one) for one in z[1:]]
    logits = [[c / 0.05 for block in rows for c in block[i]] for i in range(5)]
    for i, row in enumerate(logits):
        for block in range(1, 1 + count):
            row[5 * block + i] += weight
    found = info_nce(*map(torch.tensor, z), temperature=0.05, hard_negative_weight=weight)
    assert found.item() == pytest.approx(surprise(logits), abs=1e-9)


def test_the_hinge_takes_the_nearest_of_all_hard_negatives() -> None:
    rng = np.random.default_rng(7)
    z = [rng.normal(size=(5, 7)) for _ in range(4)]
    near, first, second = (cosines(z[0], one) for one in z[1:])
    wanted = []
    for i in range(5):
        others = [c for j, c in enumerate(near[i]) if j != i]
        wanted.append(max(0.0, 0.2 - near[i][i] + max(others + first[i] + second[i])))
    found = energy_hinge(*map(torch.tensor, z), margin=0.2)
    assert found.item() == pytest.approx(float(np.mean(wanted)), abs=1e-9)


@pytest.mark.parametrize("count", [2])
def test_simcse_compares_with_all_of_them(tiny: str, tmp_path: Path, count: int) -> None:
    method = built(discover()["simcse"].cls, tiny, tmp_path, setting="supervised", dropout=0.0)
    rows = batch(method, count)
    z = head_outputs(method, rows.columns)
    with torch.no_grad():
        found = method(rows).total.item()
    assert len(z) == 2 + count and found == pytest.approx(by_hand(*z), abs=1e-4)


@pytest.mark.matrix(every=4)
@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in discover()
        if discover()[name].cls.several_negatives and "supervised" in discover()[name].cls.settings
    ),
)
def test_a_method_that_says_so_trains_on_them(tiny: str, tmp_path: Path, name: str) -> None:
    """Each further negative is a further term of the denominator, so that the loss grows."""
    # a random guide finds all texts near; with this bound it leaves none out
    more = {"guide": tiny, "phi": 1.1} if name == "guided-simcse" else {}
    cls = discover()[name].cls
    method = built(cls, tiny, tmp_path, setting="supervised", dropout=0.0, **more)
    losses = []
    for count in (1, 2, 3):
        with torch.no_grad():
            losses.append(method(batch(method, count)).total.item())
    assert losses[0] < losses[1] < losses[2]
