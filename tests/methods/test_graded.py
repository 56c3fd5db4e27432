"""CoSENT, AnglE and CLAIF: reference values, the same by hand, and the ways in which each could be
read wrongly.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import bench, error_line
from harness import cosines, double
from models import built, sentences

from bench.method import Batch
from bench.methods.angle import AnglE, complex_similarity, first_of_batch, in_batch
from bench.methods.claif import CLAIF
from bench.methods.cosent import CoSENT, order_loss, pair_cosines


@pytest.fixture(scope="module")
def known(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "reference" / "vectors_c.json").read_text(encoding="utf-8"))


@pytest.fixture
def z(known: dict[str, Any]) -> list[torch.Tensor]:
    return [double(known["inputs"][name]).requires_grad_() for name in ("z1", "z2")]


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(torch.as_tensor(found).detach(), wanted, rtol=0, atol=1e-9)


def gradients_are(loss: torch.Tensor, z: list[torch.Tensor], wanted: dict, end: str = "") -> None:
    loss.backward()
    same(z[0].grad, wanted[f"grad_z1{end}"])
    same(z[1].grad, wanted[f"grad_z2{end}"])


def by_hand(similarities: Any, scores: Any, scale: float) -> float:
    total = 1.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if scores[i] < scores[j]:
                total += math.exp(scale * (similarities[i] - similarities[j]))
    return math.log(total)


def test_cosent_is_the_reference_and_the_sum_over_ordered_pairs(known, z) -> None:
    wanted = known["cosent"]
    scores, s = double(wanted["labels"]), pair_cosines(*z)
    same(s, wanted["pair_cosines"])
    loss = order_loss(s, scores, wanted["scale"])
    same(loss, wanted["loss"])
    same(loss, by_hand(s.tolist(), wanted["labels"], 20))
    assert abs(loss.item() - wanted["wrong_reading_mean_of_softplus"]) > 0.1
    gradients_are(loss, z, wanted)


def test_equal_scores_say_nothing(known, z) -> None:
    loss = order_loss(pair_cosines(*z), torch.ones(4), 20.0)
    assert loss.item() == known["cosent"]["loss_all_labels_equal"]
    loss.backward()
    assert not z[0].grad.any()


@pytest.mark.parametrize("scale", [1, 20])
def test_angle_is_the_reference(known, z, scale: int) -> None:
    wanted, scores = known["angle"], double(known["angle"]["labels"])
    d = complex_similarity(*z)
    same(d, wanted["similarity_z1_z2"])
    loss = order_loss(d, scores, scale)
    same(loss, wanted[f"loss_tau_{scale}"])
    gradients_are(loss, z, wanted, f"_tau_{scale}")


def test_the_similarity_of_angle_is_a_cosine_of_the_rotated_vector_and_not_symmetric(known, z):
    x, y = z
    (a, b), wanted = x.chunk(2, dim=1), known["angle"]
    rotated = torch.cat([a + b, b - a], dim=1) / math.sqrt(2)
    same(complex_similarity(x, y), math.sqrt(2) * pair_cosines(rotated, y).abs().detach())
    same(complex_similarity(y, x), wanted["similarity_z2_z1"])
    swapped = order_loss(complex_similarity(y, x), double(wanted["labels"]), 20)
    same(swapped, wanted["swapped_order_loss_tau_20"])


def test_the_papers_sign_with_the_codes_similarity_trains_backwards(known, z) -> None:
    """A step against the gradient of ours brings the higher pair nearer; of the wrong reading it
    takes it away.
    """
    scores = double(known["angle"]["labels"])
    wrong = order_loss(-complex_similarity(*z), scores, 20)
    same(wrong, known["angle"]["wrong_reading_paper_sign_tau_20"])
    x, y = double([[1.0, 0.2, 0.3, 0.1], [0.4, 1.0, 0.1, 0.2]]), double([[0.9, 0.1, 0.5, 0.0]] * 2)

    def gap_after(sign: float) -> float:
        """How much higher the pair with the score 1 is than the one with 0, after one step."""
        moved = x.clone().requires_grad_()
        order_loss(sign * complex_similarity(moved, y), double([1, 0]), 1).backward()
        d = complex_similarity(moved.detach() - 0.01 * moved.grad, y)
        return float(d[0] - d[1])

    before = complex_similarity(x, y)
    assert gap_after(-1) < float(before[0] - before[1]) < gap_after(1)


def test_an_odd_width_gets_a_zero() -> None:
    x, y = torch.rand(3, 5, dtype=torch.float64), torch.rand(3, 5, dtype=torch.float64)
    wide = [torch.cat([v, torch.zeros(3, 1, dtype=torch.float64)], dim=1) for v in (x, y)]
    same(complex_similarity(x, y), complex_similarity(*wide))


def test_the_contrast_of_angle_is_the_reference_and_the_formula(known, z) -> None:
    wanted = known["angle_in_batch"]
    positive = double(wanted["labels"]) >= 1
    loss = in_batch(*z, positive, 20.0)
    same(loss, wanted["loss"])
    rows = torch.stack(z, dim=1).flatten(0, 1).detach().numpy()
    total = 0.0
    for i, row in enumerate(cosines(rows, rows)):
        if positive[i // 2]:
            others = sum(math.exp(20 * c) for j, c in enumerate(row) if j != i)
            total += (math.log(others) - 20 * row[i ^ 1]) / len(rows)
    same(loss, total)
    gradients_are(loss, z, wanted)


def test_copies_of_a_sentence_are_further_positives(known) -> None:
    wanted = known["angle_in_batch"]["release_2023_identical_texts"]
    texts = torch.tensor([[0, 1], [2, 3], [0, 5], [6, 7]])  # the first sentence again in pair 3
    z1, z2 = double(wanted["z1"]), double(known["inputs"]["z2"])
    positive = torch.tensor([True, False, True, False])
    same(in_batch(z1, z2, positive, 20.0, texts), wanted["loss"])
    assert first_of_batch(texts).tolist() == [True, True, False, True]
    assert first_of_batch(torch.tensor([[4, 4], [1, 2], [3, 1]])).tolist() == [False, True, False]


def graded(cls: Any, backbone: str, folder: Path, scores: Any, texts: Any = None, **values: Any):
    method = built(cls, backbone, folder, setting="supervised", dropout=0.0, **values)
    texts = texts or (sentences(4, seed=1), sentences(4, seed=2, longest=9))
    ids = [method.backbone.ids(column) for column in texts]
    columns = {"sent0": ids[0], "sent1": ids[1], "score": [[score] for score in scores]}
    return method, Batch(method.collate(columns, np.arange(len(scores)), 0))


def test_the_nli_recipe_of_angle_sums_its_terms(known, tiny, tmp_path) -> None:
    wanted, method = known["angle_in_batch"]["total_of_the_NLI_recipe"], AnglE()
    method, batch = graded(AnglE, tiny, tmp_path, [1.0, 0.0, 1.0, 0.0])
    for key, value in (("cosine", 0.0), ("contrast", 30.0), ("angle", 1.0)):
        assert method.recipe[f"{key}_weight"] == value
    z1, z2 = (double(known["inputs"][name]) for name in ("z1", "z2"))
    texts = torch.arange(8).view(4, 2)
    loss = method.loss((z1, z2, double(known["angle_in_batch"]["labels"]), texts), batch)
    same(loss.total, wanted["loss"])


def test_a_batch_of_angle_knows_its_copies(tiny, tmp_path) -> None:
    first, second = sentences(4, seed=1), sentences(4, seed=2)
    texts = (first[:3] + first[:1], second)
    method, batch = graded(AnglE, tiny, tmp_path, [1, 0, 0.5, 1], texts, identical="drop")
    x, y, scores, numbers = method.views(batch)
    assert numbers[0, 0] == numbers[3, 0] and numbers.unique().numel() == 7
    dropped = method.loss((x, y, scores, numbers), batch).total
    alone = method.loss((x[:3], y[:3], scores[:3], numbers[:3]), batch).total
    same(dropped, alone.detach())
    copies = graded(AnglE, tiny, tmp_path, [1, 0, 0.5, 1], texts)[0]
    assert copies.loss((x, y, scores, numbers), batch).total > dropped


def test_claif_is_the_reference_and_the_mean_squared_error(known, z, tiny, tmp_path) -> None:
    wanted = known["claif"]
    method, batch = graded(CLAIF, tiny, tmp_path, wanted["scores"])
    loss = method.loss((*z, double(wanted["scores"])), batch).total
    same(loss, wanted["loss"])
    cosine = np.diag(cosines(z[0].detach(), z[1].detach()))
    same(loss, np.mean((cosine - wanted["scores"]) ** 2))
    gradients_are(loss, z, wanted)


def test_claif_refuses_scores_of_another_scale_before_the_first_step(tiny, tmp_path) -> None:
    rows = [f"a text,text {i},{score}" for i, score in enumerate([0.5] * 40 + [3.8])]
    (tmp_path / "rated.csv").write_text("\n".join(["sent0,sent1,score", *rows]) + "\n")
    done = bench(
        *("run", "claif", "--corpus", tmp_path / "rated.csv", "--backbone", tiny),
        *("--set", "select_on=last", "--set", "batch_size=1", "--suite", "check"),
        *("--device", "cpu", "--runs", tmp_path / "runs"),
    )
    assert "row 41 of the corpus has the score 3.8" in error_line(done)
    assert not list((tmp_path / "runs").rglob("run.json"))


@pytest.mark.parametrize("cls", [CoSENT, AnglE, CLAIF])
def test_the_loss_is_that_of_the_pooled_vectors(backbone, tmp_path, cls: Any) -> None:
    texts = sentences(4, seed=1), sentences(4, seed=2, longest=9)
    values = {"pooling_at_test": "cls"} if cls is AnglE else {}
    method, batch = graded(cls, backbone, tmp_path, [0.1, 0.9, 1.0, 0.9], texts, **values)
    with torch.no_grad():
        views = method.views(batch)
        for view, column in zip(views, texts, strict=False):
            np.testing.assert_allclose(view, method.encode(column), rtol=0, atol=1e-5)
    assert views[2].tolist() == pytest.approx([0.1, 0.9, 1.0, 0.9])


def test_angle_encodes_to_the_mean_of_cls_and_mean_pooling(backbone, tmp_path) -> None:
    texts = sentences(5, seed=3, longest=14)
    poolers = ("cls", "avg", "cls_avg")
    cls, avg, both = (
        built(AnglE, backbone, tmp_path, setting="supervised", pooling_at_test=name).encode(texts)
        for name in poolers
    )
    np.testing.assert_allclose(both, (cls + avg) / 2, rtol=0, atol=1e-6)
