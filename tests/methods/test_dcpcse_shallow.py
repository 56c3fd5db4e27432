"""DCPCSE's variant shallow, the paper's SCPCSE: a template whose words are trained."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from frozen import TEXTS, batch_in, batch_of, step_of, trained
from models import built, sentences

from methods.dcpcse import DCPCSE

BACKBONES = pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])
H = 32


def shallow(backbone: str, folder: Path, **values: Any) -> DCPCSE:
    return built(DCPCSE, backbone, folder, setting="unsupervised", variant="shallow", **values)


@BACKBONES
def test_an_untrained_template_prompt_is_the_template_in_words(
    request: Any, backbone: str, tmp_path: Path
) -> None:
    """Its vectors start as the template's word embeddings: the plain encoder on the filled template gives the same states."""
    method = shallow(request.getfixturevalue(backbone), tmp_path)
    tokenizer = method.backbone.tokenizer
    for text in sentences(5, seed=8):
        if backbone == "tiny":
            whole = tokenizer(f'This sentence : "{text}" means [MASK].', return_tensors="pt")
        else:  # a byte-level vocabulary cuts the filled text elsewhere: the pieces are tokenised on their own
            pieces = method.backbone.ids(['This sentence : "', text, '" means<mask>.'])
            ids = [tokenizer.bos_token_id, *sum(pieces, []), tokenizer.eos_token_id]
            whole = {
                "input_ids": torch.tensor([ids]),
                "attention_mask": torch.ones(1, len(ids), dtype=torch.int64),
            }
        (place,) = (whole["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten().tolist()
        with torch.no_grad():
            wanted = method.encoder(**whole).last_hidden_state[0, place]
        np.testing.assert_allclose(method.encode([text])[0], wanted, rtol=0, atol=1e-6)


def test_six_vectors_start_as_the_words_before_the_mask(tiny: str, tmp_path: Path) -> None:
    method = shallow(tiny, tmp_path)
    ids = method.backbone.tokenizer.convert_tokens_to_ids(
        ["this", "sentence", ":", '"', '"', "means"]
    )
    assert method.backbone.tokenizer.unk_token_id not in ids
    assert torch.equal(method.prompt.table, method.encoder.get_input_embeddings().weight[ids])
    assert trained(method) == {
        "prompt.table": (6, H),
        "head.dense.weight": (H, H),
        "head.dense.bias": (H,),
    }


@BACKBONES
def test_prompt_and_head_of_the_template_train_and_nothing_else(
    request: Any, backbone: str, tmp_path: Path
) -> None:
    method = shallow(request.getfixturevalue(backbone), tmp_path, learning_rate=1e-2)
    assert step_of(method, batch_in(method, "unsupervised")) == set(trained(method))


@BACKBONES
def test_each_vector_stands_at_its_own_place_and_mask_and_full_stop_are_not_trained(
    request: Any, backbone: str, tmp_path: Path
) -> None:
    """The embeddings that reach the encoder: k-th vector at the k-th word of the template, words everywhere else."""
    method = shallow(request.getfixturevalue(backbone), tmp_path)
    count = len(method.prompt.table)
    with torch.no_grad():
        method.prompt.table.copy_(100.0 + torch.arange(count)[:, None].expand(-1, H))
    given: list[Any] = []
    method.encoder.register_forward_pre_hook(
        lambda _m, _a, named: given.append(named), with_kwargs=True
    )
    texts = ["a man", "woman reads book in park", '"[MASK]" means <mask> .']
    features = method.tokenize(texts)
    with torch.no_grad():
        method.states(features)
    before = len(method.backbone.ids(['This sentence : "'])[0])
    for i, text in enumerate(texts):
        length = len(method.backbone.ids([text])[0])
        places = [1 + k if k < before else 1 + length + k for k in range(count)]
        row = given[0]["inputs_embeds"][i]
        assert [row[place, 0].item() for place in places] == [100.0 + k for k in range(count)]
        rest = [t for t in range(int(features["attention_mask"][i].sum())) if t not in places]
        words = method.encoder.get_input_embeddings()(features["input_ids"][i, rest])
        assert torch.equal(row[rest], words)
        assert features["mask_position"][i] == 1 + length + count  # directly behind the last vector


@BACKBONES
def test_the_sentence_is_cut_and_the_template_comes_on_top(
    request: Any, backbone: str, tmp_path: Path
) -> None:
    method = shallow(request.getfixturevalue(backbone), tmp_path)
    long = " ".join(["guitar"] * 100)
    whole = method.tokenize([long], 32)
    assert whole["input_ids"].shape == (
        1,
        32 + len(method.prompt.table) + 2,
    )  # the mask and the full stop
    (features,) = batch_of(method, [long]).columns
    assert features["input_ids"].shape == whole["input_ids"].shape
    assert features["input_ids"][0, features["mask_position"][0]] == method.backbone.mask_id


@BACKBONES
def test_the_shallow_loss_from_the_vectors_alone(
    request: Any, backbone: str, tmp_path: Path
) -> None:
    method = shallow(request.getfixturevalue(backbone), tmp_path, dropout=0.0, head_at_test=True)
    with torch.no_grad():
        total = method(batch_in(method, "unsupervised")).total.item()
    z = torch.nn.functional.normalize(torch.tensor(method.encode(TEXTS[0])).double())
    rows = [
        math.log(sum(math.exp(s / 0.05) for s in row)) - row[i] / 0.05
        for i, row in enumerate((z @ z.T).tolist())
    ]
    assert total == pytest.approx(np.mean(rows), abs=1e-4)
