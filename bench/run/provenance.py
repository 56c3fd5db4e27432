"""Facts about a run that the record keeps: code, tokenizer, sizes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from bench.method import Method


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and whether the working tree differs from it; None where ``folder`` is in no git checkout."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    if commit is None or git("ls-files", "--error-unmatch", ".") is None:
        return None
    changed = git("status", "--porcelain", "--untracked-files=no")  # None: a busy machine did not tell in time
    return {"commit": commit, "dirty": None if changed is None else bool(changed)}


def tokenizer_key(tokenizer: Any) -> str:
    """What makes two tokenizers give the same ids: sha256 of the fast tokenizer's whole description."""
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    description.pop("truncation", None)
    description.pop("padding", None)
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def parameter_counts(method: Method, *, trained: bool) -> dict[str, int]:
    """Counted after everything is built; a run that trains nothing has no trainable parameters. Empty without torch."""
    if not hasattr(method, "parameters"):
        return {}
    parameters = list(method.parameters())
    trainable = sum(p.numel() for p in parameters if p.requires_grad) if trained else 0
    return {"trainable_parameters": trainable, "total_parameters": sum(p.numel() for p in parameters)}


def folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def folder_hash(folder: Path) -> str:
    """sha256 over the names and contents of the files in a folder: what names a checkpoint."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
