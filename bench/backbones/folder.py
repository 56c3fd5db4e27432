"""A folder with a model in it: whether it is complete, what names its content, which tensors it holds, what its family can do.

Also: the encoder weights of a run that replace pretrained ones, and pickles converted to safetensors. Nothing here needs torch
until a tensor is read. A family that is not listed is not refused: what it cannot do shows when the method is built.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.backbones.refusals import (
    check_no_adapter,
    check_no_own_code,
    check_pointers,
    read_settings,
)
from bench.base.errors import BenchError, NotAModel
from bench.base.files import build_folder, default_cache, files_sha256

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
VOCABULARIES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
)
SETTINGS = {".json", ".txt", ".model"}  # suffixes of configs and vocabularies
ABOUT = {
    "card.json",
    "trainer_state.json",
    "all_results.json",
    "train_results.json",
    "eval_results.json",
    "README.txt",
}  # files that do not change what a model computes


def card_title(path: Path) -> str:
    """The model's name in the folder's model card (model-index); "" without a card, or with a generated one."""
    card = path / "README.md"
    if not card.is_file():
        return ""
    from huggingface_hub.repocard import metadata_load

    with contextlib.suppress(Exception):  # a card is free text: its metadata may have any form
        title = str((metadata_load(card) or {})["model-index"][0]["name"]).strip()
        generated = title.startswith("SentenceTransformer")
        return title if title.isprintable() and len(title) <= 80 and not generated else ""
    return ""


def readable_model(path: Path, *, allow_pickle: bool, name: str = "") -> Path:
    """The folder, or its safetensors twin if the weights are a pickle and a conversion is allowed or already done.

    Raises NotAModel if it holds no model that can be read.
    """
    folder = transformer_folder(path)
    check_pointers({path, *module_folders(path)})
    check_no_adapter(folder)
    if not has_transformer(path):
        if (
            path / "modules.json"
        ).is_file():  # such as word vectors: sentence-transformers reads them
            return path
        raise NotAModel(
            f"{path} is not a model folder: it has no config.json",
            "give a folder that save_pretrained wrote",
        )
    check_no_own_code(folder, name or str(path))
    if any((folder / file).exists() for file in WEIGHTS):
        return path
    if not any((folder / file).is_file() for file in PICKLES):
        raise NotAModel(f"{path} has no model.safetensors", "save the model with save_pretrained")
    if (twin := convert_pickles(folder, make=allow_pickle)) is None:
        raise NotAModel(
            f"{path} has no model.safetensors: its weights are a pickle, which could run code",
            "--allow-pickle reads only the tensors in it and stores them as safetensors",
        )
    return twin


def has_transformer(path: Path) -> bool:
    """Is there a transformer in a model folder? A sentence-transformers folder may have word vectors or a router instead."""
    folder = transformer_folder(path)
    file = folder / "config.json"
    if not (path / "modules.json").is_file():
        return file.exists()
    return "model_type" in read_settings(file)


def transformer_folder(path: Path) -> Path:
    """The folder of the transformer inside a sentence-transformers folder; the folder itself for any other."""
    return next(iter(module_folders(path)), path)


def module_folders(path: Path) -> list[Path]:
    """The folders of the modules of a sentence-transformers folder, in order; none for any other. Raises NotAModel."""
    file = path / "modules.json"
    if not file.exists():
        return []
    with readable(file):
        modules = [path / module["path"] for module in json.loads(file.read_text("utf-8"))]
        if not modules:
            raise ValueError("it names no module")
    return modules


def routed_folders(path: Path) -> list[Path]:
    """The folders of the modules behind the routers of a sentence-transformers folder; none without a router."""
    found: list[Path] = []
    for folder in module_folders(path):
        types = read_settings(folder / "router_config.json").get("types")
        if isinstance(types, dict):
            found += [folder / str(inner) for inner in types]
    return found


@contextlib.contextmanager
def readable(file: Path, problem: str = "is damaged") -> Iterator[None]:
    """While open, what reading and parsing a file raises becomes a NotAModel that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAModel(f"{file} {problem}: {error}") from None


