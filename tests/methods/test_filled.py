"""Templates on vocabularies that no authors tokenised in pieces: the filled text's own ids, in
training, in scoring and in an export.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_models import FAMILIES
from harness import batch_of, rows_of
from models import built, sentences

from bench.backbones import load, resolve
from bench.export.st_folder import write_st
from bench.export.vectors import compare_vectors
from bench.methods.conpvp import NEGATIVE, POSITIVE, ConPVP, anchor
from bench.methods.cot_bert import CoTBERT
from bench.methods.dcpcse import DCPCSE, TEMPLATE
from bench.methods.promptbert import PromptBERT
from bench.methods.sncse import SNCSE, ended
from bench.methods.templates import Template, wrap_sentences

TEXTS = ["A man is playing.", 'He said "stop"!', "", "[MASK] <mask> a", "Yes?", " two  blanks", '"']
TEXTS += ["naïve café 你好 🙂", *sentences(3, longest=4)]
FILLED = pytest.mark.parametrize(
    "name",
    [
        "modernbert",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("xlm-roberta", "deberta-v2")),
    ],
)
Models = Callable[[str], str]
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "promptbert": (PromptBERT, {"debias_train": False, "debias_at_dev": False}),
    "conpvp": (ConPVP, {"debias": "none"}),
    "sncse": (SNCSE, {"max_seq_length": 120}),
    "cot-bert": (CoTBERT, {}),
    "dcpcse": (DCPCSE, {"shallow": True}),
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    place = tmp_path_factory.mktemp("filled")
    return cache(lambda name: FAMILIES[name](place / name))


def text_of(method: Any) -> str:
    if isinstance(method, ConPVP):
        return anchor(method.recipe.prompt_length, method.recipe.anchor_layout)
    if isinstance(method, DCPCSE):
        return TEMPLATE
    if isinstance(method, CoTBERT):
        return str(method.recipe.anchor)
    return str(method.recipe.template_1)


def filled(tokenizer: Any, text: str, sentence: str) -> list[int]:
    """The ids of the text, tokenised in one go by the library."""
    whole = text.replace("{m}", tokenizer.mask_token).replace("{p}", tokenizer.pad_token)
    return list(tokenizer(whole.replace("{s}", sentence))["input_ids"])


@pytest.mark.parametrize("which", METHODS)
@FILLED
def test_training_reads_the_filled_text_tokenised_once(
    name: str, which: str, models: Models, tmp_path: Path
) -> None:
    cls, values = METHODS[which]
    method = built(cls, models(name), tmp_path, setting="unsupervised", **values)
    tokenizer, text = method.backbone.tokenizer, text_of(method)
    assert method.trains_on == "text"
    batch = batch_of(method, TEXTS)
    for sentence, row, mask in zip(
        TEXTS, rows_of(batch.columns[0]), batch.columns[0]["mask_position"], strict=True
    ):
        said = ended(sentence) if which == "sncse" else sentence
        wanted = filled(tokenizer, text, said)
        if which == "dcpcse" and row != wanted:  # a learned vector keeps the place of its word
            template = method.prompt.template
            inner = method.backbone.ids([said])[0]
            wanted = [*template.before, *inner, *template.after]
        assert row == wanted
        assert row[int(mask)] == method.backbone.mask_id
        assert method.backbone.mask_id not in row[int(mask) + 1 :]
    method.train()
    method(batch).total.backward()
    trains = [(n, p) for n, p in method.named_parameters() if p.requires_grad]
    assert [n for n, p in trains if p.grad is None] == []


@FILLED
def test_a_sentence_that_is_too_long_is_cut_and_the_template_never(
    name: str, models: Models
) -> None:
    backbone = load(resolve(models(name)))
    for text in (POSITIVE["repo"][0], NEGATIVE["paper"][4], anchor(4, "repo")):
        template = Template.of(text, backbone)
        for longest in (None, 5, 0):
            features = wrap_sentences(
                ["guitar. " * 90, "🙂" * 90], [template] * 2, backbone, longest
            )
            for row, mask in zip(rows_of(features), features["mask_position"], strict=True):
                assert len(row) <= backbone.max_tokens
                assert row[int(mask)] == backbone.mask_id
                tail = len(template) - template.mask
                assert tuple(row[int(mask) :]) == (template.before + template.after)[-tail:]
                sure = template.before[:-1]  # a blank before the gap joins some first words
                assert tuple(row[: len(sure)]) == sure
            kept = features["sentence_mask"].sum(1)
            assert longest is None or int(kept.max()) <= longest
            assert longest != 5 or int(kept[0]) >= 4
            assert not (features["prompt_mask"] & features["sentence_mask"]).any()


def test_learned_vectors_replace_the_tokens_of_padding(models: Models) -> None:
    """With byte-level BPE the blanks between them are tokens too."""
    backbone = load(resolve(models("modernbert")))
    template = Template.of(anchor(4, "repo"), backbone)
    features = wrap_sentences(["A man is playing."], [template], backbone)
    places = features["slot"][0].nonzero().squeeze(1)
    assert features["slot"][0][places].tolist() == [1, 2, 3, 4]
    pad = backbone.tokenizer.pad_token_id
    assert features["input_ids"][0][places].tolist() == [pad] * 4


@pytest.mark.slow
@pytest.mark.matrix(every=6)
@pytest.mark.parametrize(
    ("which", "values"),
    [(which, {}) for which in METHODS] + [("promptbert", {"debias_at_test": True})],
)
def test_scores_and_exports_read_the_filled_text_too(
    which: str, values: dict[str, Any], models: Models, tmp_path: Path
) -> None:
    cls, own = METHODS[which]
    method = built(cls, models("modernbert"), tmp_path, setting="unsupervised", **own | values)
    texts = [*TEXTS, "guitar. " * 90]
    alone = np.concatenate([method.encode([text]) for text in texts])
    np.testing.assert_allclose(method.encode(texts), alone, atol=1e-5)
    (row,) = rows_of(method.assemble(method.token_ids(["A man is playing."])))
    if which != "dcpcse":
        assert row == filled(method.backbone.tokenizer, text_of(method), "A man is playing.")
    to = tmp_path / "export"
    to.mkdir()
    write_st(method.portable(), to)
    assert compare_vectors(method, to)[0] <= 1e-5
    assert torch.is_grad_enabled()
