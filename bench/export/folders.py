"""The parts of a method as a folder that sentence-transformers or transformers loads.

For sentence-transformers: ``modules.json`` and what each module reads; the names of the modules are those that every version of the
library since 2 reads. For transformers: a plain checkpoint, if the vector is taken from an encoder's states. A head of one dense
layer with tanh on the first token goes where BERT and RoBERTa have their pooling layer, as the SimCSE authors publish it: the vector
is then ``pooler_output``. ``bench.json`` in the folder says how the vector is taken.
"""

from __future__ import annotations

import copy
import inspect
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.base.errors import BenchError
from bench.method import Affine, ModuleFile, Portable, read_json, write_json

if TYPE_CHECKING:
    from torch import Tensor


LIBRARY = "sentence_transformers.models."
POOLINGS = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


def write_st(parts: Portable, folder: Path) -> list[Path]:
    """Write the folder; returns the source files of bench that travel in it."""
    if parts.write is not None:
        parts.write(folder)
        return []
    modules = [{"idx": 0, "name": "0", "path": "", "type": _reader(parts, folder)}]
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


def _reader(parts: Portable, folder: Path) -> str:
    """Write what turns text into states, in the folder itself; returns its type."""
    if parts.encoder is not None:
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


def write_encoder(parts: Portable, folder: Path) -> None:
    """Encoder and tokenizer, as save_pretrained writes them: safetensors only."""
    parts.encoder.save_pretrained(folder)
    padding_tokenizer(parts.tokenizer).save_pretrained(folder)


def padding_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer; if it has no padding token, as many decoders', a copy that pads with another special token of its own.

    Without one no library encodes two texts together. What stands at padding is not attended to, so that no vector changes.
    """
    if tokenizer.pad_token is not None:
        return tokenizer
    padded = copy.deepcopy(tokenizer)
    for name in ("eos_token", "unk_token", "bos_token"):
        if getattr(padded, name) is not None:
            padded.pad_token = getattr(padded, name)
            return padded
    padded.pad_token = padded.convert_ids_to_tokens(0)
    return padded


def takes_no_pooler(encoder: Any) -> bool:
    return "add_pooling_layer" in inspect.signature(type(encoder).__init__).parameters


def _modules(parts: Portable) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Tensor]]]:
    """(type, settings, tensors) of everything behind the reader."""
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
        settings = {
            "word_embedding_dimension": int(parts.encoder.config.hidden_size),
            **{key: name == parts.pooling for name, key in POOLINGS.items()},
            "pooling_mode_max_tokens": False,
        }
        yield LIBRARY + "Pooling", settings, {}
    for layer in parts.layers:
        if isinstance(layer, ModuleFile):
            yield f"{layer.file.stem}.{layer.name}", layer.settings, layer.tensors
        else:
            yield LIBRARY + "Dense", *_dense(layer)


def _dense(layer: Affine) -> tuple[dict[str, Any], dict[str, Tensor]]:
    out, into = layer.weight.shape
    settings = {
        "in_features": into,
        "out_features": out,
        "bias": layer.bias is not None,
        "activation_function": "torch.nn.modules."
        + ("activation.Tanh" if layer.tanh else "linear.Identity"),
    }
    tensors = {"linear.weight": layer.weight, "linear.bias": layer.bias}
    return settings, {key: tensor for key, tensor in tensors.items() if tensor is not None}


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Float tensors as float32; nothing where there is none."""
    from safetensors.torch import save_file

    if tensors:
        save_file(
            {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()},
            file,
            metadata={"format": "pt"},
        )


def st_vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """(n, dim), as the library encodes with the folder. Module files in it are run: check_code has compared them."""
    from sentence_transformers import SentenceTransformer

    from bench.backbones import quiet

    quiet()
    model = SentenceTransformer(
        str(folder),
        device="cpu",
        trust_remote_code=any(folder.glob("*.py")),
        local_files_only=True,
    )
    return np.asarray(model.encode(list(sentences), batch_size=4, show_progress_bar=False))


# --- a plain transformers checkpoint ---


ABOUT = "bench.json"

EXAMPLE = """import torch
from transformers import AutoModel, AutoTokenizer

folder = {folder}
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModel.from_pretrained(folder{options}).eval()
sentences = {sentences}
features = tokenizer(sentences, padding=True, truncation=True, max_length={max_tokens}, return_tensors="pt")
with torch.no_grad():
    output = model(**features, output_hidden_states=True)
{vector}
print(vectors.shape)
"""
EXAMPLE_SENTENCES = ("A man is playing a guitar.", "Two dogs run.")
FIRST = "vectors = {states}[:, 0]"
MEAN = 'mask = features["attention_mask"].unsqueeze(-1)\nvectors = ({states} * mask).sum(1) / mask.sum(1).clamp(min=1)'


def write_transformers(parts: Portable, folder: Path, name: str) -> None:
    """Write the folder. Raises BenchError where an encoder's states alone do not give the method's vectors."""
    has_head = bool(parts.layers)
    if parts.write is not None or parts.module_files or (has_head and not fits_pooler(parts)):
        raise BenchError(
            f"{name}: a plain transformers checkpoint can hold only an encoder, whose pooling layer may be one dense layer with "
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
    """Is the head what BERT and RoBERTa have as their pooling layer?"""
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
    """The encoder with the head in its pooling layer."""
    layer: Any = parts.layers[0]
    encoder = type(parts.encoder)(parts.encoder.config, add_pooling_layer=True).eval()
    encoder.load_state_dict(parts.encoder.state_dict(), strict=False)
    encoder.pooler.dense.weight.data.copy_(layer.weight.detach())
    encoder.pooler.dense.bias.data.copy_(layer.bias.detach())
    return encoder


def vector_code(about: dict[str, Any]) -> str:
    """The lines that take ``vectors`` from ``output`` and ``features``."""
    if about["pooling"] == "pooler":
        return "vectors = output.pooler_output"
    several = " + ".join(f"output.hidden_states[{number}]" for number in about["states"])
    last_only = list(about["states"]) == [-1]
    states = "output.last_hidden_state" if last_only else f"(({several}) / {len(about['states'])})"
    return (FIRST if about["pooling"] == "cls" else MEAN).format(states=states)


def transformers_example(
    folder: Path, place: str, sentences: Sequence[str] = EXAMPLE_SENTENCES
) -> str:
    """A script that loads the folder from ``place`` and prints the shape of the sentences' vectors."""
    about = read_json(folder / ABOUT)
    return EXAMPLE.format(
        folder=json.dumps(place, ensure_ascii=False),
        options="" if about["add_pooling_layer"] else ", add_pooling_layer=False",
        sentences=json.dumps(list(sentences), ensure_ascii=False),
        max_tokens=about["max_tokens"],
        vector=vector_code(about),
    )


def transformers_vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """(n, dim): computed by running the lines of the README."""
    code = transformers_example(folder, str(folder), sentences).removesuffix(
        "print(vectors.shape)\n"
    )
    names: dict[str, Any] = {}
    exec(compile(code, "README example", "exec"), names)
    return np.asarray(names["vectors"])