@cache
def weights_hash(path: Path) -> str:
    """sha256 over weights, configs and tokenizer: the revision of a local folder.

    For a sentence-transformers folder also over what its modules say about pooling, normalisation and length.
    """
    files = [
        file
        for folder in {path, *module_folders(path), *routed_folders(path)}
        if folder.is_dir()
        for file in folder.iterdir()
        if file.is_file()
    ]
    return files_sha256(
        (f for f in files if f.suffix in {*SETTINGS, ".safetensors"} and f.name not in ABOUT), path
    )


def is_whole(folder: Path, weights: Sequence[str] = WEIGHTS) -> bool:
    """Has a model folder its config, all parts of its weights and a vocabulary? An interrupted download has not."""
    with contextlib.suppress(NotAModel):
        if not has_transformer(folder):
            return _has_modules(folder)
        inner = transformer_folder(folder)
        vocabularies = [at / file for at in (inner, folder) for file in VOCABULARIES]
        return any(f.exists() for f in vocabularies) and all(
            f.exists() for f in [inner / "config.json", *weight_files(inner, weights)]
        )
    return False


def _has_modules(folder: Path) -> bool:
    """Are the files of a sentence-transformers folder without a transformer here, as far as its settings name them?"""
    if not (folder / "modules.json").is_file():
        return False
    routed = routed_folders(folder)
    if routed:
        return all(inner.is_dir() and any(inner.iterdir()) for inner in routed)
    return any((module_folders(folder)[0] / file).is_file() for file in WEIGHTS)


def weight_files(folder: Path, weights: Sequence[str] = WEIGHTS) -> list[Path]:
    """The files that hold the weights: a single one, or those that the index names. Raises NotAModel."""
    single, index = (folder / name for name in weights)
    if not index.is_file():
        return [single]
    return [folder / part for part in sorted(set(_weight_map(index).values()))]


def _weight_map(index: Path) -> dict[str, str]:
    """Tensor name -> file, as the index of weights in several files says. Raises NotAModel."""
    with readable(index):
        names = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    return {name: str(part) for name, part in names.items()}


# --- what a safetensors checkpoint holds, read from its header; and the encoder weights of a run that replace pretrained ones ---


def tensor_names(file: Path) -> list[str]:
    """The names in a safetensors file, from its header alone. Raises NotAModel for any other file."""
    with readable(file, "is not a safetensors file"), file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= 1 << 27:
            raise ValueError(f"a header of {length} bytes")
        return [name for name in dict(json.loads(stream.read(length))) if name != "__metadata__"]


def checkpoint_names(folder: Path) -> list[str]:
    """The names of the tensors of a model folder, in one file or several. Raises NotAModel where it is damaged."""
    single, index = (folder / name for name in WEIGHTS)
    return list(_weight_map(index)) if index.exists() else tensor_names(single)


def tensors_of(file: Path, beginning: str) -> dict[str, Any]:
    """The tensors of a safetensors file whose names begin with this, keyed by the rest of the name. Raises NotAModel."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as tensors:
            return {
                name.removeprefix(beginning): tensors.get_tensor(name)
                for name in tensors.keys()  # noqa: SIM118 (it is not a mapping)
                if name.startswith(beginning)
            }
    except (OSError, SafetensorError) as error:
        raise NotAModel(f"{file} cannot be read: {error}") from None


def take_trained(encoder: Any, file: Path) -> None:
    """Load the ``encoder.*`` tensors of a run's checkpoint into an encoder. Raises NotAModel where one is missing."""
    state = tensors_of(file, "encoder.")
    if missing := sorted(dict(encoder.named_parameters()).keys() - state.keys()):
        raise NotAModel(
            f"{file.parent.parent} did not train the whole encoder ({missing[0]} is not in its checkpoint)",
            "a prompt method's run cannot be a backbone; take a run that fine-tuned the whole encoder",
        )
    encoder.load_state_dict(state, strict=False)


# --- weights that were saved as a pickle, converted to safetensors once: ``--allow-pickle`` ---
# A pickle can hold code that runs when it is read. Only its tensors are taken (torch's reader for weights alone, which
# executes nothing), and without --allow-pickle none is opened.


