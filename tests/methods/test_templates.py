"""Templates: positions of all their tokens, whatever the sentence contains, and the bias of a
template.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from formula import tokens, vocabulary
from harness import AWKWARD
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.backbones import load, resolve
from bench.method import Backbone
from bench.methods.conpvp import MANUAL, NEGATIVE, POSITIVE, anchor
from bench.methods.templates import Template, blank_before, wrap_sentences

BLANKS = "This sentence : ' {s} ' means{m}."
PLAIN = 'This sentence of "{s}" means{m}.'
REAL = ("bert-base-uncased", "roberta-base")


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest, shared: Path) -> Backbone:
    return vocabulary(request.param, shared)


@pytest.fixture(params=["bert", "roberta"])
def model(request: pytest.FixtureRequest) -> Backbone:
    """A tiny random encoder in float64, without dropout."""
    name = "tiny" if request.param == "bert" else "tiny_roberta"
    loaded = load(resolve(request.getfixturevalue(name)), dropout=0.0)
    loaded.encoder.double()
    return loaded


def test_the_lists_of_templates_are_those_of_the_code_and_of_the_paper(reference_b):
    known = reference_b["templates"]
    for ours, source in (("repo", "code"), ("paper", "paper_reading")):
        assert list(POSITIVE[ours]) == known[f"conpvp_positive_{source}"]
        assert list(NEGATIVE[ours]) == known[f"conpvp_negative_{source}"]
    assert anchor(4, "repo") == known["conpvp_anchor"]
    for family in ("bert", "roberta"):
        assert MANUAL[family] == known[f"promptbert_unsup_{family}"][0]


def test_tokens_and_prompt_masks_are_those_of_the_real_vocabularies(real, reference_b):
    known = reference_b["tokenization"]
    ids, known = real.ids([known["sentence"]]), known[real.name]
    features = wrap_sentences(ids, [Template.of(anchor(4, "repo"), real)], real)
    assert tokens(real, features) == known["anchor"]
    assert features["slot"][0].nonzero().squeeze(1).tolist() == known["anchor_continuous_prompt_at"]
    assert features["slot"][0][known["anchor_continuous_prompt_at"]].tolist() == [1, 2, 3, 4]
    features = wrap_sentences(ids, [Template.of(POSITIVE["repo"][0], real)], real)
    assert tokens(real, features) == known["positive_1"]
    assert features["prompt_mask"][0].tolist() == known["positive_1_prompt_mask"]


def test_promptroberta_trains_without_the_leading_blank_and_tests_with_it(shared, reference_b):
    roberta = vocabulary("roberta-base", shared)
    known = reference_b["tokenization"]["roberta-base"]
    template = Template.of(BLANKS, roberta, keep_blank=False)
    trained = wrap_sentences(roberta.ids(["A man is playing"]), [template], roberta)
    assert tokens(roberta, trained) == known["promptbert_train_view_1"]
    scored = roberta.ids([blank_before(BLANKS) + "A man is playing."])
    assert tokens(roberta, wrap_sentences(scored, [template], roberta)) == known["promptbert_test"]


@pytest.mark.parametrize("text", [BLANKS, PLAIN, 'This sentence : " {s} " means {m} .'])
@settings(max_examples=40)
@given(sentence=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30))
def test_the_pieces_of_a_scored_sentence_are_the_tokens_of_the_filled_template(
    shared, text, sentence
):
    """... in RoBERTa's vocabulary, where blanks count; a template without blanks at the gap may
    merge with the sentence.
    """
    roberta = vocabulary("roberta-base", shared)
    if text == PLAIN:
        sentence = "A" + "".join(c for c in sentence if c.isalnum()) + "b"
    template = Template.of(text, roberta, keep_blank=False)
    pieces = wrap_sentences(roberta.ids([blank_before(text) + sentence]), [template], roberta)
    whole = text.replace("{m}", roberta.tokenizer.mask_token).replace("{s}", sentence)
    assert pieces["input_ids"][0].tolist() == roberta.tokenizer(whole)["input_ids"]


@pytest.mark.parametrize("text", [PLAIN, BLANKS, anchor(4, "repo"), NEGATIVE["paper"][4]])
@pytest.mark.parametrize("longest", [None, 5])
def test_the_templates_own_mask_is_found_whatever_the_sentence_contains(real, text, longest):
    template = Template.of(text, real)
    ids = real.ids([*AWKWARD, " ", "é ü 你好", "a long sentence " * 400])
    features = wrap_sentences(ids, [template] * len(ids), real, longest)
    width = len(template) + 5 if longest == 5 else real.max_tokens
    assert features["input_ids"].shape[1] == width
    for row, inner in enumerate(ids):
        place = int(features["mask_position"][row])
        total = int(features["attention_mask"][row].sum())
        room = 5 if longest == 5 else real.max_tokens - len(template)
        wanted = [*template.before, *inner[:room], *template.after]
        assert features["input_ids"][row, :total].tolist() == wanted
        assert wanted[place] == real.mask_id and total - place == len(template) - template.mask
        assert int(features["sentence_mask"][row].sum()) == total - len(template)
        assert int(features["prompt_mask"][row].sum()) == len(template) - 2
        assert not (features["prompt_mask"][row] & features["sentence_mask"][row]).any()


def row_by_row(ids: Any, templates: Any, backbone: Any, longest: int | None) -> dict[str, Any]:
    """Put each sentence into its template token by token, in lists of plain numbers."""
    rows: dict[str, list[list[int]]] = {key: [] for key in KEYS}
    places = []
    for sentence, template in zip(ids, templates, strict=True):
        room = backbone.max_tokens - len(template)
        inner = list(sentence)[: room if longest is None else min(room, longest)]
        opening, closing = template.specials
        words = [0] * opening + [1] * (len(template.before) - opening)
        tail = [1] * (len(template.after) - closing) + [0] * closing
        rows["input_ids"].append([*template.before, *inner, *template.after])
        rows["attention_mask"].append([1] * (len(template) + len(inner)))
        rows["sentence_mask"].append([0] * len(words) + [1] * len(inner) + [0] * len(tail))
        rows["prompt_mask"].append([*words, *[0] * len(inner), *tail])
        place = template.mask
        if place >= len(template.before):
            place += len(inner)
        slots = [0] * (len(template) + len(inner))
        for k in range(1, template.slots + 1):
            slots[place - template.slots + k - 1] = k
        rows["slot"].append(slots)
        places.append(place)
    T = max(map(len, rows["input_ids"]), default=0)
    features: dict[str, Any] = {"mask_position": places}
    for key, lists in rows.items():
        fill = int(backbone.tokenizer.pad_token_id or 0) if key == "input_ids" else 0
        features[key] = [row + [fill] * (T - len(row)) for row in lists]
    features["position_ids"] = [[backbone.first_position + t for t in range(T)] for _ in places]
    lengths = [sum(row) for row in rows["sentence_mask"]]
    features["gap"] = [sorted(set(lengths)).index(length) for length in lengths]
    features["gaps"] = len(set(lengths))
    features["template_tokens"] = max(map(len, templates), default=0)
    return features


KEYS = ("input_ids", "attention_mask", "sentence_mask", "prompt_mask", "slot")


@pytest.mark.parametrize("longest", [None, 3])
@pytest.mark.parametrize("mixed", [False, True])
def test_a_batch_has_the_features_of_its_rows_one_by_one(model, longest, mixed):
    texts = [PLAIN, *NEGATIVE["repo"], anchor(4, "clean")] if mixed else [anchor(4, "clean")]
    kinds = [Template.of(text, model) for text in texts]
    ids = [np.arange(5, 5 + n, dtype=np.uint16) for n in (4, 0, 1, 9, 30, 2, 9, 500, 4, 3, 1)]
    templates = [kinds[(5 * row) % len(kinds)] for row in range(len(ids))]
    for rows in (len(ids), 1, 0):
        found = wrap_sentences(ids[:rows], templates[:rows], model, longest)
        wanted = row_by_row(ids[:rows], templates[:rows], model, longest)
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert found[key].dtype == torch.int64
            if rows:
                assert found[key].tolist() == value, key
