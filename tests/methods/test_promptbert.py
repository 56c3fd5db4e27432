"""PromptBERT: its vectors and losses against passes made by hand, and what differs between
training, dev and test.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import TEXTS, batch_of, info_nce
from models import built, sentences
from torch import Tensor

from bench.methods.promptbert import PromptBERT

BERT = ('This sentence of "', '" means[MASK].'), ('This sentence : "', '" means[MASK].')
ROBERTA = ("This sentence : '", " ' means<mask>."), ("The sentence : '", " ' means<mask>.")
TEXTS_1 = "This sentence : ' {s} ' means{m}.", "The sentence : ' {s} ' means{m}."


@pytest.fixture(params=["bert", "roberta"])
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def backbone(request: pytest.FixtureRequest, family: str) -> str:
    return request.getfixturevalue("tiny" if family == "bert" else "tiny_roberta")


def promptbert(backbone: str, folder: Path, family: str = "bert", **values: Any) -> PromptBERT:
    if family == "roberta":
        values = {"template_1": TEXTS_1[0], "template_2": TEXTS_1[1]} | values
    return built(PromptBERT, backbone, folder, **values).double()


def by_hand(
    method: PromptBERT, inner: Sequence[int], pieces: tuple[str, str], positions_from: int
) -> tuple[Tensor, Tensor]:
    """(H,) the mask's state around the ids of one sentence, and the template's bias for it: one
    sentence a pass, no padding.
    """
    tokenizer, first = method.backbone.tokenizer, method.backbone.first_position
    before, after = tokenizer(pieces[0])["input_ids"][:-1], tokenizer(pieces[1])["input_ids"][1:]
    mask = after.index(tokenizer.mask_token_id)

    def state(ids: list[int], positions: list[int], place: int) -> Tensor:
        return method.encoder(
            input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions])
        ).last_hidden_state[0, place]

    whole = [*before, *inner, *after]
    h = state(whole, list(range(first, first + len(whole))), len(before) + len(inner) + mask)
    shifted = [*range(len(before)), *range(len(before) + len(inner), len(whole))]
    return h, state(before + after, [positions_from + p for p in shifted], len(before) + mask)


@pytest.mark.matrix(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("delta_positions", ["repo", "aligned"])
@pytest.mark.parametrize("variant", ["", "one-template", "no-debias", "one-template-no-debias"])
def test_the_unsupervised_loss(backbone, family, tmp_path, variant, delta_positions):
    values: dict[str, Any] = {"template_2": None} if variant.startswith("one-template") else {}
    values |= {"delta_positions": delta_positions, "variant": variant, "dropout": 0.0}
    method = promptbert(backbone, tmp_path, family, setting="unsupervised", **values)
    texts = [*sentences(4, seed=2), 'he said "no" [MASK] <mask>']
    first = method.backbone.first_position if delta_positions == "aligned" else 0
    pieces = BERT if family == "bert" else ROBERTA
    with torch.no_grad():
        z = []
        for i in (0, 0 if variant.startswith("one-template") else 1):
            pairs = [by_hand(method, ids, pieces[i], first) for ids in method.backbone.ids(texts)]
            bare = variant.endswith("no-debias")
            z.append(torch.stack([h if bare else h - delta for h, delta in pairs]))
        z = [torch.tanh(one @ method.head.dense.weight.T + method.head.dense.bias) for one in z]
        found = method(batch_of(method, texts)).total.item()
    assert found == pytest.approx(info_nce(*z), abs=1e-10)


def test_the_supervised_loss_has_one_template_and_berts_own_transform_on_state_and_bias(
    backbone, family, tmp_path
):
    from transformers import AutoModelForMaskedLM

    values = {"head": "mlm-transform" if family == "bert" else "tanh", "template_2": None}
    method = promptbert(backbone, tmp_path, family, setting="supervised", dropout=0.0, **values)
    pretrained = AutoModelForMaskedLM.from_pretrained(backbone).double().eval()
    pieces = (BERT if family == "bert" else ROBERTA)[0]
    with torch.no_grad():
        z = []
        for column in TEXTS:
            pairs = [by_hand(method, ids, pieces, 0) for ids in method.backbone.ids(column)]
            h, delta = (torch.stack(part) for part in zip(*pairs, strict=True))
            if family == "bert":
                transform = pretrained.cls.predictions.transform
                z.append(transform(h) - transform(delta))
            else:
                z.append(torch.tanh(method.head.dense(h - delta)))
        total = method(batch_of(method, *TEXTS)).total.item()
    assert total == pytest.approx(info_nce(*z), abs=1e-10)


def scored(method: PromptBERT, texts: list[str], *, dev: bool) -> np.ndarray:
    if not dev:
        return method.encode(texts)
    vectors = []

    def keep_vectors(inner: PromptBERT) -> float:
        vectors.append(inner.encode(texts))
        return 71.0

    assert method.dev_score(keep_vectors) == 71.0
    return vectors[0]


@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_dev_and_test_vectors_differ_as_in_the_authors_code(backbone, family, tmp_path, setting):
    sup = setting == "supervised"
    values = {"debias_at_test": sup, "head_at_test": sup}
    method = promptbert(backbone, tmp_path, family, setting=setting, **values)
    pieces = (BERT if family == "bert" else ROBERTA)[0]
    tokenizer = method.backbone.tokenizer
    texts = ["a man plays", "a man plays.", 'she said "no"', "who?", "never!"]
    at_test = ["a man plays.", "a man plays.", 'she said "no"', "who?", "never!."]
    blank = " " if family == "roberta" else ""
    with torch.no_grad():
        dev, test = (
            [by_hand(method, ids, pieces, 0) for ids in rows]
            for rows in (
                tokenizer(some, add_special_tokens=False)["input_ids"]
                for some in (texts, [blank + s for s in at_test])
            )
        )
        wanted_dev = torch.stack([h - delta for h, delta in dev])
        wanted_test = torch.stack([h - delta if sup else h for h, delta in test])
        if sup:
            wanted_dev, wanted_test = (
                torch.tanh(method.head.dense(one)) for one in (wanted_dev, wanted_test)
            )
    np.testing.assert_allclose(scored(method, texts, dev=True), wanted_dev, rtol=0, atol=1e-6)
    np.testing.assert_allclose(scored(method, texts, dev=False), wanted_test, rtol=0, atol=1e-6)
