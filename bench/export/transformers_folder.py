"""Write the parts of a method as a plain checkpoint that transformers loads.

A head of one dense layer with tanh on the first token goes into the pooling layer of BERT and
RoBERTa, as the SimCSE authors publish it: the vector is then ``pooler_output``. ``bench.json`` in
the folder says how to compute the vector.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.backbones.loading import encoder_class
from bench.base.errors import BenchError
from bench.export.encoder_files import takes_no_pooler, write_encoder
from bench.method import Portable, read_json, write_json

ABOUT = "bench.json"

EXAMPLE = """import torch
from transformers import {loader}, AutoTokenizer

folder = {folder}
tokenizer = AutoTokenizer.from_pretrained(folder)
model = {loader}.from_pretrained(folder{options}).eval()
sentences = {sentences}
features = tokenizer(
    sentences, padding=True, truncation=True, max_length={max_tokens}, return_tensors="pt"
)
with torch.no_grad():
    output = model(**features, output_hidden_states=True)
{vector}
print(vectors.shape)
"""
EXAMPLE_SENTENCES = ("A man is playing a guitar.", "Two dogs run.")
FIRST = "vectors = {states}[:, 0]"
MEAN = """mask = features["attention_mask"].unsqueeze(-1)
vectors = ({states} * mask).sum(1) / mask.sum(1).clamp(min=1)"""


def write_transformers(parts: Portable, folder: Path, name: str) -> None:
    """Write the folder. Raises BenchError if an encoder's states alone do not give the vectors."""
    has_head = bool(parts.layers)
    if parts.write is not None or parts.module_files or (has_head and not fits_pooler(parts)):
        raise BenchError(
            f"{name}: a plain transformers checkpoint can hold only an encoder, whose pooling "
            "layer may be one dense layer with "
            "tanh on the first token",
            "--format sentence-transformers",
        )
    if has_head:
        parts = replace(parts, encoder=with_head(parts))
    write_encoder(parts, folder)
    write_json(
        folder / ABOUT,
        {
            "pooling": "pooler" if has_head else parts.pooling,
            "states": parts.states,
            "max_tokens": parts.max_tokens,
            "add_pooling_layer": has_head or not takes_no_pooler(parts.encoder),
        },
    )


def fits_pooler(parts: Portable) -> bool:
    """Tell whether the head fits the pooling layer of BERT and RoBERTa."""
    layer: Any = parts.layers[0]
    size = parts.encoder.config.hidden_size
    return (
        len(parts.layers) == 1
        and layer.tanh
        and layer.bias is not None
        and tuple(layer.weight.shape) == (size, size)
        and parts.pooling == "cls"
        and takes_no_pooler(parts.encoder)
    )


def with_head(parts: Portable) -> Any:
    """Return the encoder with the head in its pooling layer."""
    layer: Any = parts.layers[0]
    encoder = type(parts.encoder)(parts.encoder.config, add_pooling_layer=True).eval()
    encoder.load_state_dict(parts.encoder.state_dict(), strict=False)
    encoder.pooler.dense.weight.data.copy_(layer.weight.detach())
    encoder.pooler.dense.bias.data.copy_(layer.bias.detach())
    return encoder


def vector_code(settings: dict[str, Any]) -> str:
    """Return the lines that take ``vectors`` from ``output`` and ``features``."""
    if settings["pooling"] == "pooler":
        return "vectors = output.pooler_output"
    if list(settings["states"]) == [-1]:
        states = "output.last_hidden_state"
    else:
        total = " + ".join(f"output.hidden_states[{number}]" for number in settings["states"])
        states = f"(({total}) / {len(settings['states'])})"
    template = FIRST if settings["pooling"] == "cls" else MEAN
    return template.format(states=states)


def transformers_example(
    folder: Path, place: str, sentences: Sequence[str] = EXAMPLE_SENTENCES
) -> str:
    """Return a script that loads the folder from ``place`` and prints the shape of the vectors."""
    settings = read_json(folder / ABOUT)
    config = SimpleNamespace(**read_json(folder / "config.json"))
    return EXAMPLE.format(
        loader=encoder_class(config).__name__,
        folder=json.dumps(place, ensure_ascii=False),
        options="" if settings["add_pooling_layer"] else ", add_pooling_layer=False",
        sentences=json.dumps(list(sentences), ensure_ascii=False),
        max_tokens=settings["max_tokens"],
        vector=vector_code(settings),
    )


def transformers_vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """Encode by running the lines of the README: (n, dim)."""
    code = transformers_example(folder, str(folder), sentences).removesuffix(
        "print(vectors.shape)\n"
    )
    names: dict[str, Any] = {}
    exec(compile(code, "README example", "exec"), names)
    return np.asarray(names["vectors"])
