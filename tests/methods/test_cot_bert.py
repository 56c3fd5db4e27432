"""CoT-BERT: the authors' values, and its views and scored vectors against passes made by hand, one
sentence at a time.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from formula import NUMBERED, Formula, tokens, vocabulary
from harness import AWKWARD, batch_of, leaves, same
from models import built, sentences
from torch import Tensor

from bench import methods
from bench.method.recipe_files import read_recipes
from bench.methods.cot_bert import TEMPLATES, CoTBERT, padded, two_stage, two_stage_loss
from bench.methods.templates import Template, empty, wrap_sentences

MEANS = "means {m} , so it can be summarized as {m} ."
ROBERTA = ("The sentence of ' {s} ' ", "The sentence : ' {s} ' ")


def test_the_loss_and_its_gradients_are_those_of_the_authors_code(reference_c):
    known = reference_c["cot_bert"]
    z = leaves(reference_c["inputs"], "z1", "z2", "z3")
    loss = two_stage_loss(*z, temperature=known["tau"])
    loss.backward()
    same(loss, known["loss"])
    for one, name in zip(z, ("grad_z1", "grad_z2", "grad_z3"), strict=True):
        same(one.grad, known[name])
    shorter = two_stage_loss(*z, temperature=known["tau"], third=False)
    same(shorter, known["without_positive_negative_term"])


def test_states_and_denoising_of_a_tiny_bert_are_those_of_the_authors_code(
    reference_b, reference_c
):
    f, known = Formula(reference_b["tiny_bert"]), reference_c["cot_bert_denoising"]
    before, after = tuple(known["ids_before"]), tuple(known["ids_after"])
    last = Template(before, after, len(before) + 4, 0, (1, 1))
    first = Template(before, after, len(before) + 1, 0, (1, 1))
    numbered: Any = NUMBERED
    for template, key in ((last, "h_last_mask"), (first, "h_first_mask")):
        same(f(wrap_sentences([known["sentence"]], [template], numbered))[0], known[key])
    lengths = torch.arange(5)
    table = f(padded(last, lengths, 0, 0))
    same(table, known["pad_template_states_for_0_to_4_tokens"])
    same(f(empty(last, lengths, 0)), known["promptbert_style_shifted_states_for_0_to_4_tokens"])
    debiased = f(wrap_sentences([known["sentence"]], [last], numbered))[0] - table[3]
    same(debiased, known["debiased"])


def test_roberta_counts_no_position_at_padding(reference_c):
    known = reference_c["cot_bert_denoising"]["roberta_position_ids_that_the_code_gives"]
    template = Template((0, 7, 5), (6, 3, 8, 9, 3, 4, 2), 7, 0, (1, 1))
    row = padded(template, torch.tensor([3]), known["pad"], known["pad"] + 1)
    assert row["input_ids"][0].tolist() == known["ids"]
    assert row["position_ids"][0].tolist() == known["position_ids"]
    assert row["input_ids"][0, row["mask_position"]].item() == 3
    assert row["mask_position"].item() == known["ids"].index(4) - 1


def recipe_templates(name: str) -> dict[str, str]:
    """The templates of a backbone's recipe, else the method's."""
    folder = Path(methods.__path__[0])
    recipe = next(e for e in read_recipes(folder, "cot-bert").recipes if e.backbone == name)
    return {key: (recipe.values.get(key) or CoTBERT.defaults[key]).value for key in TEMPLATES}


@pytest.mark.parametrize("name", ["bert-base-uncased", "roberta-base"])
def test_templates_have_the_tokens_of_the_authors_code(name, shared, reference_c):
    known = reference_c["cot_bert_tokenization"]
    real, sentence = vocabulary(name, shared), known["sentence"]
    texts = recipe_templates(name)
    for key, text in texts.items():
        made = wrap_sentences(real.ids([sentence]), [two_stage(text, real)], real)
        assert tokens(real, made) == known[name][key]
        mask = real.tokenizer.mask_token
        pieces = [part.strip() for part in reference_c["cot_bert_templates"][name][key]]
        ours = text.replace("{m}", f" {mask}").split("{s}")
        assert [part.strip() for part in ours] == pieces
    scored = SimpleNamespace(backbone=real, stop=".", blank=" " if name[0] == "r" else "")
    ids = real.ids([scored.blank + sentence + scored.stop])
    made = wrap_sentences(ids, [two_stage(texts["anchor"].rstrip(" "), real)], real)
    assert tokens(real, made) == known[name]["test"]


def method_of(backbone: str, folder: Any, **values: Any) -> CoTBERT:
    if "roberta" in backbone:
        values = (
            dict(zip(("anchor", "positive"), (r + MEANS for r in ROBERTA), strict=True)) | values
        )
    values = {"setting": "unsupervised", "dropout": 0.0} | values
    return built(CoTBERT, backbone, folder, **values).double()


def alone(
    method: CoTBERT, text: str, inner: list[int], positions: list[int] | None = None
) -> Tensor:
    """(H,) the state of the last mask of a template around ids, in a pass of its own."""
    tokenizer = method.backbone.tokenizer
    before, after = text.replace("{m}", tokenizer.mask_token).split("{s}")
    ids = (
        tokenizer(before.rstrip(" "))["input_ids"][:-1] + inner + tokenizer(after)["input_ids"][1:]
    )
    start = method.backbone.first_position
    place = max(i for i, token in enumerate(ids) if token == tokenizer.mask_token_id)
    positions = positions or list(range(start, start + len(ids)))
    states = method.encoder(
        input_ids=torch.tensor([ids]), position_ids=torch.tensor([positions])
    ).last_hidden_state
    return states[0, place]


@pytest.mark.parametrize("denoise", ["pad", "none"])
def test_the_views_are_those_of_one_sentence_a_pass(backbone, tmp_path, denoise):
    method = method_of(backbone, tmp_path, denoise=denoise)
    texts = [*sentences(5, seed=4), *AWKWARD]
    pad, first = method.pad_id, method.backbone.first_position
    with torch.no_grad():
        found = method.views(batch_of(method, texts))
        for view, key in zip(found, TEMPLATES, strict=True):
            text = method.recipe[key]
            for row, inner in zip(view, method.backbone.ids(texts), strict=True):
                inner = inner[:32]
                h = alone(method, text, inner)
                if denoise == "pad":
                    start = len(two_stage(text, method.backbone).before)
                    total = len(two_stage(text, method.backbone)) + len(inner)
                    tail = range(start + len(inner), total)
                    shift = len(inner) if first else 0  # RoBERTa does not count padding
                    places = [first + p for p in range(start)]
                    places += [first - 1 if first else p + start for p in range(len(inner))]
                    places += [first + p - shift for p in tail]
                    h = h - alone(method, text, [pad] * len(inner), places)
                z = torch.tanh(method.head.dense(h))
                np.testing.assert_allclose(row, z, rtol=0, atol=1e-9)


def test_test_vectors_have_a_full_stop_and_dev_vectors_none(backbone, tmp_path):
    method = method_of(backbone, tmp_path)
    blank = " " if "roberta" in backbone else ""
    texts = ["a man plays", "who?"]
    vectors: list[np.ndarray] = []

    def keep_vectors(inner: Any) -> float:
        vectors.append(inner.encode(texts))
        return 1.0

    method.dev_score(keep_vectors)
    vectors.append(method.encode(texts))
    with torch.no_grad():
        for found, text in zip(vectors, ("a man plays", "a man plays."), strict=True):
            for row, one in zip(found, (text, "who?"), strict=True):
                (inner,) = method.backbone.tokenizer([blank + one], add_special_tokens=False)[
                    "input_ids"
                ]
                wanted = alone(method, method.recipe.anchor.rstrip(" "), inner)
                np.testing.assert_allclose(row, wanted, rtol=0, atol=1e-6)