def convert_pickles(folder: Path, *, make: bool) -> Path | None:
    """The safetensors twin of a model folder whose weights are pickles; ``make``: convert them now. None: there is none yet.

    It is named by the content, so that other weights are another folder. Raises NotAModel where the file holds more than
    tensors, or is damaged.
    """
    place = default_cache() / "converted" / _content(folder)[:32]
    config = place / "config.json"
    if make and not config.is_file():
        try:
            build_folder(place, lambda aside: _convert(folder, aside), config.is_file)
        except OSError as error:
            raise NotAModel(
                f"{folder}: the converted weights cannot be written to {place}: {error.strerror or error}",
                "set BENCH_CACHE to a folder with space",
            ) from None
    return place if config.is_file() else None


@cache
def _content(folder: Path) -> str:
    """sha256 over everything that the twin is made from."""
    return files_sha256([*weight_files(folder, PICKLES), *_settings(folder)], folder)


def _settings(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and file.suffix in SETTINGS]


def _convert(folder: Path, to: Path) -> None:
    from safetensors.torch import save_file

    for file in _settings(folder):
        if file.name not in PICKLES:
            shutil.copyfile(file, to / file.name)
    save_file(
        {
            name: tensor.clone().contiguous()
            for file in weight_files(folder, PICKLES)
            for name, tensor in _pickled_tensors(file).items()
        },
        to / WEIGHTS[0],
        metadata={"format": "pt"},
    )


def _pickled_tensors(file: Path) -> dict[str, Any]:
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
        raise NotAModel(
            f"{file} is not read: a pickle can corrupt the memory of torch {torch.__version__} (CVE-2026-24747)",
            "pip install 'torch>=2.10', or ask the model's owner for safetensors",
        )
    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]
        tensors = {
            str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)
        }
    except Exception as error:  # the bytes of a damaged or hostile file can raise anything
        reason = " ".join(str(error).split())[:120]
        raise NotAModel(
            f"{file} is not read: it holds more than tensors, or is damaged ({type(error).__name__}: {reason})",
            "ask the model's owner for safetensors",
        ) from None
    if not tensors:
        raise NotAModel(f"{file} holds no tensors")
    for name, tensor in tensors.items():
        _check_tensor(file, name, tensor)
    return tensors


def _check_tensor(file: Path, name: str, tensor: Any) -> None:
    """Raises NotAModel for a tensor that is not simply its values: sparse, quantised, without values, or larger than its file."""
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        kind = f"{tensor.layout}, {tensor.dtype}, {tensor.device}"
        raise NotAModel(f"{file}: the tensor {name[:80]!r} is not dense ({kind})", DENSE)
    size = tensor.numel() * tensor.element_size()
    if size > file.stat().st_size:
        raise NotAModel(
            f"{file}: the tensor {name[:80]!r} has {size:,} bytes, its file less", DENSE
        )


DENSE = "save the model with save_pretrained"


# --- what is known of each family of encoders, and what a method may check before anything is started ---


@dataclass(frozen=True)
class Family:
    """One of transformers' model types.

    ``prefix``: its layers are BERT's, and take keys and values from outside, as a deep prompt needs. ``placed``: position ids
    alone determine a token's position; without it, the distance of two tokens is counted along the sequence, whatever the ids.
    ``head``: how the names of the tensors of its masked-language-modelling head begin. ``offset``: its first token has position
    padding_idx + 1.
    """

    title: str
    example: str
    prefix: bool = False
    placed: bool = True
    head: tuple[str, ...] = ()
    offset: bool = False
    note: str = ""


