"""Folders with an adapter as peft saves it: adapter_config.json and adapter_model.safetensors.

Nothing here imports torch or peft: a plan needs the name of the base and a hash.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from bench.backbones.folder import ABOUT, SETTINGS, VOCABULARIES, read_settings
from bench.backbones.refusals import ADAPTER
from bench.base.errors import NotAModel
from bench.base.extras import install_hint
from bench.base.files import expand_home
from bench.base.hashes import files_sha256

WEIGHTS = "adapter_model.safetensors"


def find_adapter(path: Path) -> Path | None:
    """Return the file with an adapter's weights; None for any other folder.

    A folder of sentence-transformers is none: that library loads it with its adapter.
    """
    if not (path / ADAPTER).is_file() or (path / "modules.json").is_file():
        return None
    return path / WEIGHTS


def read_base_name(path: Path) -> str:
    """Return the name of the model that an adapter belongs to, "owner/name@revision" if its config
    names a commit.

    Raises NotAModel if a file is missing, or if the config names no model.
    """
    settings = read_settings(path / ADAPTER)
    base = settings.get("base_model_name_or_path")
    if not base or not isinstance(base, str):
        raise NotAModel(
            f"{path} is an adapter, and its {ADAPTER} names no base model",
            f"write the base's name or folder into base_model_name_or_path of {ADAPTER}",
        )
    if not (path / WEIGHTS).is_file():
        raise NotAModel(
            f"{path} is an adapter of {base} without {WEIGHTS}",
            "save it again with a newer peft: adapter_model.bin is a pickle, which could run code",
        )
    revision = settings.get("revision")
    if revision and revision != "main" and "@" not in base and not Path(base).is_dir():
        return f"{base}@{revision}"
    beside = path / base
    if not Path(base).is_dir() and beside.is_dir():
        base = str(beside)
    if expand_home(base).resolve() == path.resolve():
        raise NotAModel(
            f"{path} is an adapter, and its {ADAPTER} names this folder as its base model",
            f"move the base to another folder, and write that into {ADAPTER}",
        )
    return base


def hash_adapter(path: Path, base_revision: str) -> str:
    """Return the revision of a base with an adapter: a hash of both."""
    digest = hashlib.sha256(f"{base_revision}\0".encode())
    files = [path / ADAPTER, path / WEIGHTS]
    if has_vocabulary(path):
        others = [file for file in path.iterdir() if file.suffix in SETTINGS and file.is_file()]
        files += [file for file in others if file.name not in {ADAPTER, *ABOUT}]
    digest.update(files_sha256(files, path).encode())
    return digest.hexdigest()


def has_vocabulary(path: Path) -> bool:
    """Tell whether an adapter's folder has a tokenizer of its own, which its texts were read by."""
    return any((path / file).is_file() for file in VOCABULARIES)


def check_adapter_of_library(path: Path) -> None:
    """Raise NotAModel if sentence-transformers could not load an adapter and its base.

    ``path``: the folder with the adapter, of a model of sentence-transformers.
    """
    base = read_base_name(path)
    if find_spec("peft") is None:
        raise NotAModel(f"{path} is an adapter of {base}, which needs peft", install_hint("lora"))
    if base.startswith(("/", ".", "~")) and not expand_home(base).is_dir():
        raise NotAModel(
            f"{path} is an adapter of {base}, which is not on this machine",
            f"put that model, or a link to it, at {base}",
        )
