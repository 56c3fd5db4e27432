"""A plain transformers checkpoint: the vectors of transformers, one text at a time and nothing
padded, whatever its family.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import built, sentences
from st_folders import bert_folder, edit_json, spread, word_tokenizer
from tiny_decoders import PROMPTEOL, decoder
from tiny_decoders import SIZES as DECODER

from bench.backbones import load, resolve
from bench.base.errors import BenchError
from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(7, seed=9), "The Guitar WOMAN “reads” , café", "man woman " * 60, "a", ""]
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
WIDTH: dict[str, Any] = {"intermediate_size": 32}
POSITIONS: dict[str, Any] = {"max_position_embeddings": 34, "pad_token_id": 1, "type_vocab_size": 1}
# model type -> sizes
FAMILIES: dict[str, dict[str, Any]] = {
    "roberta": SIZES | WIDTH | POSITIONS,
    "mpnet": SIZES | WIDTH | {"max_position_embeddings": 34, "pad_token_id": 1},
    "data2vec-text": SIZES | WIDTH | POSITIONS,
    "longformer": SIZES | WIDTH | POSITIONS | {"attention_window": 8},
    "roberta-prelayernorm": SIZES | WIDTH | POSITIONS,
    "xlm-roberta-xl": SIZES | WIDTH | POSITIONS,
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
    "bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 2},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 34},
    "opt": SIZES | {"ffn_dim": 32, "word_embed_proj_dim": 16, "max_position_embeddings": 32},
    "fnet": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
    },
}


def checkpoint(folder: Path, kind: str) -> Path:
    """Write a random checkpoint of a family; like RoBERTa's, its tokenizer pads with id 1."""
    from transformers import AutoConfig, AutoModel

    tokenizer = word_tokenizer(ends=kind not in ("bloom", "gpt2"))
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **FAMILIES[kind])
    spread(AutoModel.from_config(config)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def one_by_one(folder: Path, texts: list[str], longest: int) -> np.ndarray:
    """The mean of each text's states, by transformers alone."""
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    rows = []
    for text in texts:
        ids = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
        if not ids:
            rows.append(np.zeros(16, dtype=np.float32))
            continue
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        rows.append(states.mean(0).numpy())
    return np.stack(rows)


@pytest.mark.matrix(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_vectors_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", kind)
    longest = load(resolve(str(folder))).max_tokens
    assert longest == {"xlnet": 512, "bloom": 512, "gpt2": 34}.get(kind, 32)
    expected = one_by_one(folder, TEXTS, longest)
    method = built(Pretrained, str(folder), tmp_path, pooling="mean")
    np.testing.assert_allclose(method.encode(TEXTS), expected, rtol=0, atol=5e-5)


def test_a_model_in_which_padding_counts_is_encoded_one_text_at_a_time(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", "fnet")
    method = built(Pretrained, str(folder), tmp_path, pooling="mean")
    assert method.about()["independent"] is False
    expected = one_by_one(folder, TEXTS, 32)
    np.testing.assert_allclose(method.encode(TEXTS), expected, rtol=0, atol=5e-5)


def test_a_text_that_is_cut_at_its_beginning(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model")
    edit_json(folder / "tokenizer_config.json", truncation_side="left")
    method = built(Pretrained, str(folder), tmp_path, pooling="mean")
    expected = one_by_one(folder, TEXTS, 64)
    np.testing.assert_allclose(method.encode(TEXTS), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("kind", "longest"), [("roberta", 32), ("gpt2", 34)])
def test_more_tokens_than_positions_are_refused_before_anything_is_loaded(
    kind: str, longest: int, tmp_path: Path
) -> None:
    from bench.method import Recipe, Value

    folder = checkpoint(tmp_path / "model", kind)
    for asked, works in ((longest, True), (longest + 1, False)):
        values = {"pooling": "mean", "max_length": asked}
        recipe = Recipe({key: Value(value, "test") for key, value in values.items()})
        if works:
            Pretrained.check(recipe, folder)
            continue
        with pytest.raises(BenchError, match=f"max_length={asked}: .* has {longest} positions"):
            Pretrained.check(recipe, folder)


def test_more_tokens_than_a_model_without_positions_was_trained_with(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", "bloom")
    texts = ["man woman " * 400]
    method = built(Pretrained, str(folder), tmp_path, pooling="mean", max_length=2000)
    expected = one_by_one(folder, texts, 2000)
    np.testing.assert_allclose(method.encode(texts), expected, rtol=0, atol=5e-5)


def test_a_sentence_that_is_too_long_loses_its_own_end_and_not_the_templates(
    tmp_path: Path,
) -> None:
    folder = decoder(tmp_path / "llama", "llama")
    method = built(Pretrained, folder, tmp_path, pooling="last", prompt=PROMPTEOL)
    long = "a man plays the guitar " * 40
    (text,) = method._filled([long])
    most = DECODER["max_position_embeddings"]
    assert most - 3 <= len(method.backbone.tokenizer(text)["input_ids"]) <= most
    assert text.startswith('This sentence : "a man plays') and text.endswith('in one word:"')
    assert np.isfinite(method.encode([long])).all()
