"""PromptEOL and its variants against plain loops of transformers.

The loops read one sentence at a time, and nothing is padded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_family import EVERY
from harness import batch_of, info_nce
from models import built, sentences
from tiny_decoders import EOL, cleaned, states_of

from bench.base.errors import BenchError
from bench.export.st_folder import st_vectors, write_st
from bench.export.vectors import relative_difference
from bench.methods.decoder_prompts import clean_text
from bench.methods.layer_hooks import encoder_layers
from bench.methods.prompteol import KNOWLEDGE, PromptEOL

COT = 'After thinking step by step , this sentence : "{x}" means in one word:"'
TEXTS = ['He said "no"', "a man plays.", "Is it ?", "", "naïve , 42 %", *sentences(3, seed=8)]
LONG = "a man plays the guitar " * 100


@pytest.fixture(
    scope="module",
    params=["qwen3", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("llama", "opt"))],
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return EVERY[request.param](tmp_path_factory.mktemp("prompted") / request.param)


def by_loop(folder: str, texts: list[str], template: str, layer: int) -> np.ndarray:
    rows = [states_of(folder, template.format(x=cleaned(text)))[layer, -1] for text in texts]
    return torch.stack(rows).numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "values", "template", "layer"),
    [
        ("", {}, EOL, -1),
        ("", {"layer": 1}, EOL, 1),
        ("pretended-cot", {}, COT, -2),
        ("knowledge", {}, KNOWLEDGE.replace("[X]", "{x}"), -2),
        ("sth", {}, 'This sentence : "{x}" means something', -1),
        ("sum", {}, 'This sentence : "{x}" can be summarized as', -1),
        (
            "",
            {"demonstration": "A jockey riding a horse.", "demonstration_word": "Equestrian"},
            'This sentence : "A jockey riding a horse." means in one word:"Equestrian".' + EOL,
            -1,
        ),
    ],
)
def test_vectors_are_those_of_a_plain_loop(
    folder: str, variant: str, values: dict[str, Any], template: str, layer: int, tmp_path: Path
) -> None:
    method = built(PromptEOL, folder, tmp_path, variant=variant, **values).double()
    expected = by_loop(folder, TEXTS, template, layer)
    np.testing.assert_allclose(method.encode(TEXTS), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(method.encode(TEXTS[:1]), expected[:1], rtol=1e-6, atol=1e-6)


def test_the_cleaning_is_the_authors_and_a_value() -> None:
    for text in [*TEXTS, "?", '"', "a'", "it's?", "x."]:
        assert clean_text(text, "prompteol") == cleaned(text)
        assert clean_text(text, "none") == text
    assert clean_text('He said "no"', "bellm") == 'He said "no"'
    assert clean_text("Is it ?", "bellm") == "Is it ."


def test_a_long_sentence_is_cut_and_the_prompt_never(folder: str, tmp_path: Path) -> None:
    method = built(PromptEOL, folder, tmp_path, setting="unsupervised", max_seq_length=9)
    (cut,), (short,) = method.token_ids([LONG]), method.token_ids(["a"])
    room = method.backbone.max_tokens - len(method.before) - len(method.after)
    text = method.backbone.tokenizer.decode(cut)
    assert room - 8 <= len(cut) <= room and cut[-4:] == short[-4:]
    assert text.strip().startswith('This sentence : "a man plays the guitar a man')
    (features,) = method.collate({"sentence": [LONG]}, np.arange(1), 0)
    ids = features["input_ids"][0].tolist()[len(method.before) :]
    kept = method.backbone.tokenizer.decode(ids).strip()
    inner = kept.removeprefix('This sentence : "').removesuffix('" means in one word:"')
    assert LONG.startswith(inner) and 0 < len(method.backbone.ids([inner])[0]) <= 9
    with pytest.raises(BenchError, match="no sentence has room"):
        long_prompt = LONG + '"[X]"'
        built(PromptEOL, folder, tmp_path, template=long_prompt).encode(["a"])


def test_the_loss_is_infonce_of_the_last_tokens(folder: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"setting": "supervised", "dropout": 0.0}
    method = built(PromptEOL, folder, tmp_path, **values).double()
    columns = [sentences(4, seed=seed) for seed in (1, 2, 3)]
    loss = method(batch_of(method, *columns)).total.item()
    vectors = []
    for texts in columns:  # training text is not cleaned
        vectors.append([states_of(folder, EOL.format(x=text))[-1, -1].numpy() for text in texts])
    assert loss == pytest.approx(info_nce(*vectors), abs=1e-6)


def test_layers_above_the_one_that_is_read_do_not_train(folder: str, tmp_path: Path) -> None:
    """... and are in no checkpoint: they stay the backbone's."""
    values: dict[str, Any] = {"setting": "unsupervised", "dropout": 0.1, "layer": 1}
    method = built(PromptEOL, folder, tmp_path, **values).train()
    method(batch_of(method, sentences(4, seed=1))).total.backward()
    for name, parameter in method.named_parameters():
        assert parameter.requires_grad == (parameter.grad is not None), name
    layers = encoder_layers(method.encoder)
    assert not any(parameter.requires_grad for parameter in layers[1].parameters())
    assert all(parameter.requires_grad for parameter in layers[0].parameters())


@pytest.mark.nightly
@pytest.mark.parametrize("variant", ["", "pretended-cot"])
def test_an_export_gives_the_same_vectors(folder: str, variant: str, tmp_path: Path) -> None:
    method = built(PromptEOL, folder, tmp_path, variant=variant)
    place = tmp_path / "export"
    place.mkdir()
    write_st(method.portable(), place)
    texts = [*TEXTS, LONG]
    assert relative_difference(method.encode(texts), st_vectors(place, texts)) <= 1e-5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"template": "no place"}, "stands for the sentence, once"),
        ({"demonstration": "A man."}, "a sentence and its word"),
        ({"layer": 9}, "has the hidden states 0 to 2"),
    ],
)
def test_a_mistake_is_one_line(
    folder: str, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BenchError, match=message) as caught:
        method = built(PromptEOL, folder, tmp_path, **values)
        PromptEOL.check(method.recipe, None)
    assert "\n" not in caught.value.message and caught.value.hint
