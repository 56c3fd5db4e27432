"""A folder with a model in it: its modules, its weight files, its config and its hash.

Nothing here needs torch.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from bench.base.errors import NotAModel
from bench.base.hashes import files_sha256
from bench.base.reading import SETTINGS_BYTES, read_settings_text

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
SETTINGS = {".json", ".txt", ".model"}
"""Suffixes of configs and vocabularies."""
ABOUT = {
    "card.json",
    "trainer_state.json",
    "all_results.json",
    "train_results.json",
    "eval_results.json",
    "README.txt",
}
"""Files that do not change the vectors of a model."""
LONGEST_TITLE = 80


def card_title(path: Path) -> str:
    """Return the model's name in the folder's model card (model-index).

    It is "" without a card, or if sentence-transformers generated the name.
    """
    card = path / "README.md"
    if not card.is_file() or card.stat().st_size > SETTINGS_BYTES:
        return ""
    from huggingface_hub.repocard import metadata_load

    with contextlib.suppress(Exception):  # a card is free text: its metadata may have any form
        title = str((metadata_load(card) or {})["model-index"][0]["name"]).strip()
        is_generated = title.startswith("SentenceTransformer")
        if title.isprintable() and len(title) <= LONGEST_TITLE and not is_generated:
            return title
    return ""


def has_transformer(path: Path) -> bool:
    """Tell whether a model folder holds a transformer.

    A sentence-transformers folder may hold word vectors or a router instead.
    """
    folder = transformer_folder(path)
    file = folder / "config.json"
    if not (path / "modules.json").is_file():
        return file.exists()
    return "model_type" in read_settings(file)


def transformer_folder(path: Path) -> Path:
    """Return the folder of a model's transformer: its first module's, or the folder itself."""
    modules = module_folders(path)
    return modules[0] if modules else path


def read_settings(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file of settings; empty without the file.

    Raises NotAModel if the file is damaged.
    """
    if not file.is_file():
        return {}
    try:
        content = read_json(file)
    except OSError as error:
        raise NotAModel(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise NotAModel(f"{file} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise NotAModel(f"{file} is damaged: expected an object, found {type(content).__name__}")
    return content


def module_folders(path: Path) -> list[Path]:
    """Return the folders of the modules of a sentence-transformers folder, in order.

    The list is empty for any other folder. Raises NotAModel if modules.json is damaged.
    """
    return [folder for folder, _ in _modules(path)]


def _modules(path: Path) -> list[tuple[Path, str]]:
    """Return folder and type of each module; none for a folder without modules.json."""
    file = path / "modules.json"
    if not file.exists():
        return []
    with readable(file):
        found = [(module["path"], str(module.get("type"))) for module in read_json(file)]
        if not found:
            raise ValueError("it names no module")
        for name, _ in found:
            _check_is_below(name, file)
    return [(path / name, kind) for name, kind in found]


def module_types(path: Path) -> list[str]:
    """Return the types of the modules of a sentence-transformers folder, in order.

    Modules inside a router count. Raises NotAModel if modules.json is damaged.
    """
    types: list[str] = []
    for folder, kind in _modules(path):
        types.append(kind)
        routed = read_settings(folder / "router_config.json").get("types")
        if kind.endswith(".Router") and isinstance(routed, dict):
            types += [str(inner) for inner in routed.values()]
    return types


def read_json(file: Path) -> Any:
    return json.loads(read_settings_text(file))


def _check_is_below(name: str, file: Path) -> None:
    """Raise NotAModel if a module's folder, named in ``file``, is outside of the model's folder."""
    if PurePosixPath(name).is_absolute() or ".." in re.split(r"[/\\]", name) or ":" in name:
        raise NotAModel(f"{file}: the module {name[:80]!r} is outside of the folder")


def routed_folders(path: Path) -> list[Path]:
    """Return the folders of the modules behind the routers of a sentence-transformers folder."""
    found: list[Path] = []
    for folder in module_folders(path):
        file = folder / "router_config.json"
        types = read_settings(file).get("types")
        if isinstance(types, dict):
            for inner in types:
                _check_is_below(inner, file)
                found.append(folder / inner)
    return found


@contextlib.contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turn errors of reading and parsing a file into a NotAModel that names the file."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAModel(f"{file} is damaged: {error}") from None


def weights_hash(path: Path) -> str:
    """Return the sha256 of weights, configs and tokenizer: the revision of a local folder.

    In a sentence-transformers folder the settings of its modules (pooling, normalisation, length)
    count as well.
    """
    suffixes = {*SETTINGS, ".safetensors"}
    hashed = find_pickles(path)
    for folder in {path, *module_folders(path), *routed_folders(path)}:
        if not folder.is_dir():
            continue
        for file in folder.iterdir():
            if file.is_file() and file.suffix in suffixes and file.name not in ABOUT:
                hashed.append(file)
    return hash_files(path, hashed)


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Return the sha256 of files below a folder."""
    states: list[tuple[Path, int, int, int]] = []
    for file in sorted(files):
        found = file.stat()
        states.append((file.absolute(), found.st_ino, found.st_size, found.st_mtime_ns))
    return _hash_states(folder.absolute(), tuple(states))


@lru_cache(maxsize=64)
def _hash_states(folder: Path, states: tuple[tuple[Path, int, int, int], ...]) -> str:
    """Return the sha256 of files, once while their states (inode, size, time) stay the same.

    A process may save another model into the folder, or change its working directory.
    """
    return files_sha256([state[0] for state in states], folder)


def is_whole(folder: Path, weights: Sequence[str] = WEIGHTS) -> bool:
    """Tell whether a model folder has its config, all of its weights and a vocabulary.

    A folder of an interrupted download has not.
    """
    with contextlib.suppress(NotAModel):
        if not has_transformer(folder):
            return _has_modules(folder)
        inner = transformer_folder(folder)
        vocabularies = [at / file for at in (inner, folder) for file in VOCABULARIES]
        if not any(file.exists() for file in vocabularies):
            return False
        needed = [inner / "config.json", *weight_files(inner, weights)]
        return all(file.exists() for file in needed)
    return False


def _has_modules(folder: Path) -> bool:
    """Tell whether a folder without a transformer has the files that its settings name."""
    if not (folder / "modules.json").is_file():
        return False
    routed = routed_folders(folder)
    if routed:
        return all(inner.is_dir() and any(inner.iterdir()) for inner in routed)
    return any((module_folders(folder)[0] / file).is_file() for file in WEIGHTS)


def stored_as(folder: Path) -> Sequence[str]:
    """Return the names of a folder's weights, in one file and in several: pickles if there are no
    others.
    """
    is_safe = any((folder / file).exists() for file in WEIGHTS)
    if not is_safe and any((folder / file).is_file() for file in PICKLES):
        return PICKLES
    return WEIGHTS


def find_pickles(path: Path) -> list[Path]:
    """Return the pickles that would be read as weights of a model folder, also of its modules.

    Raises NotAModel if modules.json is damaged, or names a folder outside of this one.
    """
    folders: list[Path] = []
    for folder in module_folders(path) or [path]:
        folders.append(folder)
        if folder != path:  # which also holds what is no module, such as the states of a training
            folders += [inner for inner in folder.rglob("*") if inner.is_dir()]
    found: set[Path] = set()
    for folder in folders:
        if stored_as(folder) is PICKLES:
            found.update(file for file in weight_files(folder) if file.is_file())
    return sorted(found)


def weight_files(folder: Path, weights: Sequence[str] | None = None) -> list[Path]:
    """Return the files with the weights: one, or those in the index. Raises NotAModel."""
    single, index = (folder / name for name in weights or stored_as(folder))
    if not index.is_file():
        return [single]
    return [folder / part for part in sorted(set(weight_map(index).values()))]


def weight_map(index: Path) -> dict[str, str]:
    """Return tensor name -> file from the index of weights in several files. Raises NotAModel."""
    with readable(index):
        names = dict(read_json(index)["weight_map"])
    for part in names.values():
        if not isinstance(part, str) or part in ("", "..") or re.search(r"[/\\]", part):
            raise NotAModel(f"{index}: the weights {str(part)[:80]!r} are not in its folder")
    return names


ALIASES = {
    "dim": "hidden_size",
    "n_embd": "hidden_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_layer": "num_hidden_layers",
    "num_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_head": "num_attention_heads",
    "num_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "ffn_dim": "intermediate_size",
    "d_ff": "intermediate_size",
}
"""Names of sizes in the configs of DistilBERT, GPT-2, OPT and T5 -> BERT's names."""


def read_config(folder: Path) -> dict[str, Any]:
    """Return the config of a model folder, with BERT's names for the sizes.

    Raises NotAModel if the file is damaged.
    """
    file = folder / "config.json"
    with readable(file):
        config = dict(read_json(file))
    return {alias: config[key] for key, alias in ALIASES.items() if config.get(key)} | config


def read_transformer_config(path: Path) -> dict[str, Any]:
    """Return the config of the transformer in a model folder; empty without a transformer.

    Raises NotAModel if the file is damaged.
    """
    if not has_transformer(path):
        return {}
    return read_config(transformer_folder(path))
