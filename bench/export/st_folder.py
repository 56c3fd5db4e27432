"""The parts of a method as a sentence-transformers folder: modules.json and what each module reads.

The names of the modules are those that every version of the library since 2 reads.
"""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.method import write_json

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from bench.method import Affine, ModuleFile, Portable

LIBRARY = "sentence_transformers.models."
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


def write(parts: Portable, folder: Path) -> list[str]:
    """Write the folder; returns the names of the source files that travel in it."""
    if parts.write is not None:
        parts.write(folder)
        return []
    types = [(_reader(parts, folder), "")]
    if parts.states != (-1,):
        types.append(_weighted_layers(parts, folder, len(types)))
    if parts.pooling is not None:
        types.append(_pooling(parts, folder, len(types)))
    for layer in parts.layers:
        types.append(_layer(layer, folder, len(types)))
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (kind, path) in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=1) + "\n", encoding="utf-8")
    config: dict[str, Any] = {
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    write_json(folder / "config_sentence_transformers.json", config)
    return [part.file.name for part in parts.module_files]


def _reader(parts: Portable, folder: Path) -> str:
    if parts.encoder is not None:
        write_encoder(parts, folder)
        settings: dict[str, Any] = {"max_seq_length": parts.max_tokens, "do_lower_case": False}
        if "pooler" not in dict(parts.encoder.named_children()) and takes_no_pooler(parts.encoder):
            settings["model_args"] = {
                "add_pooling_layer": False
            }  # else the library makes one up, which nothing uses
        if parts.states != (-1,):
            settings["config_args"] = {"output_hidden_states": True}
        write_json(folder / "sentence_bert_config.json", settings)
    if parts.reader is None:
        return LIBRARY + "Transformer"
    stem = parts.reader.file.stem
    write_json(folder / f"{stem}.json", parts.reader.settings)
    save_tensors(parts.reader.tensors, folder / f"{stem}.safetensors")
    return _travelling(parts.reader, folder)


def write_encoder(parts: Portable, folder: Path) -> None:
    """Encoder and tokenizer, as save_pretrained writes them: safetensors only."""
    parts.encoder.save_pretrained(folder)
    parts.tokenizer.save_pretrained(folder)


def takes_no_pooler(encoder: Any) -> bool:
    return "add_pooling_layer" in inspect.signature(type(encoder).__init__).parameters


def _weighted_layers(parts: Portable, folder: Path, number: int) -> tuple[str, str]:
    """The mean of some hidden states as a weighted mean of all: 1 for each that counts, else 0."""
    import torch

    layers = int(parts.encoder.config.num_hidden_layers)
    weights = torch.zeros(layers + 1)
    for state in parts.states:
        weights[state] += 1
    settings = {
        "word_embedding_dimension": int(parts.encoder.config.hidden_size),
        "layer_start": 0,
        "num_hidden_layers": layers,
    }
    return LIBRARY + "WeightedLayerPooling", _module(
        folder, f"{number}_WeightedLayerPooling", settings, {"layer_weights": weights}
    )


def _pooling(parts: Portable, folder: Path, number: int) -> tuple[str, str]:
    chosen = {key: name == parts.pooling for name, key in POOLINGS.items()}
    settings = {
        "word_embedding_dimension": int(parts.encoder.config.hidden_size),
        **chosen,
        "pooling_mode_max_tokens": False,
    }
    return LIBRARY + "Pooling", _module(folder, f"{number}_Pooling", settings, {})


def _layer(layer: Affine | ModuleFile, folder: Path, number: int) -> tuple[str, str]:
    from bench.method import ModuleFile

    if isinstance(layer, ModuleFile):
        return _travelling(layer, folder), _module(
            folder, f"{number}_{layer.name}", layer.settings, layer.tensors
        )
    out, into = layer.weight.shape
    activation = (
        "torch.nn.modules.activation.Tanh" if layer.tanh else "torch.nn.modules.linear.Identity"
    )
    settings = {
        "in_features": into,
        "out_features": out,
        "bias": layer.bias is not None,
        "activation_function": activation,
    }
    tensors = {"linear.weight": layer.weight} | (
        {} if layer.bias is None else {"linear.bias": layer.bias}
    )
    return LIBRARY + "Dense", _module(folder, f"{number}_Dense", settings, tensors)


def _module(
    folder: Path, path: str, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> str:
    """Write what a module reads into its own folder; returns the folder's name."""
    (folder / path).mkdir()
    write_json(folder / path / "config.json", settings)
    save_tensors(tensors, folder / path / "model.safetensors")
    return path


def _travelling(part: ModuleFile, folder: Path) -> str:
    shutil.copyfile(part.file, folder / part.file.name)
    return f"{part.file.stem}.{part.name}"


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Float tensors as float32; nothing where there is none."""
    from safetensors.torch import save_file

    if tensors:
        plain = {
            name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()
        }
        save_file(plain, file, metadata={"format": "pt"})


def vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """(n, dim), as the library encodes with the folder."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from bench.backbones import quiet

    quiet()
    model = SentenceTransformer(
        str(folder), device="cpu", trust_remote_code=True, local_files_only=True
    )
    return np.asarray(model.encode(list(sentences), batch_size=4, show_progress_bar=False))