FAMILIES: Mapping[str, Family] = {
    "bert": Family("BERT", "bert-base-uncased", prefix=True, head=("cls.predictions.transform.",)),
    "roberta": Family(
        "RoBERTa", "roberta-large", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "xlm-roberta": Family(
        "XLM-R", "FacebookAI/xlm-roberta-base", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "camembert": Family(
        "CamemBERT", "almanach/camembert-base", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "electra": Family(
        "ELECTRA",
        "google/electra-base-discriminator",
        prefix=True,
        head=("generator_predictions.dense.",),
        note="the discriminator has no MLM head; the generator has one",
    ),
    "distilbert": Family(
        "DistilBERT", "distilbert/distilbert-base-uncased", head=("vocab_transform.",)
    ),
    "mpnet": Family(
        "MPNet", "microsoft/mpnet-base", placed=False, head=("lm_head.dense.",), offset=True
    ),
    "deberta-v2": Family(
        "DeBERTa-v3",
        "microsoft/deberta-v3-base",
        placed=False,
        head=("cls.predictions.transform.",),
        note="version 3 was trained as a discriminator: it has no MLM head",
    ),
    "modernbert": Family(
        "ModernBERT",
        "answerdotai/ModernBERT-base",
        head=("decoder.",),
        note="its own dropout is 0; every second or third layer sees 64 tokens to each side only",
    ),
}
BUFFERS = ("position_ids", "token_type_ids", "inv_freq")
"""The last part of the names of tensors that older versions of transformers stored and every version computes."""
BASES = {"bert", "roberta", "electra", "distilbert", "mpnet", "deberta", "model", "encoder_model"}
ALIASES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
}


def without_base(tensor: str) -> str:
    """The name inside the model: "bert.pooler.dense.weight" -> "pooler.dense.weight"."""
    first, _, rest = tensor.partition(".")
    return rest if first in BASES and rest else tensor


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a model folder, with BERT's names for DistilBERT's sizes. Raises NotAModel where it is damaged."""
    file = folder / "config.json"
    with readable(file):
        config = dict(json.loads(file.read_text(encoding="utf-8")))
    return {alias: config[key] for key, alias in ALIASES.items() if key in config} | config


def read_transformer_config(path: Path) -> dict[str, Any]:
    """The config of the transformer in a model folder; empty without one. Raises NotAModel if it is damaged."""
    if not has_transformer(path):
        return {}
    return read_config(transformer_folder(path))


def family_of(folder: Path | None) -> Family | None:
    """The family of the model in a folder; None where it is not listed, or not here yet."""
    return (
        None
        if folder is None or not (folder / "config.json").is_file()
        else FAMILIES.get(str(read_config(folder).get("model_type", "")))
    )


def title(model_type: str) -> str:
    return FAMILIES[model_type].title if model_type in FAMILIES else model_type


def check_prefix(folder: Path | None) -> None:
    """Raises BenchError where the layers of this backbone take no keys and values from outside. None: it is not here yet."""
    check_layers(folder, "a deep prompt", "take no keys and values from outside")


def check_layers(
    folder: Path | None,
    what: str,
    why: str = "are not attention, intermediate and output as BERT's are",
) -> None:
    """Raises BenchError where ``what`` cannot go through the layers one by one because they are not BERT's. None: it is not here yet."""
    if (family := family_of(folder)) is not None and not family.prefix:
        able = ", ".join(known.title for known in FAMILIES.values() if known.prefix)
        raise BenchError(
            f"{what} does not work on {family.title}: its layers {why}",
            f"take a backbone of one of these families: {able}",
        )


def check_placed(folder: Path | None, what: str, hint: str) -> None:
    """Raises BenchError where position ids do not determine a token's position, which ``what`` needs. None: it is not here yet."""
    if (family := family_of(folder)) is not None and not family.placed:
        raise BenchError(
            f"{what} does not work on {family.title}, which counts the distance of two tokens along the sequence, "
            "whatever their position ids",
            hint,
        )


def check_mlm_head(path: Path | None) -> None:
    """Raises NotAModel where the checkpoint in a folder has no masked-language-modelling head. None: it is not here yet."""
    if path is None:
        return
    folder = transformer_folder(path)
    family = family_of(folder)
    known = {prefix for one in FAMILIES.values() for prefix in one.head}
    wanted = family.head if family else (*known, "cls.predictions.", "lm_head.")
    if not any(name.startswith(wanted) for name in checkpoint_names(folder)):
        why = f" ({family.note})" if family and "MLM head" in family.note else ""
        raise NotAModel(
            f"{folder} has no MLM head, which this method needs{why}",
            "take a backbone as it was pretrained, with its MLM head, or builtin",
        )


def shape(config: Mapping[str, Any]) -> tuple[str, int] | None:
    """("bert" or "roberta", whichever the family takes after; hidden size), where a config says both."""
    family, hidden = FAMILIES.get(str(config.get("model_type"))), config.get("hidden_size")
    return (
        None
        if family is None or not isinstance(hidden, int)
        else ("roberta" if family.offset else "bert", hidden)
    )
