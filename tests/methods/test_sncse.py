"""SNCSE: its loss, its three texts, and the negation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import batch_of
from harness import info_nce as by_loops
from models import built
from torch import Tensor

from bench.methods.losses import info_nce
from bench.methods.sncse import SNCSE, margin_loss, negate

BERT = ('This sentence : " ', ' " means [MASK] .'), ('This sentence of " ', ' " means [MASK] .')


def sncse(backbone: str, folder: Path, **values: Any) -> SNCSE:
    return built(
        SNCSE, backbone, folder, setting="unsupervised", **({"max_seq_length": 64} | values)
    ).double()


def test_the_loss_is_that_of_the_authors_code(reference_b: dict[str, Any]) -> None:
    known, inputs = reference_b["sncse"], reference_b["inputs"]
    z1, z2, z3 = (
        torch.tensor(inputs[key], dtype=torch.float64, requires_grad=True)
        for key in ("v", "c_pos", "c_neg")
    )
    margin = margin_loss(z1, z2, z3, alpha=known["alpha"], beta=known["beta"])
    assert margin.item() == pytest.approx(known["bml"], abs=1e-10)
    total = info_nce(z1, z2, temperature=0.05) + known["lambda"] * margin
    assert total.item() == pytest.approx(known["total"], abs=1e-10)


def state(method: SNCSE, sentence: str, pieces: tuple[str, str], blank: str = "") -> Tensor:
    """(H,) the mask's state of one sentence in a template that is tokenised here, in one pass of
    its own.
    """
    tokenizer, first = method.backbone.tokenizer, method.backbone.first_position
    before, after = (piece.replace("[MASK]", tokenizer.mask_token) for piece in pieces)
    head = tokenizer(before.rstrip(" ") if blank else before)["input_ids"][:-1]
    tail = tokenizer(after)["input_ids"][1:]
    ids = [*head, *tokenizer(blank + sentence, add_special_tokens=False)["input_ids"], *tail]
    place = len(ids) - len(tail) + tail.index(tokenizer.mask_token_id)
    positions = torch.arange(first, first + len(ids))[None]
    out = method.encoder(input_ids=torch.tensor([ids]), position_ids=positions)
    return out.last_hidden_state[0, place]


def test_the_loss_by_hand(backbone: str, tmp_path: Path) -> None:
    method = sncse(backbone, tmp_path, dropout=0.0, margin_weight=0.5)
    odd = 'the "child" [MASK] sleeps <mask>.'
    texts = ["a man is near the sea", "prices rose!", odd, "he will not win"]
    same = ["a man is near the sea .", "prices rose!", odd, "he will not win ."]
    opposite = ["a man is not near the sea .", "Not prices rose!", f"Not {odd}", "he will win ."]
    with torch.no_grad():
        z = [
            torch.tanh(method.head.dense(torch.stack([state(method, s, pieces) for s in some])))
            for some, pieces in ((same, BERT[0]), (same, BERT[1]), (opposite, BERT[1]))
        ]
        u = [(one / one.norm(dim=1, keepdim=True)).numpy() for one in z]
        d = (u[0] * u[2]).sum(1) - (u[0] * u[1]).sum(1)
        margin = np.mean([max(x + 0.1, 0) + max(-x - 0.3, 0) for x in d])
        loss = method(batch_of(method, texts))
    contrast = by_loops(z[0], z[1])
    assert loss.total.item() == pytest.approx(contrast + 0.5 * margin, abs=1e-10)
    assert loss.parts["margin"].item() == pytest.approx(margin, abs=1e-10)
    assert loss.parts["contrast"].item() == pytest.approx(contrast, abs=1e-10)


def test_encode_gives_the_state_in_the_first_filled_template(backbone, tmp_path):
    method = sncse(backbone, tmp_path)
    with torch.no_grad():
        wanted = state(method, "a man plays .", BERT[0], blank=" ")
    np.testing.assert_allclose(method.encode(["a man plays"])[0], wanted, rtol=0, atol=1e-6)
    assert np.array_equal(method.encode(["a man plays"]), method.encode(["a man plays ."]))


@pytest.mark.parametrize(
    ("sentence", "negation"),
    [
        ("He is not here.", "He is here."),
        ("The cat is on the mat.", "The cat is not on the mat."),
        ("It can-do what it will.", "It can-do what it will not."),
        ("He has a dog.", "Not He has a dog."),
        ("In May 2005 Will Smith played.", "Not In May 2005 Will Smith played."),
        ("One cannot win.", "One can win."),
        ("isn't it", "Not isn't it"),
        ("not", "Not not"),
        ("", ""),
    ],
)
def test_negation(sentence: str, negation: str) -> None:
    assert negate(sentence) == negation
