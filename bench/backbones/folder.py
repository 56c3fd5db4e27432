"""A folder with a model in it: whether it is one, whether it is all there, what names its content, which tensors it holds.

Also: the encoder weights of a run put in the place of pretrained ones, and pickles made into safetensors.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bench.base.errors import NotAModel
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
GENERATED = "SentenceTransformer"
"""How a model card begins the name of a model that nobody named."""
LONGEST_TITLE = 80  # characters
DETERMINES = {
    ".json",
    ".txt",
    ".model",
    ".safetensors",
}  # files of a model folder that decide what it computes ...
ABOUT = {
    "card.json",
    "trainer_state.json",
    "all_results.json",
    "train_results.json",
    "eval_results.json",
    "README.txt",
}  # ... and not


def card_title(path: Path) -> str:
    """What the model card of a folder calls the model (model-index); "" where it has no card, or one that was only generated."""
    card = path / "README.md"
    if not card.is_file():
        return ""
    from huggingface_hub.repocard import metadata_load

    with contextlib.suppress(
        Exception
    ):  # no or damaged metadata, another form: a card is free text
        title = str((metadata_load(card) or {})["model-index"][0]["name"]).strip()
        if title.isprintable() and len(title) <= LONGEST_TITLE and not title.startswith(GENERATED):
            return title
    return ""


def has_pickle(folder: Path) -> bool:
    return any((folder / name).is_file() for name in PICKLES)


def check_folder(path: Path) -> None:
    folder = transformer_folder(path)
    if not (folder / "config.json").exists():
        raise NotAModel(
            f"{path} is no model folder: it has no config.json",
            "give a folder that save_pretrained wrote",
        )
    if not any((folder / name).exists() for name in WEIGHTS):
        if has_pickle(folder):
            raise NotAModel(
                f"{path} has no model.safetensors: its weights are a pickle, which could run code",
                "--allow-pickle reads its tensors, and nothing else of it, and keeps them as safetensors",
            )
        raise NotAModel(f"{path} has no model.safetensors", "save the model with save_pretrained")


def transformer_folder(path: Path) -> Path:
    """The folder of the transformer inside a sentence-transformers folder; the folder itself for any other."""
    return next(iter(_modules(path)), path)


def _modules(path: Path) -> list[Path]:
    """The folders of the modules of a sentence-transformers folder, in order; none for any other. Raises NotAModel."""
    file = path / "modules.json"
    if not file.exists():
        return []
    with readable(file):
        modules = [path / module["path"] for module in json.loads(file.read_text("utf-8"))]
        if not modules:
            raise ValueError("it names no module")
    return modules


@contextlib.contextmanager
def readable(file: Path, problem: str = "is damaged") -> Iterator[None]:
    """While open, what reading and parsing a file raises becomes a NotAModel that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAModel(f"{file} {problem}: {error}") from None


@cache
def weights_hash(path: Path) -> str:
    """sha256 over weights, configs and tokenizer: what names the revision of a local folder.

    Of a sentence-transformers folder also what its modules say about pooling, normalisation and length.
    """
    files = [
        file
        for folder in {path, *_modules(path)}
        if folder.is_dir()
        for file in folder.iterdir()
        if file.is_file()
    ]
    return files_sha256(
        (file for file in files if file.suffix in DETERMINES and file.name not in ABOUT), path
    )


def is_whole(folder: Path, weights: Sequence[str] = WEIGHTS) -> bool:
    """Whether a model folder has its config, all parts of its weights and a vocabulary: a cut download has not."""
    inner = folder
    with contextlib.suppress(NotAModel):
        inner = transformer_folder(folder)
    if not (inner / "config.json").exists() or not any(
        (at / file).exists() for at in (inner, folder) for file in VOCABULARIES
    ):
        return False
    single, index = (inner / file for file in weights)
    if index.exists():
        with contextlib.suppress(NotAModel):
            return all((inner / part).exists() for part in set(_weight_map(index).values()))
    return single.exists()


def _weight_map(index: Path) -> dict[str, str]:
    """The name of every tensor -> the file that holds it, as the index of weights in several files says. Raises NotAModel."""
    with readable(index):
        names = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    return {name: str(part) for name, part in names.items()}


# --- what a safetensors checkpoint holds, read from its header; and the encoder weights of a run in the place of pretrained ones ---


