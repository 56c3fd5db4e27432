"""ConPVP: its loss against the authors' code and against passes made by hand; which templates are
drawn; what is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from formula import NUMBERED, TEMPLATES, Formula
from harness import batch_of, info_nce
from models import built, sentences
from torch import Tensor, nn

from bench.method import Batch, Features, Recipe, Value
from bench.methods.conpvp import NEGATIVE, POSITIVE, ConPVP
from bench.methods.templates import wrap_sentences


def conpvp(backbone: str, folder: Path, **values: Any) -> ConPVP:
    return built(ConPVP, backbone, folder, setting="unsupervised", **values).double()


def words(method: ConPVP, features: Features) -> list[str]:
    rows = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [method.backbone.tokenizer.decode(ids[mask.bool()]) for ids, mask in rows]


def test_the_loss_of_a_tiny_bert_is_that_of_the_authors_code(reference_b: dict[str, Any]) -> None:
    """The whole forward pass: prompt in the place of words, mask states, biases, all prototypes of
    the batch.
    """
    known = reference_b["tiny_bert"]
    f = Formula(known)
    method: Any = ConPVP()
    method.encoder = f.encoder
    method.prompt = nn.Parameter(f.prompt)
    method.head = nn.Identity()
    method.backbone = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=0))
    method.anchor = TEMPLATES["anchor"]
    values = {"debias": "prompt-mask", "temperature": 0.05, "faithful": False}
    method.recipe = Recipe({key: Value(value, "test") for key, value in values.items()})
    columns = []
    for kind, template in TEMPLATES.items():
        rows = [row["input_ids"] for row in known["conpvp"] if row["kind"] == kind]
        inner = [row[len(template.before) : -len(template.after)] for row in rows]
        columns.append(wrap_sentences(inner, [template] * 2, NUMBERED))  # type: ignore[arg-type]
    loss = method(Batch(tuple(columns))).total.item()
    assert loss == pytest.approx(known["conpvp_loss_tau_0.05_without_head"], abs=1e-10)


def by_hand(
    method: ConPVP, ids: Sequence[int], slots: Sequence[int], mask: int, seen: Sequence[int] | None
) -> Tensor:
    """(H,) the mask's state of one whole sequence; ``seen``: the places that can be attended to."""
    embedded = method.encoder.get_input_embeddings()(torch.tensor([ids])).clone()
    if slots:
        embedded[0, slots] = method.prompt
    attention = torch.tensor([[int(seen is None or i in seen) for i in range(len(ids))]])
    positions = torch.arange(len(ids))[None] + method.backbone.first_position
    out = method.encoder(inputs_embeds=embedded, attention_mask=attention, position_ids=positions)
    return out.last_hidden_state[0, mask]


def vector(method: ConPVP, sentence: str, text: str, debias: str) -> Tensor:
    """(H,) the debiased vector of a sentence in a template, tokenised here with the tokenizer's own
    special tokens.
    """
    tokenizer = method.backbone.tokenizer
    filled = text.replace("{m}", tokenizer.mask_token).replace("{p}", tokenizer.pad_token)
    before, after = filled.split("{s}")
    head, tail = tokenizer(before)["input_ids"][:-1], tokenizer(after)["input_ids"][1:]
    inner = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    ids, count = [*head, *inner, *tail], text.count("{p}")
    mask = len(head) + len(inner) + tail.index(tokenizer.mask_token_id)
    template = [*range(len(head)), *range(len(head) + len(inner), len(ids))]
    h = by_hand(method, ids, slots := list(range(mask - count, mask)), mask, None)
    if debias == "none":
        return h
    seen = template if debias == "empty-template" else template[1:-1]
    return h - by_hand(method, ids, slots, mask, seen)


@pytest.mark.matrix(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("debias", ["prompt-mask", "empty-template", "none"])
@pytest.mark.parametrize("prototypes", ["both", "positive", "none"])
def test_the_loss_by_hand(backbone: str, tmp_path: Path, debias: str, prototypes: str) -> None:
    method = conpvp(backbone, tmp_path, dropout=0.0, debias=debias, prototypes=prototypes)
    texts = [*sentences(4, seed=5), 'a <pad> "man" [MASK] <mask>']
    method.positive, method.negative = method.positive[:1], method.negative[:1]  # no draw
    with torch.no_grad():
        kinds = ["{s}  {p} {p} {p} {p} {m} .", POSITIVE["repo"][0], NEGATIVE["repo"][0]]
        kinds = {"both": kinds, "positive": kinds[:2], "none": kinds[:1] * 2}[prototypes]
        z = [torch.stack([vector(method, s, text, debias) for s in texts]) for text in kinds]
        z = [torch.tanh(one @ method.head.dense.weight.T + method.head.dense.bias) for one in z]
        found = method(batch_of(method, texts)).total.item()
    assert found == pytest.approx(info_nce(*z), abs=1e-10)


def test_encode_gives_the_raw_anchor_without_head(backbone: str, tmp_path: Path) -> None:
    for head_at_test in (False, True):
        method = conpvp(backbone, tmp_path, head_at_test=head_at_test)
        with torch.no_grad():
            h = vector(method, "a man plays", "{s}  {p} {p} {p} {p} {m} .", "none")
            wanted = torch.tanh(method.head.dense(h)) if head_at_test else h
        np.testing.assert_allclose(method.encode(["a man plays"])[0], wanted, rtol=0, atol=1e-6)


def test_the_papers_own_anchor_has_trained_vectors_and_ends_with_the_mask(backbone, tmp_path):
    text = "{s}{p}{p}{p}{p}{m}"
    method = conpvp(backbone, tmp_path, anchor=text)
    assert method.prompt.shape == (4, method.backbone.hidden_size) and method.prompt.requires_grad
    assert conpvp(backbone, tmp_path, anchor="{s}{p}{m}").prompt.shape[0] == 1
    with torch.no_grad():
        wanted = vector(method, "a man plays", text, "none")
    np.testing.assert_allclose(method.encode(["a man plays"])[0], wanted, rtol=0, atol=1e-6)
