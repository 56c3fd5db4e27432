"""What a safetensors checkpoint holds, read from its header; and the encoder weights of a run put in the place of pretrained ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from bench.backbones.folder import PICKLES, WEIGHTS
from bench.base.cache import default_cache, locked
from bench.base.errors import NotAModel


def tensor_names(file: Path) -> list[str]:
    """The names in a safetensors file, from its header alone. Raises NotAModel where it is none."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= 1 << 27:
                raise ValueError(f"a header of {length} bytes")
            return [name for name in json.loads(stream.read(length)) if name != "__metadata__"]
    except (OSError, ValueError) as error:
        raise NotAModel(f"{file} is no safetensors file: {error}") from None


def checkpoint_names(folder: Path) -> list[str]:
    """The names of the tensors of a model folder, in one file or several. Raises NotAModel where it is damaged."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return tensor_names(folder / "model.safetensors")
    try:
        return list(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{index} is damaged: {error}") from None


def pooling_layer(folder: Path, trained: Path | None = None) -> tuple[Any, Any] | None:
    """Weight (H, H) and bias (H) of the dense layer with a tanh that a checkpoint keeps for its first token: the pooling layer of a
    model folder (in a published SimCSE model, its trained head), or the head in the checkpoint ``trained`` of a run. None: it keeps none.
    """
    from safetensors import safe_open

    name = "head.dense.weight" if trained else "pooler.dense.weight"
    for file in [trained] if trained else sorted(folder.glob("model*.safetensors")):
        with safe_open(file, "pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118 (it is no mapping)
                if f".{key}".endswith(f".{name}"):
                    return tensors.get_tensor(key).float(), tensors.get_tensor(key.removesuffix("weight") + "bias").float()
    return None


def take_trained(encoder: Any, file: Path) -> None:
    """The ``encoder.*`` tensors of a run's checkpoint into an encoder. Raises NotAModel where one is lacking."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = {name.removeprefix("encoder."): t for name, t in load_file(file).items() if name.startswith("encoder.")}
    except (OSError, SafetensorError) as error:
        raise NotAModel(f"{file} cannot be read: {error}") from None
    lacking = sorted(dict(encoder.named_parameters()).keys() - state.keys())
    if lacking:
        raise NotAModel(
            f"{file.parent.parent} did not train the whole encoder ({lacking[0]} is not in its checkpoint)",
            "a prompt method's run is no backbone; take one that fine-tuned all of it",
        )
    encoder.load_state_dict(state, strict=False)


# --- weights that were saved as a pickle, made into safetensors once: ``--allow-pickle`` ---
# A pickle can hold code that runs when it is read. Only its tensors are taken (torch's reader for weights alone, which
# executes nothing); whoever did not ask for that never opens one.

KEPT = {".json", ".txt", ".model"}  # what a converted folder takes over beside the weights


def converted(folder: Path, *, make: bool) -> Path | None:
    """The safetensors twin of a model folder whose weights are pickles; ``make``: convert them now. None: there is none yet.

    It is named by the content, so that other weights are another folder. Raises NotAModel where the file holds more than
    tensors, or is damaged.
    """
    place = default_cache() / "converted" / _content(folder)[:32]
    if (place / "config.json").is_file():
        return place
    if not make:
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.with_name(place.name + ".lock")):
        if not (place / "config.json").is_file():
            aside = place.with_name(f"{place.name}.{os.getpid()}.part")
            shutil.rmtree(aside, ignore_errors=True)
            try:
                aside.mkdir()
                _convert(folder, aside)
                shutil.rmtree(place, ignore_errors=True)
                aside.rename(place)
            except OSError as error:
                raise NotAModel(f"{folder}: the converted weights cannot be written to {place}: {error.strerror or error}",
                                "set BENCH_CACHE to a folder with space") from None  # fmt: skip
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    return place


@cache
def _content(folder: Path) -> str:
    """sha256 over everything that the twin is made from."""
    digest = hashlib.sha256()
    for file in sorted(f for f in folder.iterdir() if f.is_file() and (f.suffix in KEPT or f.name in _files(folder))):
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _files(folder: Path) -> dict[str, str]:
    """The pickles of a model -> the names of their twins."""
    single, index = (folder / name for name in PICKLES)
    if not index.is_file():
        return {single.name: WEIGHTS[0]}
    try:
        parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise NotAModel(f"{index} is damaged: {error}") from None
    return {part: _twin(part) for part in parts}


def _twin(part: str) -> str:
    return Path(part).with_suffix(".safetensors").name.replace("pytorch_model", "model")


def _convert(folder: Path, to: Path) -> None:
    from safetensors.torch import save_file

    for file in folder.iterdir():
        if file.is_file() and file.suffix in KEPT and file.name not in PICKLES:
            shutil.copyfile(file, to / file.name)
    names = _files(folder)
    for part, twin in names.items():
        tensors = _tensors(folder / part)
        save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, to / twin, metadata={"format": "pt"})
    if PICKLES[0] not in names:
        index = json.loads((folder / PICKLES[1]).read_text(encoding="utf-8"))
        index["weight_map"] = {name: _twin(part) for name, part in index["weight_map"].items()}
        (to / WEIGHTS[1]).write_text(json.dumps({"metadata": {}} | index), encoding="utf-8")


def _tensors(file: Path) -> dict[str, Any]:
    import torch

    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]
        tensors = {str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)}
    except Exception as error:  # whatever the bytes of a damaged or hostile file lead to
        reason = " ".join(str(error).split())[:120]
        raise NotAModel(f"{file} is not read: it holds more than tensors, or is damaged ({type(error).__name__}: {reason})",
                        "ask its owner for safetensors") from None  # fmt: skip
    if not tensors:
        raise NotAModel(f"{file} holds no tensors")
    return tensors
