"""A folder with a model in it: whether it is one, whether it is all there, and what names its content."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from bench.base.errors import NotAModel

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
DETERMINES = {".json", ".txt", ".model", ".safetensors"}  # files of a model folder that decide what it computes ...
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

    try:
        title = (metadata_load(card) or {})["model-index"][0]["name"]
    except Exception:  # no metadata, damaged metadata, another form: a card is free text
        return ""
    usable = isinstance(title, str) and title.isprintable() and 0 < len(title.strip()) <= LONGEST_TITLE
    return title.strip() if usable and not title.startswith(GENERATED) else ""


def has_pickle(folder: Path) -> bool:
    return any((folder / name).is_file() for name in PICKLES)


def check_folder(path: Path) -> None:
    folder = transformer_folder(path)
    if not (folder / "config.json").exists():
        raise NotAModel(f"{path} is no model folder: it has no config.json", "give a folder that save_pretrained wrote")
    if not any((folder / name).exists() for name in WEIGHTS):
        if has_pickle(folder):
            raise NotAModel(f"{path} has no model.safetensors: its weights are a pickle, which could run code",
                            "--allow-pickle reads its tensors, and nothing else of it, and keeps them as safetensors")  # fmt: skip
        raise NotAModel(f"{path} has no model.safetensors", "save the model with save_pretrained")


def transformer_folder(path: Path) -> Path:
    """The folder of the transformer inside a sentence-transformers folder; the folder itself for any other."""
    modules = path / "modules.json"
    if modules.exists():
        try:
            first = json.loads(modules.read_text(encoding="utf-8"))[0]["path"]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise NotAModel(f"{modules} is damaged: {error}") from None
        return path / first
    return path


@cache
def weights_hash(path: Path) -> str:
    """sha256 over weights, configs and tokenizer: what names the revision of a local folder.

    Of a sentence-transformers folder also what its modules say about pooling, normalisation and length.
    """
    digest = hashlib.sha256()
    for file in sorted(file for folder in _parts(path) for file in folder.iterdir() if file.suffix in DETERMINES):
        if file.name in ABOUT or not file.is_file():
            continue
        digest.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 22):
                digest.update(chunk)
    return digest.hexdigest()


def _parts(path: Path) -> set[Path]:
    """The folder, and those of its modules if it is a sentence-transformers folder."""
    file = path / "modules.json"
    try:
        modules = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        return {folder for folder in (path, *(path / module["path"] for module in modules)) if folder.is_dir()}
    except (ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{file} is damaged: {error}") from None


def whole(folder: Path, weights: Sequence[str] = WEIGHTS) -> bool:
    """Whether a model folder has its config, all parts of its weights and a vocabulary: a cut download has not."""
    inner = inside(folder)
    if not (inner / "config.json").exists() or not any((at / file).exists() for at in (inner, folder) for file in VOCABULARIES):
        return False
    single, index = (inner / file for file in weights)
    if index.exists():
        with contextlib.suppress(OSError, ValueError, KeyError, AttributeError):
            parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            return all((inner / part).exists() for part in parts)
    return single.exists()


def inside(folder: Path) -> Path:
    """Where the transformer lies in a sentence-transformers folder that is here at least in part; else the folder."""
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        return folder / str(json.loads((folder / "modules.json").read_text(encoding="utf-8"))[0]["path"])
    return folder
