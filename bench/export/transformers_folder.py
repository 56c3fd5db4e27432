"""The parts of a method as a plain transformers checkpoint, for methods whose vector is taken from an encoder's states.

A head of one dense layer with tanh on the first token goes where BERT and RoBERTa have their pooling layer, as the SimCSE
authors publish it: the vector is then ``pooler_output``. ``bench.json`` in the folder says how the vector is taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.export.st_folder import takes_no_pooler, write_encoder
from bench.method import read_json, write_json

if TYPE_CHECKING:
    import numpy as np

    from bench.method import Portable

ABOUT = "bench.json"
INSTEAD = "--format sentence-transformers"

EXAMPLE = """import torch
from transformers import AutoModel, AutoTokenizer

folder = {folder}
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder{options}).eval()
sentences = ["A man is playing a guitar.", "Two dogs run."]
features = tokenizer(sentences, padding=True, truncation=True, max_length={max_tokens}, return_tensors="pt")
with torch.no_grad():
    output = model(**features, output_hidden_states=True)
{vector}
print(vectors.shape)
"""
FIRST = "vectors = {states}[:, 0]"
MEAN = 'mask = features["attention_mask"].unsqueeze(-1)\nvectors = ({states} * mask).sum(1) / mask.sum(1)'


def write(parts: Portable, folder: Path, name: str) -> None:
    """Write the folder. Raises BenchError with the reason where an encoder's states alone do not give the method's vectors."""
    if parts.write is not None:
        raise BenchError(
            f"{name}: the run is a sentence-transformers folder, whose own modules make the vector",
            INSTEAD,
        )
    if parts.module_files:
        files = ", ".join(part.file.name for part in parts.module_files)
        raise BenchError(
            f"{name}: a plain transformers checkpoint has no place for what {files} does", INSTEAD
        )
    has_head = bool(parts.layers)
    if has_head:
        parts = replace(parts, encoder=with_head(parts, name))
    write_encoder(parts, folder)
    about = {
        "pooling": "pooler" if has_head else parts.pooling,
        "states": parts.states,
        "max_tokens": parts.max_tokens,
        "add_pooling_layer": has_head or not takes_no_pooler(parts.encoder),
    }
    write_json(folder / ABOUT, about)


def with_head(parts: Portable, name: str) -> Any:
    """The encoder with the head in its pooling layer. Raises BenchError where it does not fit there."""
    layer: Any = parts.layers[0]
    if len(parts.layers) > 1 or parts.pooling != "cls" or not layer.tanh or layer.bias is None:
        raise BenchError(
            f"{name}: a plain transformers checkpoint has no place for the layers behind its pooling",
            INSTEAD,
        )
    cls = type(parts.encoder)
    if not takes_no_pooler(parts.encoder):
        raise BenchError(
            f"{name}: {cls.__name__} has no pooling layer, in which the head could stand", INSTEAD
        )
    encoder = cls(parts.encoder.config, add_pooling_layer=True).eval()
    encoder.load_state_dict(parts.encoder.state_dict(), strict=False)
    dense = encoder.pooler.dense
    if dense.weight.shape != layer.weight.shape:
        raise BenchError(
            f"{name}: its head does not fit the pooling layer of {cls.__name__}", INSTEAD
        )
    dense.weight.data.copy_(layer.weight.detach())
    dense.bias.data.copy_(layer.bias.detach())
    return encoder


def vector_code(about: dict[str, Any]) -> str:
    """The lines that take ``vectors`` from ``output`` and ``features``."""
    if about["pooling"] == "pooler":
        return "vectors = output.pooler_output"
    numbers = list(about["states"])
    if numbers == [-1]:
        states = "output.last_hidden_state"
    else:
        states = (
            "(("
            + " + ".join(f"output.hidden_states[{number}]" for number in numbers)
            + f") / {len(numbers)})"
        )
    return (FIRST if about["pooling"] == "cls" else MEAN).format(states=states)


def example(folder: Path, place: str) -> str:
    """A script that loads the folder from ``place`` and prints the shape of two vectors."""
    about = read_json(folder / ABOUT)
    options = "" if about["add_pooling_layer"] else ", add_pooling_layer=False"
    return EXAMPLE.format(
        folder=json.dumps(place, ensure_ascii=False),
        options=options,
        max_tokens=about["max_tokens"],
        vector=vector_code(about),
    )


def vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """(n, dim): by the very lines of the README, which are run here."""
    import numpy as np

    code = example(folder, str(folder)).replace("print(vectors.shape)", "")
    given, asked = code.split("sentences = ", 1)
    code = given + "sentences = __sentences\n" + asked.split("\n", 1)[1]
    found = []
    for start in range(0, len(sentences), 4):
        names: dict[str, Any] = {"__sentences": list(sentences[start : start + 4])}
        exec(compile(code, "README example", "exec"), names)
        found.append(names["vectors"].numpy())
    return np.concatenate(found)