def tensor_names(file: Path) -> list[str]:
    """The names in a safetensors file, from its header alone. Raises NotAModel where it is none."""
    with readable(file, "is no safetensors file"), file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= 1 << 27:
            raise ValueError(f"a header of {length} bytes")
        header = dict(json.loads(stream.read(length)))
    return [name for name in header if name != "__metadata__"]


def checkpoint_names(folder: Path) -> list[str]:
    """The names of the tensors of a model folder, in one file or several. Raises NotAModel where it is damaged."""
    single, index = (folder / name for name in WEIGHTS)
    return list(_weight_map(index)) if index.exists() else tensor_names(single)


def _tensors_of(file: Path, beginning: str) -> dict[str, Any]:
    """The tensors of a safetensors file whose names begin so, by the rest of the name. Raises NotAModel."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as tensors:
            return {
                name.removeprefix(beginning): tensors.get_tensor(name)
                for name in tensors.keys()  # noqa: SIM118 (it is no mapping)
                if name.startswith(beginning)
            }
    except (OSError, SafetensorError) as error:
        raise NotAModel(f"{file} cannot be read: {error}") from None


def pooling_layer(folder: Path, trained: Path | None = None) -> tuple[Any, Any] | None:
    """Weight (H, H) and bias (H) of the dense layer with a tanh that a checkpoint keeps for its first token: the pooling layer of a
    model folder (in a published SimCSE model, its trained head), or the head in the checkpoint ``trained`` of a run. None: it keeps none.
    """
    layer = "head.dense." if trained else "pooler.dense."
    for file in [trained] if trained else sorted(folder.glob("model*.safetensors")):
        for name in tensor_names(file):
            if f".{name}".endswith(f".{layer}weight"):
                tensors = _tensors_of(file, name.removesuffix("weight"))
                return tensors["weight"].float(), tensors["bias"].float()
    return None


def stored_tensors(folder: Path, beginning: str) -> dict[str, Any]:
    """The tensors of a model folder whose names begin so, float32, by the rest of the name: "mlp." of a SimCSE class gives
    "dense.weight" and "dense.bias". Empty where there are none. Raises NotAModel where the folder is damaged."""
    return {
        name: tensor.float()
        for file in sorted(folder.glob("model*.safetensors"))
        for name, tensor in _tensors_of(file, beginning).items()
    }


def take_trained(encoder: Any, file: Path) -> None:
    """The ``encoder.*`` tensors of a run's checkpoint into an encoder. Raises NotAModel where one is lacking."""
    state = _tensors_of(file, "encoder.")
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

COPIED = {".json", ".txt", ".model"}  # what a converted folder takes over beside the weights


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
    return files_sha256([*_pickles(folder), *_other_files(folder)], folder)


def _pickles(folder: Path) -> list[Path]:
    """The files that hold the weights: one, or those that an index names."""
    single, index = (folder / name for name in PICKLES)
    if not index.is_file():
        return [single]
    return [folder / part for part in sorted(set(_weight_map(index).values()))]


def _other_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and file.suffix in COPIED]


def _convert(folder: Path, to: Path) -> None:
    from safetensors.torch import save_file

    for file in _other_files(folder):
        if file.name not in PICKLES:
            shutil.copyfile(file, to / file.name)
    tensors = {
        name: tensor.clone().contiguous()
        for file in _pickles(folder)
        for name, tensor in _tensors(file).items()
    }
    save_file(tensors, to / WEIGHTS[0], metadata={"format": "pt"})


def _tensors(file: Path) -> dict[str, Any]:
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 10):
        raise NotAModel(
            f"{file} is not read: torch {torch.__version__} can be made to corrupt memory by a pickle (CVE-2026-24747)",
            "pip install 'torch>=2.10', or ask its owner for safetensors",
        )
    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]
        tensors = {
            str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)
        }
    except Exception as error:  # whatever the bytes of a damaged or hostile file lead to
        reason = " ".join(str(error).split())[:120]
        raise NotAModel(
            f"{file} is not read: it holds more than tensors, or is damaged ({type(error).__name__}: {reason})",
            "ask its owner for safetensors",
        ) from None
    if not tensors:
        raise NotAModel(f"{file} holds no tensors")
    return tensors
