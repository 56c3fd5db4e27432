"""Refuse model folders for reasons that are visible without loading anything.

These are a Git LFS pointer in place of a file, an adapter without its model, code in the folder,
and a sentence-transformers model that does not make one vector per text.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.backbones.folder import module_types, read_settings
from bench.base.errors import NotAModel

POINTER = b"version https://git-lfs.github.com/spec/"
POINTER_BYTES = 1024  # a pointer is smaller: three short lines
ADAPTER = "adapter_config.json"
MERGE_FIRST = (
    "merge it first: PeftModel.from_pretrained(model, FOLDER).merge_and_unload()"
    ".save_pretrained(NEW), and save the tokenizer there too"
)
LIBRARY = "sentence_transformers."
"""The first part of the types of modules that sentence-transformers brings itself."""
SETTINGS_OF_LIBRARY = "config_sentence_transformers.json"
ONE_VECTOR = "SentenceTransformer"
SCORE_THE_OBJECT = (
    "load it in Python and score the object: bench.evaluate(model, ...), docs/evaluate.md"
)
OTHER_KINDS = {
    "SparseEncoder": (
        "it makes sparse vectors; in Python, bench.evaluate scores a function that returns "
        "SparseEncoder(...).encode(texts).to_dense()"
    ),
    "MultiVectorEncoder": "it makes a vector for every token, and bench scores one vector per text",
    "CrossEncoder": "it scores pairs of texts, and bench scores one vector per text",
}
"""Kind of model -> the reason why it is not scored."""


def check_pointers(folders: Iterable[Path]) -> None:
    """Raise NotAModel if a file in these folders is a Git LFS pointer instead of the file."""
    for folder in folders:
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            if file.is_file() and _is_pointer(file):
                raise NotAModel(
                    f"{file} is a Git LFS pointer, not the file itself",
                    "git lfs install && git lfs pull in the repository, or download the model "
                    "again",
                )


def _is_pointer(file: Path) -> bool:
    """Tell whether a file is a Git LFS pointer."""
    if file.stat().st_size >= POINTER_BYTES:
        return False
    try:
        return file.read_bytes().startswith(POINTER)
    except OSError:
        return False


def check_no_adapter(folder: Path) -> None:
    """Raise NotAModel if a folder holds an adapter (PEFT) instead of a whole model."""
    file = folder / ADAPTER
    if not file.is_file():
        return
    settings = read_settings(file)
    kind = str(settings.get("peft_type") or "PEFT")
    base = str(settings.get("base_model_name_or_path") or "another model")
    raise NotAModel(
        f"{folder} is an adapter ({kind}) of {base}, not a whole model",
        MERGE_FIRST,
    )


def check_no_own_code(folder: Path, name: str) -> None:
    """Raise NotAModel if a model or its tokenizer needs code from its folder (``auto_map``).

    If transformers knows the model type, it silently loads another model, without that code.
    """
    for file in ("config.json", "tokenizer_config.json"):
        settings = read_settings(folder / file)
        named = _classes_of(settings.get("auto_map"))
        if named:
            hint = SCORE_THE_OBJECT
            if settings.get("model_type"):
                hint += (
                    f"; or remove auto_map from {file} "
                    f"if transformers' own {settings['model_type']} is meant"
                )
            raise NotAModel(
                f"{name} needs code from its own repository, which bench does not run: auto_map "
                f"in {file} names {named[0]}",
                hint,
            )


def _classes_of(auto_map: Any) -> list[str]:
    """Return the classes in an auto_map, the model's first."""
    if isinstance(auto_map, str):
        return [auto_map]
    if isinstance(auto_map, list):
        return [str(name) for name in auto_map if name]
    if not isinstance(auto_map, dict):
        return []
    named: list[str] = []
    for key in sorted(auto_map, key=lambda key: key != "AutoModel"):
        named += _classes_of(auto_map[key])
    return named


def check_one_vector(path: Path, name: str) -> None:
    """Raise NotAModel if a sentence-transformers folder does not make one vector per text.

    The same holds if it needs its own code: sentence-transformers would silently use mean pooling
    instead.
    """
    kind = str(read_settings(path / SETTINGS_OF_LIBRARY).get("model_type") or ONE_VECTOR)
    if kind != ONE_VECTOR:
        why = OTHER_KINDS.get(kind, "bench scores one vector per text")
        raise NotAModel(
            f"{name} is a {kind} of sentence-transformers: {why}", "give a SentenceTransformer"
        )
    for module in module_types(path):
        if not module.startswith(LIBRARY):
            raise NotAModel(
                f"{name} needs code from its own repository, which bench does not run: "
                f"modules.json names {module}",
                SCORE_THE_OBJECT,
            )
