"""Matryoshka: the reference, the plain loss if no prefix is listed, and vectors that are cut after
training.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import batch_of, info_nce
from models import built, sentences
from torch.nn.functional import normalize

from bench.method import BenchError, Loss
from bench.methods import losses
from bench.methods.angle import AnglE
from bench.methods.cosent import CoSENT
from bench.methods.matryoshka import Matryoshka
from bench.methods.prefixes import on_prefixes, prefix_sizes
from bench.methods.simcse import SimCSE
from bench.methods.truncated import Truncated

TEXTS = [sentences(5, seed=seed, longest=9) for seed in (1, 2, 3)]


def test_the_sum_over_prefixes_is_the_reference(shared: Path) -> None:
    known = json.loads((shared / "reference" / "vectors_c.json").read_text(encoding="utf-8"))
    wanted, inputs = known["matryoshka"], known["inputs"]
    z = [torch.tensor(inputs[f"z{i}"], dtype=torch.float64, requires_grad=True) for i in (1, 2)]

    def inner(*vectors: torch.Tensor) -> Loss:
        return Loss(losses.info_nce(*vectors, temperature=0.05))

    loss = on_prefixes(inner, z, "4 2")
    parts = {6: loss.parts["whole"], 4: loss.parts["first_4"], 2: loss.parts["first_2"]}
    for size, part in parts.items():
        assert part.item() == pytest.approx(wanted["losses"][str(size)], abs=1e-9)
        by_hand = info_nce(*(np.asarray(one)[:, :size] for one in (inputs["z1"], inputs["z2"])))
        assert part.item() == pytest.approx(by_hand, abs=1e-9)
    assert loss.total.item() == pytest.approx(wanted["loss"], abs=1e-9)
    loss.total.backward()
    for one, key in zip(z, ("grad_z1", "grad_z2"), strict=True):
        np.testing.assert_allclose(one.grad, wanted[key], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("listed", "hidden", "sizes"),
    [("512 256 64", 768, [512, 256, 64]), ("64 256", 256, [64]), (16, 32, [16]), (None, 8, [])],
)
def test_only_prefixes_that_are_shorter_count(listed: Any, hidden: int, sizes: list[int]) -> None:
    assert prefix_sizes(listed, hidden) == sizes


@pytest.mark.parametrize("listed", [None, "64 32"])
@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_with_the_whole_vector_alone_it_is_simcse(
    tiny, tmp_path, setting: str, listed: Any
) -> None:
    values = {"setting": setting, "dropout": 0.0, "pooling": "avg"}
    mine = built(Matryoshka, tiny, tmp_path, matryoshka=listed, **values)
    batch = batch_of(mine, *TEXTS[: 1 if setting == "unsupervised" else 3])
    theirs = built(SimCSE, tiny, tmp_path, head=False, **values)
    assert mine(batch).total.item() == pytest.approx(theirs(batch).total.item(), abs=1e-6)


def test_prefixes_are_cut_from_what_is_scored(tiny, tmp_path) -> None:
    method = built(Matryoshka, tiny, tmp_path, setting="supervised", dropout=0.0, matryoshka="16")
    loss = method(batch_of(method, *TEXTS))
    whole = [method.encode(texts).astype(float) for texts in TEXTS]
    assert loss.parts["whole"].item() == pytest.approx(info_nce(*whole), abs=1e-4)
    assert loss.parts["first_16"].item() == pytest.approx(
        info_nce(*(v[:, :16] for v in whole)), abs=1e-4
    )


@pytest.mark.parametrize("cls", [CoSENT, AnglE])
def test_graded_losses_take_prefixes_too(tiny, tmp_path, cls: Any) -> None:
    scores = [0.0, 0.5, 1.0, 1.0, 0.2]
    values = {"setting": "supervised", "dropout": 0.0}
    plain = built(cls, tiny, tmp_path, **values)
    batch = batch_of(plain, *TEXTS[:2], scores=scores)
    x, y, *others = plain.views(batch)
    cut = [normalize(one[:, :16], dim=-1) for one in (x, y)]
    wanted = sum(plain.loss((*pair, *others), batch).total.item() for pair in ((x, y), cut))
    method = built(cls, tiny, tmp_path, matryoshka="16", **values)
    assert method.loss((x, y, *others), batch).total.item() == pytest.approx(wanted, rel=1e-5)


def test_a_truncated_vector_is_the_beginning_of_the_whole_one(backbone, tmp_path) -> None:
    whole = built(Truncated, backbone, tmp_path, pooling="avg", size=32).encode(TEXTS[0])
    first = built(Truncated, backbone, tmp_path, pooling="avg", size=8).encode(TEXTS[0])
    assert first.shape == (5, 8)
    np.testing.assert_array_equal(first, whole[:, :8])


@pytest.mark.parametrize("size", [33])
def test_a_size_that_no_vector_has_is_refused(tiny, tmp_path, size: Any) -> None:
    with pytest.raises(BenchError, match=r"size=|coordinates"):
        built(Truncated, tiny, tmp_path, pooling="avg", size=size)
