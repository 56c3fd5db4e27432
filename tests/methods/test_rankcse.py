"""RankCSE: reference values, and the same by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from harness import batch_of, cosines
from models import built, sentences
from taught_losses import agrees_with_reference, softmax
from torch.nn.functional import cross_entropy

from bench.methods.losses import cosine_matrix
from bench.methods.rankcse import RankCSE, jensen_shannon, list_mle, list_net, minus_entropy, others
from bench.methods.teachers import teacher_cosines


@pytest.mark.parametrize(
    ("term", "key"),
    [(jensen_shannon, "consistency_paper_JS"), (minus_entropy, "consistency_community_code")],
)
def test_the_consistency_is_the_reference(reference_c, z, term: Any, key: str) -> None:
    agrees_with_reference(term(cosine_matrix(*z[:2]) / 0.05), z[:2], reference_c["rankcse"][key])


def test_the_consistency_by_hand(reference_c, z) -> None:
    """Zero where rows and columns agree; the community's term is smallest where both lists are
    flat.
    """
    rows = np.array(cosines(z[0].detach(), z[1].detach())) / 0.05
    total, entropy = 0.0, 0.0
    for i in range(4):
        p, q = softmax(rows[i]), softmax(rows[:, i])
        for a, b in zip(p, q, strict=True):
            middle = (a + b) / 2
            total += (a * math.log(a / middle) + b * math.log(b / middle)) / 2 / 4
            entropy -= (a * math.log(a) + b * math.log(b)) / 2 / 4
    assert jensen_shannon(torch.tensor(rows)).item() == pytest.approx(total, abs=1e-12)
    assert -entropy == pytest.approx(reference_c["rankcse"]["minus_mean_entropy"], abs=1e-9)
    same, flat = torch.tensor([[9.0, 1.0], [1.0, 9.0]]), torch.ones(2, 2)
    assert jensen_shannon(same).item() == pytest.approx(0, abs=1e-7)
    assert minus_entropy(flat) < minus_entropy(same), "it rewards lists without any preference"


LISTNET = {
    "own_left_out_teacher_tau_0.05 (community code)": (others, 0.05),
    "own_left_out_teacher_tau_0.025 (tau3 = tau2/2)": (others, 0.025),
    "own_kept_teacher_tau_0.025": (lambda lists: lists, 0.025),
}


@pytest.mark.parametrize("key", LISTNET)
def test_listnet_is_the_reference(reference_c, z, t, key: str) -> None:
    lists, tau = LISTNET[key]
    taught = cosine_matrix(t[0], t[0])
    loss = list_net(lists(cosine_matrix(*z[:2]) / 0.05), lists(taught / tau))
    agrees_with_reference(loss, z[:2], reference_c["rankcse"]["listnet"][key])


LISTMLE = {
    "own_kept_eps_1e-7 (community code)": (lambda lists: lists, 1e-7),
    "own_left_out": (others, 0.0),
}


@pytest.mark.parametrize("key", LISTMLE)
def test_listmle_is_the_reference(reference_c, z, t, key: str) -> None:
    lists, eps = LISTMLE[key]
    loss = list_mle(lists(cosine_matrix(*z[:2]) / 0.05), lists(cosine_matrix(t[0], t[0])), eps)
    agrees_with_reference(loss, z[:2], reference_c["rankcse"]["listmle"][key])


def test_listmle_is_the_surprise_of_drawing_the_teachers_order(reference_c, z, t) -> None:
    student, teacher = (
        np.array(cosines(z[0].detach(), z[1].detach())) / 0.05,
        cosine_matrix(t[0], t[0]),
    )
    order = teacher.argsort(dim=1, descending=True).tolist()
    assert order == reference_c["rankcse"]["teacher_order"]
    total = 0.0
    for row, items in zip(student, order, strict=True):
        for k, item in enumerate(items):
            total += math.log(sum(math.exp(row[j]) for j in items[k:])) - row[item]
    assert list_mle(torch.tensor(student), teacher).item() == pytest.approx(total / 4, abs=1e-12)
    tied = torch.zeros(1, 3)
    first = list_mle(torch.tensor([[3.0, 1.0, 0.0]]), tied)
    assert first < list_mle(torch.tensor([[0.0, 1.0, 3.0]]), tied), "ties keep their order"


def test_two_teachers_are_weighed(reference_c, t) -> None:
    wanted = reference_c["rankcse"]["two_teachers"]
    taught = teacher_cosines(t[:2], (wanted["alpha"], 1 - wanted["alpha"])) / 0.05
    np.testing.assert_allclose(taught[0], wanted["list_row_0"], rtol=0, atol=1e-9)


def test_others_are_all_columns_but_the_own() -> None:
    assert others(torch.arange(9).view(3, 3)).tolist() == [[1, 2], [3, 5], [6, 7]]


@pytest.mark.parametrize("variant", ["", "listnet", "community"])
def test_the_loss_of_rankcse_is_the_sum_of_its_terms(tiny, tmp_path, variant: str) -> None:
    method = built(
        RankCSE,
        tiny,
        tmp_path,
        setting="unsupervised",
        variant=variant,
        teacher_1=tiny,
        teacher_2=tiny,
        beta=2.0,
    )
    batch = batch_of(method, sentences(5, seed=1))
    z1, z2, one, two = (view.double() for view in method.views(batch))
    loss = method.loss((z1, z2, one, two), batch)
    s, recipe = cosine_matrix(z1, z2), method.recipe
    taught = teacher_cosines((one, two), (1 / 3, 2 / 3))
    agree = minus_entropy if variant == "community" else jensen_shannon
    wanted = {"info_nce": cross_entropy(s / 0.05, torch.arange(5)), "consistency": agree(s / 0.05)}
    if variant == "listnet":
        wanted["ranking"] = list_net(others(s) / 0.05, others(taught) / 0.025)
    else:
        wanted["ranking"] = list_mle(s / 0.05, taught, 1e-7 if variant == "community" else 0)
    assert {k: v.item() for k, v in loss.parts.items()} == pytest.approx(
        {k: v.item() for k, v in wanted.items()}
    )
    total = wanted["info_nce"] + 2 * wanted["consistency"] + recipe.gamma * wanted["ranking"]
    assert loss.total.item() == pytest.approx(total.item())
    assert recipe.gamma == (0.1 if variant == "listnet" else 1.0)
