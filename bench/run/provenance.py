"""Facts about a run that the record keeps: code, tokenizer, sizes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from bench.base.files import files_sha256
from bench.method.contract import Method
from bench.runs.record import Checkout


def git_state(folder: Path) -> Checkout:
    """Commit and whether the working tree differs from it; neither where ``folder`` is in no git checkout."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None or git("ls-files", "--error-unmatch", ".") is None:
        return Checkout()
    changed = git(
        "status", "--porcelain", "--untracked-files=no"
    )  # None: a busy machine did not tell in time
    return Checkout(commit=commit, dirty=None if changed is None else bool(changed))


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
    parts: dict[str, int] = {}
    total = 0
    for name, parameter in method.named_parameters():
        total += parameter.numel()
        if trained and parameter.requires_grad:
            part = name.partition(".")[0]
            parts[part] = parts.get(part, 0) + parameter.numel()
    return {
        "trainable_parameters": sum(parts.values()),
        "trainable_parts": parts,
        "total_parameters": total,
    }


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def hash_of_folder(folder: Path) -> str:
    """sha256 over the names and contents of the files in a folder: what names a checkpoint."""
    return files_sha256((file for file in folder.rglob("*") if file.is_file()), folder)
