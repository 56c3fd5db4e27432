"""Every loss and its gradients against the authors' values (against plain loops: test_losses_by_hand.py)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from methods.losses import (
    cosine_matrix,
    energy_hinge,
    focal_info_nce,
    focal_logits,
    info_nce,
    nt_xent,
)

MARGINS = (0.0, 0.05, 0.1, 0.15, 0.25, 0.3, 0.35, 0.4)


def tensor(rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def leaves(inputs: dict, *names: str) -> list[torch.Tensor]:
    return [tensor(inputs[name]).requires_grad_() for name in names]


def same(ours: torch.Tensor, theirs) -> None:
    np.testing.assert_allclose(ours.detach(), theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("key", "weight"),
    [
        ("infonce_unsup", None),
        ("infonce_hard_negative_weight_0", 0.0),
        ("infonce_hard_negative_weight_1", 1.0),
    ],
)
def test_info_nce_is_that_of_the_authors_code(reference, key: str, weight: float | None) -> None:
    inputs, wanted = reference["contrastive"]["inputs"], reference["contrastive"][key]
    z1, z2, z3 = leaves(inputs, "z1", "z2", "z3")
    hard = {} if weight is None else {"negatives_CD": z3, "hard_negative_weight": weight}
    loss = info_nce(z1, z2, temperature=inputs["temperature"], **hard)
    loss.backward()
    same(loss, wanted["loss"])
    same(z1.grad, wanted["grad_z1"])


def test_cosines_are_those_of_the_authors_code(reference) -> None:
    contrastive = reference["contrastive"]
    z1, z2, z3 = (tensor(contrastive["inputs"][name]) for name in ("z1", "z2", "z3"))
    same(cosine_matrix(z1, z2), contrastive["cosine_z1_z2"])
    same(cosine_matrix(z1, z3), contrastive["cosine_z1_z3"])


def test_the_energy_hinge_is_that_of_the_authors_code(reference) -> None:
    contrastive = reference["contrastive"]
    wanted = contrastive["eh_alone_margin_0.2"]
    z1, z2, z3 = leaves(contrastive["inputs"], "z1", "z2", "z3")
    loss = energy_hinge(z1, z2, z3, margin=0.2)
    loss.backward()
    same(loss, wanted["loss"])
    same(z1.grad, wanted["grad_z1"])


@pytest.mark.parametrize("row", range(4))
def test_the_energy_hinge_of_one_row_and_the_candidate_that_it_pushes_away(
    reference, row: int
) -> None:
    wanted = reference["contrastive"]["eh_alone_margin_0.2"]
    z1, z2, z3 = leaves(reference["contrastive"]["inputs"], "z1", "z2", "z3")
    anchor = z1[row : row + 1]
    same(energy_hinge(anchor, z2, z3, margin=0.2, offset=row), wanted["per_row_hinge"][row])
    energy_hinge(
        anchor, z2, z3, margin=1.0, offset=row
    ).backward()  # a margin that makes every row active
    pushed = torch.cat([z2.grad, z3.grad]).abs().sum(1).nonzero()[:, 0].tolist()
    assert pushed == sorted([row, wanted["hardest_column"][row]])
    loss = energy_hinge(anchor, z2, z3, margin=1.0, offset=row)
    same(loss, 1.0 - wanted["positive_similarity"][row] + wanted["hardest_similarity"][row])


@pytest.mark.parametrize("margin", MARGINS)
def test_the_energy_hinge_at_other_margins(reference, margin: float) -> None:
    contrastive = reference["contrastive"]
    loss = energy_hinge(*leaves(contrastive["inputs"], "z1", "z2", "z3"), margin=margin)
    same(loss, contrastive["eh_alone_other_margins"][str(margin)])


@pytest.mark.parametrize(
    ("key", "weight"), [("total_promcse_eh", 0.0), ("total_promcse_eh_hard_negative_weight_1", 1.0)]
)
def test_info_nce_and_ten_times_the_hinge_is_the_authors_total(
    reference, key: str, weight: float
) -> None:
    contrastive = reference["contrastive"]
    z = leaves(contrastive["inputs"], "z1", "z2", "z3")
    loss = info_nce(*z, temperature=0.05, hard_negative_weight=weight) + 10 * energy_hinge(
        *z, margin=0.2
    )
    loss.backward()
    same(loss, contrastive[key]["loss"])
    if "grad_z1" in contrastive[key]:
        same(z[0].grad, contrastive[key]["grad_z1"])


@pytest.mark.parametrize("index", range(6))
def test_focal_info_nce_is_that_of_the_authors_code(reference_b, index: int) -> None:
    wanted = reference_b["focal_infonce"]["grid"][index]
    h, h_plus = leaves(reference_b["inputs"], "v", "c_pos")
    loss = focal_info_nce(h, h_plus, temperature=wanted["tau"], m=wanted["m"])
    loss.backward()
    same(loss, wanted["loss"])
    same(h.grad, wanted["grad_h"])
    if "grad_h_plus" in wanted:
        same(h_plus.grad, wanted["grad_h_plus"])


def test_focal_logits_rows_and_slopes_are_those_of_the_authors_code(reference_b) -> None:
    (wanted,) = [one for one in reference_b["focal_infonce"]["grid"] if "logits" in one]
    h, h_plus = leaves(reference_b["inputs"], "v", "c_pos")
    cosines = cosine_matrix(h, h_plus).detach().requires_grad_()
    logits = focal_logits(cosines, temperature=wanted["tau"], m=wanted["m"])
    same(logits, wanted["logits"])
    rows = torch.nn.functional.cross_entropy(logits, torch.arange(4), reduction="none")
    same(rows, wanted["loss_rows"])
    rows.mean().backward()
    same(cosines.grad, wanted["dloss_dcos"])


def test_focal_terms_of_one_cosine(reference_b) -> None:
    curve = reference_b["focal_infonce"]["scalar_curve"]
    s = tensor(
        [curve["s"]] * 2
    ).requires_grad_()  # in row 0 column 0 is the own one, in row 1 column 1
    logits = focal_logits(s, temperature=curve["tau"], m=curve["m"])
    (slope,) = torch.autograd.grad(logits.sum(), s)
    same(logits[0, 1:], curve["negative_term_s_times_s_plus_m"][1:])
    same(logits[1, 0], curve["negative_term_s_times_s_plus_m"][0])
    same(logits[[0, 1], [0, 1]], curve["positive_term_s_squared"][:2])
    same(slope[0, 1:], curve["its_derivative_2s_plus_m"][1:])


@pytest.mark.parametrize("tau", [0.05, 0.07])
def test_info_nce_on_the_focal_input(reference_b, tau: float) -> None:
    h, h_plus = leaves(reference_b["inputs"], "v", "c_pos")
    same(
        info_nce(h, h_plus, temperature=tau),
        reference_b["focal_infonce"]["infonce_same_inputs"][str(tau)],
    )


def test_conpvps_loss_is_info_nce_with_everybodys_negative_prototypes(reference_b) -> None:
    wanted = reference_b["conpvp"]
    v, c_pos, c_neg = leaves(reference_b["inputs"], "v", "c_pos", "c_neg")
    loss = info_nce(v, c_pos, c_neg, temperature=wanted["tau"])
    loss.backward()
    same(loss, wanted["loss"])
    for ours, key in ((v, "grad_v"), (c_pos, "grad_c_pos"), (c_neg, "grad_c_neg")):
        same(ours.grad, wanted[key])
    for i, row in enumerate(wanted["loss_rows"]):
        same(info_nce(v[i : i + 1], c_pos, c_neg, temperature=wanted["tau"], offset=i), row)


def test_conpvps_loss_without_negative_prototypes(reference_b) -> None:
    wanted = reference_b["conpvp"]["without_c_neg"]
    v, c_pos = leaves(reference_b["inputs"], "v", "c_pos")
    loss = info_nce(v, c_pos, temperature=0.05)
    loss.backward()
    same(loss, wanted["loss"])
    same(v.grad, wanted["grad_v"])
    same(c_pos.grad, wanted["grad_c_pos"])
    for i, row in enumerate(wanted["loss_rows"]):
        same(info_nce(v[i : i + 1], c_pos, temperature=0.05, offset=i), row)


@pytest.mark.parametrize("tau", [0.04, 0.1])
def test_nt_xent_is_that_of_the_baselines(reference, tau: float) -> None:
    z1, z2 = leaves(reference["contrastive"]["inputs"], "z1", "z2")
    same(
        nt_xent(z1, z2, temperature=tau),
        reference["other_baselines"]["ntxent_2n_mean"][f"tau_{tau}"],
    )


def test_nt_xent_is_mirror_berts_loss_and_half_of_conserts(reference, reference_b) -> None:
    z1, z2 = leaves(reference_b["inputs"], "v", "c_pos")
    mirror, consert = reference_b["mirror_bert"], reference_b["consert"]
    same(nt_xent(z1, z2, temperature=mirror["tau"]), mirror["loss_mean_over_2N"])
    same(2 * nt_xent(z1, z2, temperature=consert["tau"]), consert["loss_a_plus_loss_b"])
    z1, z2 = leaves(reference["contrastive"]["inputs"], "z1", "z2")
    same(
        2 * nt_xent(z1, z2, temperature=0.1),
        reference["other_baselines"]["consert_ntxent"]["tau_0.1"],
    )
