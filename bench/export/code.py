"""Let only bench's own module files be code in an exported folder.

A model folder can name classes (``auto_map``) in its own files or in another repository, which
transformers fetches and runs if it is loaded with ``trust_remote_code=True``. Such names come along
with the settings of a backbone. They are removed from what is exported, and no
other file of code may be there when the folder is loaded again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import RunFailed
from bench.base.reading import list_plain_files

NAMES_CODE = ("auto_map", "custom_pipelines")
"""Keys of settings with names of classes in files of a folder or of a repository."""
DATA = (
    ".json",
    ".txt",
    ".model",
    ".md",
    ".safetensors",
    ".yaml",
    ".jinja",
    ".vocab",
    ".bpe",
    ".tsv",
    ".tiktoken",
)
"""Suffixes of the files of an export that hold no code."""


def remove_code_names(folder: Path) -> None:
    """Remove the names of classes in other people's files from every JSON file below a folder.

    Raises OSError.
    """
    for file in list_plain_files(folder):
        if file.suffix != ".json":
            continue
        content = json.loads(file.read_bytes())
        cleaned = _without_code_names(content)
        if cleaned != content:
            text = json.dumps(cleaned, indent=2, ensure_ascii=False)
            file.write_text(text + "\n", encoding="utf-8")


def _without_code_names(value: Any) -> Any:
    """Return a JSON value without the names of code."""
    if isinstance(value, dict):
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            # a number is the place of a token in a vocabulary, whatever the token
            if key not in NAMES_CODE or isinstance(inner, int | float):
                cleaned[key] = _without_code_names(inner)
        return cleaned
    if isinstance(value, list):
        return [_without_code_names(inner) for inner in value]
    return value


def check_code(folder: Path, own: Sequence[Path]) -> None:
    """Raise RunFailed for a file of code below a folder that is not one of ``own``.

    It must be in the folder itself and have the same bytes.
    """
    known = {file.name: file for file in own}
    for file in list_plain_files(folder):
        if file.suffix in DATA:
            continue
        source = known.get(file.name) if file.parent == folder else None
        if source is None or file.read_bytes() != source.read_bytes():
            name = file.relative_to(folder)
            raise RunFailed(
                f"the export would hold {name}, which is neither data nor a module of bench; "
                "nothing was written",
                "please report it",
            )
