"""Decoders as encoders: tiny random Llama and Qwen against plain loops, one sentence at a time and
nothing padded.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from models import built, sentences
from tiny_decoders import PROMPTEOL, SIZES, decoder

from bench.method.prompts import prompted
from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(9, seed=9), "guitar " * 20, "A Man , 42 % ; naïve", "a"]


@pytest.fixture(scope="module", params=["llama", "qwen"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return decoder(tmp_path_factory.mktemp("decoders") / request.param, request.param)


def by_loop(folder: str, texts: list[str], pooling: str) -> np.ndarray:
    """Each text alone through transformers' own causal model: its last hidden states, the last of
    them or their mean.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer, rows = AutoTokenizer.from_pretrained(folder), []
    with torch.inference_mode():
        for text in texts:
            given = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            states = model(**given, output_hidden_states=True).hidden_states[-1][0]
            rows.append(states[-1] if pooling == "last" else states.mean(0))
    return torch.stack(rows).numpy()


@pytest.mark.matrix(every=5)
@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("prompt", [None, "query: ", PROMPTEOL])
def test_the_vectors_are_those_of_a_plain_loop(folder, pooling, prompt, tmp_path):
    values = {"pooling": pooling} | ({"prompt": prompt} if prompt else {})
    method = built(Pretrained, folder, tmp_path, **values)
    got = method.encode(TEXTS)
    np.testing.assert_allclose(got, by_loop(folder, prompted(prompt, TEXTS), pooling), atol=2e-5)
    assert np.abs(got[0] - got[1]).max() > 0.01, "or nothing was compared"
    np.testing.assert_allclose(method.encode(TEXTS[:1]), got[:1], atol=2e-5)


def test_a_sentence_that_is_too_long_loses_its_own_end_and_not_the_templates(folder, tmp_path):
    method = built(Pretrained, folder, tmp_path, pooling="last", prompt=PROMPTEOL)
    long = "a man plays the guitar " * 40
    (text,) = method._filled([long])
    most = SIZES["max_position_embeddings"]
    assert most - 3 <= len(method.backbone.tokenizer(text)["input_ids"]) <= most
    assert text.startswith('This sentence : "a man plays') and text.endswith('in one word:"')
    assert np.isfinite(method.encode([long])).all()
