"""RankCSE and guided SimCSE: reference values, the same by hand, and frozen teachers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import batch_of, cosines, training
from models import built, sentences
from torch.nn.functional import cross_entropy

from bench.method import BenchError
from bench.methods.dclr import debiased, instance_weights
from bench.methods.guided_simcse import GuidedSimCSE, candidates, kept_by_gist
from bench.methods.losses import cosine_matrix
from bench.methods.rankcse import RankCSE, jensen_shannon, list_mle, list_net, minus_entropy, others
from bench.methods.teachers import teacher_cosines
from bench.run.recipes import merge_recipe

U, S = "unsupervised", "supervised"


@pytest.fixture(scope="module")
def known(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "reference" / "vectors_c.json").read_text(encoding="utf-8"))


@pytest.fixture
def z(known: dict[str, Any]) -> list[torch.Tensor]:
    rows = (known["inputs"][f"z{i}"] for i in (1, 2, 3))
    return [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in rows]


@pytest.fixture
def t(known: dict[str, Any]) -> list[torch.Tensor]:
    return [torch.tensor(known["inputs"][f"t{i}"], dtype=torch.float64) for i in (1, 2, 3)]


def agrees(loss: torch.Tensor, z: list[torch.Tensor], wanted: dict[str, Any]) -> None:
    """Value and gradients."""
    assert loss.item() == pytest.approx(wanted["loss"], abs=1e-9)
    loss.backward()
    for i, one in enumerate(z, start=1):
        if f"grad_z{i}" in wanted:
            np.testing.assert_allclose(one.grad, wanted[f"grad_z{i}"], rtol=0, atol=1e-9)


def softmax(row: Any) -> list[float]:
    total = sum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


# --- RankCSE ---


@pytest.mark.parametrize(
    ("term", "key"),
    [(jensen_shannon, "consistency_paper_JS"), (minus_entropy, "consistency_community_code")],
)
def test_the_consistency_is_the_reference(known, z, term: Any, key: str) -> None:
    agrees(term(cosine_matrix(*z[:2]) / 0.05), z[:2], known["rankcse"][key])


def test_the_consistency_by_hand(known, z) -> None:
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
    assert -entropy == pytest.approx(known["rankcse"]["minus_mean_entropy"], abs=1e-9)
    same, flat = torch.tensor([[9.0, 1.0], [1.0, 9.0]]), torch.ones(2, 2)
    assert jensen_shannon(same).item() == pytest.approx(0, abs=1e-7)
    assert minus_entropy(flat) < minus_entropy(same), "it rewards lists without any preference"


LISTNET = {
    "own_left_out_teacher_tau_0.05 (community code)": (others, 0.05),
    "own_left_out_teacher_tau_0.025 (tau3 = tau2/2)": (others, 0.025),
    "own_kept_teacher_tau_0.025": (lambda lists: lists, 0.025),
}


@pytest.mark.parametrize("key", LISTNET)
def test_listnet_is_the_reference(known, z, t, key: str) -> None:
    lists, tau = LISTNET[key]
    taught = cosine_matrix(t[0], t[0])
    loss = list_net(lists(cosine_matrix(*z[:2]) / 0.05), lists(taught / tau))
    agrees(loss, z[:2], known["rankcse"]["listnet"][key])


LISTMLE = {
    "own_kept_eps_1e-7 (community code)": (lambda lists: lists, 1e-7),
    "own_left_out": (others, 0.0),
}


@pytest.mark.parametrize("key", LISTMLE)
def test_listmle_is_the_reference(known, z, t, key: str) -> None:
    lists, eps = LISTMLE[key]
    loss = list_mle(lists(cosine_matrix(*z[:2]) / 0.05), lists(cosine_matrix(t[0], t[0])), eps)
    agrees(loss, z[:2], known["rankcse"]["listmle"][key])


def test_listmle_is_the_surprise_of_drawing_the_teachers_order(known, z, t) -> None:
    student, teacher = (
        np.array(cosines(z[0].detach(), z[1].detach())) / 0.05,
        cosine_matrix(t[0], t[0]),
    )
    order = teacher.argsort(dim=1, descending=True).tolist()
    assert order == known["rankcse"]["teacher_order"]
    total = 0.0
    for row, items in zip(student, order, strict=True):
        for k, item in enumerate(items):
            total += math.log(sum(math.exp(row[j]) for j in items[k:])) - row[item]
    assert list_mle(torch.tensor(student), teacher).item() == pytest.approx(total / 4, abs=1e-12)
    tied = torch.zeros(1, 3)
    first = list_mle(torch.tensor([[3.0, 1.0, 0.0]]), tied)
    assert first < list_mle(torch.tensor([[0.0, 1.0, 3.0]]), tied), "ties keep their order"


def test_two_teachers_are_weighed(known, t) -> None:
    wanted = known["rankcse"]["two_teachers"]
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
        setting=U,
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


# --- guided SimCSE ---


def test_multicsr_is_the_reference(known, z, t) -> None:
    wanted = known["multicsr"]
    weights = instance_weights(candidates(tuple(t)), wanted["phi"])
    assert weights.tolist() == wanted["weights"]
    for form, key in (("code", "code"), ("infonce", "removed_from_denominator")):
        for one in z:
            one.grad = None
        loss = debiased(candidates(tuple(z)), weights, form=form, temperature=wanted["tau"])
        agrees(loss, z, wanted[key])
    ones = torch.ones_like(weights)
    plain = debiased(candidates(tuple(z)), ones, form="infonce", temperature=0.05).item()
    assert plain == pytest.approx(wanted["plain_supervised_simcse"], abs=1e-9)


GISTS = {
    "temperature_0.01_full": {"temperature": 0.01},
    "temperature_0.05_full": {},
    "temperature_0.05_only_ap_and_an": {"contrast_anchors": False, "contrast_positives": False},
    "temperature_0.05_margin_0.1_full": {"margin": 0.1},
}


@pytest.mark.parametrize("key", GISTS)
def test_gist_is_the_reference(known, z, t, tiny, tmp_path, key: str) -> None:
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, mask="gist", **GISTS[key])
    loss = method.loss((*z, *t), batch_of(method, *[sentences(4, seed=i) for i in range(3)]))
    agrees(loss.total, z, known["gist"][key])


def test_the_mask_of_gist(known, t) -> None:
    kept = kept_by_gist(tuple(t), 0.0)
    blocks = [(~block).int().tolist() for block in kept.chunk(4, dim=1)]
    assert blocks[0] == known["gist"]["masked_ap"] and blocks[3] == known["gist"]["masked_an"]


def test_no_sentence_is_its_own_negative() -> None:
    """With one text as anchor and positive the guide finds the pair as near as the anchor
    itself.
    """
    same = torch.eye(3)
    for block in kept_by_gist((same, same), 0.0).chunk(3, dim=1)[1:]:
        assert not block.diagonal().any() and block.sum() == 6
    assert kept_by_gist((same, same), 2.0).sum() == 3, "the own pair is never left out"


def test_a_masked_negative_does_not_matter(tiny, tmp_path) -> None:
    """If the guide finds all candidates alike, nothing is left to tell the positive from; if it
    finds none alike, the loss is SimCSE's.
    """
    texts = [sentences(4, seed=i) for i in range(3)]
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, phi=-1.0, dropout=0.0)
    batch = batch_of(method, *texts)
    assert method(batch).total.item() == pytest.approx(0, abs=1e-6)
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, phi=1.1, dropout=0.0)
    z = method.views(batch)[:3]
    logits = torch.cat([cosine_matrix(z[0], z[1]), cosine_matrix(z[0], z[2])], dim=1) / 0.05
    wanted = cross_entropy(logits, torch.arange(4)).item()
    assert method(batch).total.item() == pytest.approx(wanted, abs=1e-5)


# --- teachers ---

TAUGHT = [
    pytest.param(RankCSE, U, {"teacher_1": None, "teacher_2": None}, "teachers", id="rankcse"),
    pytest.param(GuidedSimCSE, S, {"guide": None}, "guide", id="guided-simcse"),
]


@pytest.mark.parametrize(("cls", "setting", "keys", "part"), TAUGHT)
def test_a_teacher_is_frozen_in_eval_mode_and_in_no_checkpoint(
    backbone, tmp_path, cls: Any, setting: str, keys: dict[str, Any], part: str
) -> None:
    method = built(cls, backbone, tmp_path, setting=setting, **dict.fromkeys(keys, backbone))
    batch = batch_of(method, *[sentences(4, seed=i) for i in range(1 if setting == U else 3)])
    with training(method):
        first, second = method.views(batch), method.views(batch)
        assert not torch.equal(first[0], second[0]), "dropout of the student"
        assert torch.equal(first[-1], second[-1]) and not first[-1].requires_grad
        method(batch).total.backward()
    teacher = getattr(method, part)
    assert not [p for p in teacher.parameters() if p.requires_grad or p.grad is not None]
    for state in (method.trained_state(), method.training_state()):
        assert not [name for name in state if name.startswith(part)]


@pytest.mark.parametrize(("cls", "setting", "keys", "part"), TAUGHT)
def test_a_teacher_reads_the_students_tokens(
    tiny, tiny_roberta, tmp_path, cls, setting, keys, part
):
    with pytest.raises(BenchError, match="vocabular"):
        built(cls, tiny, tmp_path, setting=setting, **dict.fromkeys(keys, tiny_roberta))
    assert cls.places == tuple(keys)
    with pytest.raises(BenchError, match="needs a finished model"):
        cls.check(merge_recipe(cls, None, "", {}, trained=True), None)


def test_the_guides_dropout_is_on_where_it_is_faithful(tiny, tmp_path) -> None:
    texts = [sentences(4, seed=i) for i in range(3)]
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, faithful=True)
    batch = batch_of(method, *texts)
    with training(method):
        assert not torch.equal(method.views(batch)[-1], method.views(batch)[-1])
