"""Losses and gradients of seven methods, against the values that their authors' code gave for the
same numbers (``shared/reference/vectors_a.json`` and ``vectors_b.json``, float64).

SimCSE, PromCSE, DCPCSE, Focal-InfoNCE, PromptBERT, IS-BERT, DCLR. ``benchmarks/parity`` runs the
authors' code itself beside ours.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from formula import NUMBERED, Formula
from harness import double, leaves, same
from torch import Tensor

from bench.methods.dclr import debiased, instance_weights, uphill
from bench.methods.gather import across_ranks
from bench.methods.is_bert import information_loss
from bench.methods.losses import cosine_matrix, energy_hinge, focal_info_nce, info_nce
from bench.methods.masking import decayed_weight, mean_surprise, places_of, surprise_of_rows
from bench.methods.pooling import masked_mean
from bench.methods.templates import Template, empty, gaps, wrap_sentences


def with_hinge(views: list[Tensor], hard_negative_weight: float = 0.0) -> Tensor:
    """PromCSE's loss with the weight of its paper."""
    contrast = info_nce(*views, temperature=0.05, hard_negative_weight=hard_negative_weight)
    return contrast + 10 * energy_hinge(*views, margin=0.2)


SIMCSE: dict[str, Callable[..., Tensor]] = {
    "infonce_unsup": lambda z: info_nce(*z[:2], temperature=0.05),
    "infonce_hard_negative_weight_0": lambda z: info_nce(*z, temperature=0.05),
    "infonce_hard_negative_weight_1": lambda z: info_nce(
        *z, temperature=0.05, hard_negative_weight=1.0
    ),
}
PROMCSE: dict[str, Callable[..., Tensor]] = {
    "eh_alone_margin_0.2": lambda z: energy_hinge(*z, margin=0.2),
    "total_promcse_eh": with_hinge,
    "total_promcse_eh_hard_negative_weight_1": lambda z: with_hinge(z, 1.0),
}


@pytest.fixture
def z(reference: dict[str, Any]) -> list[Tensor]:
    return leaves(reference["contrastive"]["inputs"], "z1", "z2", "z3")


@pytest.mark.parametrize("key", [*SIMCSE, *PROMCSE])
def test_contrast_and_hinge_of_simcse_and_promcse(
    reference: dict[str, Any], z: list[Tensor], key: str
) -> None:
    wanted = reference["contrastive"][key]
    loss = (SIMCSE | PROMCSE)[key](z)
    loss.backward()
    same(loss, wanted["loss"])
    for view, gradient in zip(z, ("grad_z1", "grad_z2", "grad_z3"), strict=True):
        if gradient in wanted:
            assert view.grad is not None
            same(view.grad, wanted[gradient])


def test_promcses_hinge_at_other_margins(reference: dict[str, Any], z: list[Tensor]) -> None:
    wanted = reference["contrastive"]["eh_alone_other_margins"]
    assert len(wanted) == 8
    for margin, loss in wanted.items():
        same(energy_hinge(*z, margin=float(margin)), loss)


