"""MultiCSR's and GIST's losses of guided SimCSE: reference values, and the same by hand."""

from __future__ import annotations

import pytest
import torch
from harness import batch_of
from models import built, sentences
from taught_losses import agrees_with_reference
from torch.nn.functional import cross_entropy

from bench.methods.dclr import debiased, instance_weights
from bench.methods.guided_simcse import GuidedSimCSE, candidates, kept_by_gist
from bench.methods.losses import cosine_matrix

U, S = "unsupervised", "supervised"


def test_multicsr_is_the_reference(reference_c, z, t) -> None:
    wanted = reference_c["multicsr"]
    weights = instance_weights(candidates(tuple(t)), wanted["phi"])
    assert weights.tolist() == wanted["weights"]
    for form, key in (("code", "code"), ("infonce", "removed_from_denominator")):
        for one in z:
            one.grad = None
        loss = debiased(candidates(tuple(z)), weights, form=form, temperature=wanted["tau"])
        agrees_with_reference(loss, z, wanted[key])
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
def test_gist_is_the_reference(reference_c, z, t, tiny, tmp_path, key: str) -> None:
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, mask="gist", **GISTS[key])
    loss = method.loss((*z, *t), batch_of(method, *[sentences(4, seed=i) for i in range(3)]))
    agrees_with_reference(loss.total, z, reference_c["gist"][key])


def test_the_mask_of_gist(reference_c, t) -> None:
    kept = kept_by_gist(tuple(t), 0.0)
    blocks = [(~block).int().tolist() for block in kept.chunk(4, dim=1)]
    assert (
        blocks[0] == reference_c["gist"]["masked_ap"]
        and blocks[3] == reference_c["gist"]["masked_an"]
    )


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
