"""Folders in the form of EmbeddingGemma and Qwen3-Embedding, against plain loops.

They are sentence-transformers folders, tiny and random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_family import gemma, qwen
from models import built, sentences
from st_folders import edit_json

from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(4, seed=3), 'He said "no" , 42 %', "a"]
TASK = "task: sentence similarity | query: "
INSTRUCTION = "Instruct: Retrieve semantically similar text.\nQuery:"


def saved_transformer(made: tuple[Any, Any], folder: Path) -> Path:
    """Save an encoder without its head, with weights that tell tokens apart."""
    tokenizer, model = made
    inner = model.model
    torch.manual_seed(2)
    for parameter in inner.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.1)
    inner.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def embedding_gemma(place: Path) -> Path:
    """Attention both ways, the mean over all tokens, two dense layers, length 1; a prompt is named
    and has to be asked for.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        Normalize,
        Pooling,
        Transformer,
    )

    tokenizer, model = gemma("Gemma3Text")
    model.config.use_bidirectional_attention = True
    inner = saved_transformer((tokenizer, model), place / "inner")
    linear = torch.nn.Identity()
    dense = [Dense(a, b, bias=False, activation_function=linear) for a, b in ((32, 48), (48, 32))]
    modules = [Transformer(str(inner)), Pooling(32, "mean"), *dense, Normalize()]
    prompts: Any = {"prompts": {"STS": TASK}}
    whole = SentenceTransformer(modules=modules, device="cpu", **prompts)
    whole.save(str(place / "whole"), create_model_card=False)
    return place / "whole"


def qwen3_embedding(place: Path) -> Path:
    """The last token, which is <|endoftext|> behind the text; padding on the left; length 1."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Normalize,
        Pooling,
        Transformer,
    )
    from tokenizers.processors import TemplateProcessing

    tokenizer, model = qwen("Qwen3")
    end = [("<|endoftext|>", tokenizer.convert_tokens_to_ids("<|endoftext|>"))]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <|endoftext|>", special_tokens=end
    )
    inner = saved_transformer((tokenizer, model), place / "inner")
    edit_json(inner / "tokenizer_config.json", padding_side="left")
    modules = [Transformer(str(inner)), Pooling(32, "lasttoken"), Normalize()]
    prompts: Any = {"prompts": {"query": INSTRUCTION}}
    whole = SentenceTransformer(modules=modules, device="cpu", **prompts)
    whole.save(str(place / "whole"), create_model_card=False)
    edit_json(place / "whole" / "tokenizer_config.json", padding_side="left")
    return place / "whole"


def states_alone(folder: Path, text: str) -> Any:
    """Return the last states of one text by transformers, (T, H)."""
    from transformers import AutoModel, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(input_ids=ids).last_hidden_state[0]


@pytest.mark.slow
def test_a_folder_like_embedding_gemma(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = embedding_gemma(tmp_path)
    method = built(Pretrained, str(folder), tmp_path, pooling=None, prompt=TASK)
    assert method.backbone.reads_ahead
    layers = [load_file(folder / f"{n}_Dense" / "model.safetensors") for n in (2, 3)]
    rows = []
    for text in TEXTS:
        vector = states_alone(folder, TASK + text).mean(0)
        for tensors in layers:
            vector = tensors["linear.weight"] @ vector
        rows.append(vector / vector.norm())
    np.testing.assert_allclose(method.encode(TEXTS), torch.stack(rows), rtol=0, atol=5e-6)
    assert "STS" not in method.own_prompts


@pytest.mark.slow
def test_a_folder_like_qwen3_embedding(tmp_path: Path) -> None:
    folder = qwen3_embedding(tmp_path)
    method = built(Pretrained, str(folder), tmp_path, pooling=None, prompt=INSTRUCTION)
    assert method.backbone.tokenizer.padding_side == "left"
    rows = []
    for text in TEXTS:
        vector = states_alone(folder, INSTRUCTION + text)[-1]
        rows.append(vector / vector.norm())
    np.testing.assert_allclose(method.encode(TEXTS), torch.stack(rows), rtol=0, atol=5e-6)
    # the same transformer without its folder
    inner = str(tmp_path / "inner")
    plain = built(Pretrained, inner, tmp_path, pooling="last", prompt=INSTRUCTION)
    found = plain.encode(TEXTS)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(found, torch.stack(rows), rtol=0, atol=5e-6)