def test_promcses_own_run_over_two_ranks(
    reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values of the whole batch, and the gradient divided by the number of processes.

    That two real processes come to this is asked in tests/training/test_spread.py.
    """
    contrastive = reference["contrastive"]
    known = contrastive["two_rank_faithful_gather"]
    hinge = contrastive["eh_alone_margin_0.2"]["loss"]
    alone, both = (leaves(contrastive["inputs"], "z1", "z2", "z3") for _ in range(2))
    with_hinge(across_ranks(alone, faithful=True)).backward()
    monkeypatch.setattr("bench.methods.gather.processes", lambda: 2)
    loss = with_hinge(across_ranks(both, faithful=True))
    loss.backward()
    assert loss.item() == pytest.approx(contrastive["total_promcse_eh"]["loss"], abs=1e-10)
    assert loss.item() - 10 * hinge == pytest.approx(known["loss_on_every_rank"], abs=1e-10)
    for one, two in zip(alone, both, strict=True):
        assert one.grad is not None and two.grad is not None
        moved = one.grad.abs().numpy() > 1e-9
        ratio = two.grad.numpy()[moved] / one.grad.numpy()[moved]
        np.testing.assert_allclose(ratio, known["gradient_ratio_to_single_process"], rtol=1e-9)


def test_word_guessing_of_simcse_and_dcpcse(reference: dict[str, Any]) -> None:
    known = reference["mlm_auxiliary"]
    logits = double(known["logits"]).requires_grad_()
    labels = torch.tensor(known["labels"])
    places = places_of(labels)
    guesses = mean_surprise(*surprise_of_rows(logits[places], labels, places))
    assert guesses.item() == pytest.approx(known["mlm_loss"], abs=1e-10)

    # both add it to InfoNCE; DCPCSE with a weight that decays
    contrast = reference["contrastive"]["infonce_unsup"]["loss"]
    total = contrast + 0.1 * guesses.item()
    assert total == pytest.approx(known["simcse_total"]["value"], abs=1e-10)
    recipe: Any = SimpleNamespace(mlm_weight=0.1, mlm_decay_rate=0.95, mlm_decay_steps=100)
    for step, weight in reference["dcpcse_lambda"]["values"].items():
        assert decayed_weight(recipe, int(step)) == pytest.approx(weight, abs=1e-11)
    for step, wanted in known["dcpcse_total"]["values"].items():
        found = contrast + decayed_weight(recipe, int(step)) * guesses.item()
        assert found == pytest.approx(wanted, abs=1e-10)

    # the gradient by hand: (softmax - one-hot) / chosen, nothing at positions that are not guessed
    guesses.backward()
    wanted_gradient = torch.zeros_like(logits.detach())
    for i, t in (labels != -100).nonzero().tolist():
        row = np.exp(np.array(known["logits"][i][t]))
        wanted_gradient[i, t] = torch.tensor(row / row.sum())
        wanted_gradient[i, t, labels[i, t]] -= 1
    torch.testing.assert_close(logits.grad, wanted_gradient / 3, rtol=0, atol=1e-12)


@pytest.mark.parametrize("index", range(6))
def test_focal_info_nce(reference_b: dict[str, Any], index: int) -> None:
    wanted = reference_b["focal_infonce"]["grid"][index]
    h, h_plus = leaves(reference_b["inputs"], "v", "c_pos")
    loss = focal_info_nce(h, h_plus, temperature=wanted["tau"], m=wanted["m"])
    loss.backward()
    assert h.grad is not None and h_plus.grad is not None
    same(loss, wanted["loss"])
    same(h.grad, wanted["grad_h"])
    if "grad_h_plus" in wanted:
        same(h_plus.grad, wanted["grad_h_plus"])


def test_promptberts_bias_of_a_template(reference_b: dict[str, Any]) -> None:
    """The table of biases by length, and mask states of a tiny BERT before and after they go."""
    of_bert = reference_b["tiny_bert"]
    states_of, known = Formula(of_bert), of_bert["promptbert"]
    first = known["first_shifted_index"]
    ids = known["template_ids"]
    template = Template(tuple(ids[:first]), tuple(ids[first:]), 5, 0, (1, 1))
    table = states_of(empty(template, torch.arange(8), 0))
    torch.testing.assert_close(table, double(known["delta_rows_0_to_7"]), rtol=0, atol=1e-10)

    inner = [row["input_ids"][first : -len(template.after)] for row in known["sentences"]]
    features = wrap_sentences(inner, [template] * 2, NUMBERED)  # type: ignore[arg-type]
    lengths, row = gaps(features, template)
    assert lengths[row].tolist() == [one["delta_row"] for one in known["sentences"]]
    h = states_of(features)
    debiased_h = h - states_of(empty(template, lengths, 0))[row]
    for found, key in ((h, "h_mask"), (debiased_h, "debiased")):
        wanted = double([one[key] for one in known["sentences"]])
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def test_is_berts_information(reference: dict[str, Any]) -> None:
    known = reference["other_baselines"]["is_bert_jsd"]
    lengths = known["sentence_lengths"]
    parts = np.split(np.array(known["local"]), np.cumsum(lengths)[:-1])
    # at padding stands something that must not count
    local = torch.full((len(lengths), max(lengths), 2), 9.0, dtype=torch.float64)
    mask = torch.zeros(local.shape[:2], dtype=torch.int64)
    for i, part in enumerate(parts):
        local[i, : len(part)], mask[i, : len(part)] = torch.tensor(part), 1
    sentences = masked_mean(local, mask)
    np.testing.assert_allclose(sentences, known["global"], rtol=0, atol=1e-11)
    loss = information_loss(local, mask, sentences)
    assert loss.item() == pytest.approx(known["loss"], abs=1e-10)


def test_dclrs_weights_losses_and_noise(reference_b: dict[str, Any]) -> None:
    known, inputs = reference_b["dclr"], reference_b["inputs"]
    z1, z2 = double(inputs["v"]), double(inputs["c_pos"])
    noise, judged = double(known["noise"]), double(known["cos_of_fixed_model"])
    weights = instance_weights(judged, known["phi"])
    ones = torch.ones(4, 3, dtype=torch.float64)
    assert torch.cat([weights, ones], 1).tolist() == known["weights"]
    cosines = cosine_matrix(z1, torch.cat([z2, noise]))
    for form, key in (("code", "code_loss"), ("infonce", "paper_style_loss_weight_outside_exp")):
        found = debiased(cosines, weights, form=form, temperature=known["tau"])
        assert found.item() == pytest.approx(known[key], abs=1e-10)

    def plain(s: Tensor) -> Tensor:
        every = torch.ones_like(weights)
        return debiased(s, every, form="infonce", temperature=known["tau"])

    moved = uphill(noise, z1, cosines[:, :4], plain, 1, 1e-3)
    np.testing.assert_allclose(moved, known["noise_after_one_step_1e-3"], rtol=0, atol=1e-10)
