"""Facts about a run that the record keeps: code, tokenizer, sizes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from bench.base.files import files_sha256
from bench.method.contract import Method
from bench.runs.record import Checkout


def git_state(folder: Path) -> Checkout:
    """Commit and whether the working tree differs from it; neither where ``folder`` is in no git checkout, or git takes too long."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "core.abbrev=40", "-C", str(folder), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout

    try:
        git("ls-files", "--error-unmatch", ".")
        state = git("describe", "--always", "--exclude", "*", "--dirty").strip()
    except (OSError, subprocess.SubprocessError):
        return Checkout()
    return Checkout(commit=state.removesuffix("-dirty"), dirty=state.endswith("-dirty"))


def tokenizer_key(tokenizer: Any) -> str:
    """What makes two tokenizers give the same ids: sha256 of the fast tokenizer's whole description."""
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    description.pop("truncation", None)
    description.pop("padding", None)
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def parameter_counts(method: Method, *, trained: bool) -> dict[str, Any]:
    """Fields of a record's cost, counted after everything is built. A run that trains nothing has no trainable parameters. Empty without
    torch.

    A part is an attribute of the method: the first component of a parameter's name. What two parts share counts for the first.
    """
    if not hasattr(method, "named_parameters"):
        return {}
    parts = Counter[str]()
    for name, parameter in method.named_parameters():
        if trained and parameter.requires_grad:
            parts[name.partition(".")[0]] += parameter.numel()
    return {
        "trainable_parameters": parts.total(),
        "trainable_parts": dict(parts),
        "total_parameters": sum(parameter.numel() for _, parameter in method.named_parameters()),
    }


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def hash_of_folder(folder: Path) -> str:
    """sha256 over the names and contents of the files in a folder: what names a checkpoint."""
    return files_sha256((file for file in folder.rglob("*") if file.is_file()), folder)
