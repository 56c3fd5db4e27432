"""Write the parts of a method as a folder that sentence-transformers loads.

``modules.json`` names the modules, each with its settings and tensors; their names are those that
every version of the library since 2 reads.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.export.adapter import write_adapter
from bench.export.encoder_files import save_tensors, takes_no_pooler, write_encoder
from bench.method import Affine, ModuleFile, Portable
from bench.method.json_files import write_json

if TYPE_CHECKING:
    from torch import Tensor


LIBRARY = "sentence_transformers.models."
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


def write_st(parts: Portable, folder: Path, base: str = "") -> list[Path]:
    """Write the folder, and return the source files of bench that it contains.

    ``base``: write only the encoder's adapters, for the model of this name; "" writes all of it.
    """
    if parts.write is not None:
        parts.write(folder)
        return []
    modules = [{"idx": 0, "name": "0", "path": "", "type": _reader(parts, folder, base)}]
    for number, (kind, settings, tensors) in enumerate(_modules(parts), 1):
        path = f"{number}_{kind.rpartition('.')[2]}"
        (folder / path).mkdir()
        write_json(folder / path / "config.json", settings)
        save_tensors(tensors, folder / path / "model.safetensors")
        modules.append({"idx": number, "name": str(number), "path": path, "type": kind})
    for part in parts.module_files:
        shutil.copyfile(part.file, folder / part.file.name)
    (folder / "modules.json").write_text(json.dumps(modules, indent=1) + "\n", encoding="utf-8")
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    )
    return [part.file for part in parts.module_files]


def _reader(parts: Portable, folder: Path, base: str) -> str:
    """Write the module that turns text into states, in the folder itself; return its type."""
    if parts.encoder is not None:
        if base:
            write_adapter(parts, folder, base)
        else:
            write_encoder(parts, folder)
        settings: dict[str, Any] = {"max_seq_length": parts.max_tokens, "do_lower_case": False}
        if "pooler" not in dict(parts.encoder.named_children()) and takes_no_pooler(parts.encoder):
            # else the library makes one up, which nothing uses
            settings["model_args"] = {"add_pooling_layer": False}
        if parts.states != (-1,):
            settings["config_args"] = {"output_hidden_states": True}
        write_json(folder / "sentence_bert_config.json", settings)
    if parts.reader is None:
        return LIBRARY + "Transformer"
    stem = parts.reader.file.stem
    write_json(folder / f"{stem}.json", parts.reader.settings)
    save_tensors(parts.reader.tensors, folder / f"{stem}.safetensors")
    return f"{stem}.{parts.reader.name}"


def _modules(parts: Portable) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Tensor]]]:
    """Yield (type, settings, tensors) of every module after the reader."""
    if parts.states != (-1,):  # their mean, as a weighted mean of all: 1 for each that counts
        import torch

        layers = int(parts.encoder.config.num_hidden_layers)
        weights = torch.zeros(layers + 1)
        for state in parts.states:
            weights[state] += 1
        settings: dict[str, Any] = {
            "word_embedding_dimension": int(parts.encoder.config.hidden_size),
            "layer_start": 0,
            "num_hidden_layers": layers,
        }
        yield LIBRARY + "WeightedLayerPooling", settings, {"layer_weights": weights}
    if parts.pooling is not None:
        settings = {"word_embedding_dimension": int(parts.encoder.config.hidden_size)}
        for name, key in POOLINGS.items():
            settings[key] = name in parts.pooling.split("+")
        settings["pooling_mode_max_tokens"] = False
        yield LIBRARY + "Pooling", settings, {}
    for layer in parts.layers:
        if isinstance(layer, ModuleFile):
            yield f"{layer.file.stem}.{layer.name}", layer.settings, layer.tensors
        else:
            yield LIBRARY + "Dense", *_dense(layer)


def _dense(layer: Affine) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return settings and tensors of a dense layer."""
    out_features, in_features = layer.weight.shape
    activation = "activation.Tanh" if layer.tanh else "linear.Identity"
    settings = {
        "in_features": in_features,
        "out_features": out_features,
        "bias": layer.bias is not None,
        "activation_function": f"torch.nn.modules.{activation}",
    }
    tensors = {"linear.weight": layer.weight}
    if layer.bias is not None:
        tensors["linear.bias"] = layer.bias
    return settings, tensors


def st_vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """Encode with the folder as the library does: (n, dim).

    Module files in the folder are run: check_code has compared them.
    """
    from sentence_transformers import SentenceTransformer

    from bench.backbones import silence_transformers

    silence_transformers()
    model = SentenceTransformer(
        str(folder),
        device="cpu",
        trust_remote_code=any(folder.glob("*.py")),
        local_files_only=True,
    )
    return np.asarray(model.encode(list(sentences), batch_size=4, show_progress_bar=False))
