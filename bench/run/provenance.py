"""Facts about a run that the record keeps (code, tokenizer, sizes), and the hash of everything that determines its result."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.files import files_sha256
from bench.method import Method
from bench.runs.record import Checkout

if TYPE_CHECKING:
    from bench.runs.record import RunRecord


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


# --- what determines a run's result, and the hash that names it ---
# The plan makes the fingerprint from everything that was asked (:func:`bench.run.plan.with_fingerprint`); a record keeps enough to make
# it again, so that a record whose seed or recipe was changed afterwards is found out. What its own fields do not say stands in
# ``provenance.determines``. Of recipe keys that name a file or a backbone ("places") the content counts, not the name: they are kept
# there with the content's name, or None where the recipe gives none.


def fingerprint_of(determines: Mapping[str, Any]) -> str:
    """sha256 of everything that determines a result, as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(determines, sort_keys=True).encode()).hexdigest()


def record_fingerprint(record: RunRecord, rest: Mapping[str, Any] | None = None) -> str | None:
    """The fingerprint made again from a record; None where the record, being older, does not keep what it was made of.

    ``rest`` takes the place of ``provenance.determines``.
    """
    rest = rest if rest is not None else record.provenance.determines
    places = (rest or {}).get("places")
    if rest is None or not isinstance(places, Mapping):
        return None
    return fingerprint_of(
        {
            "method": record.method,
            "plugin": record.provenance.plugin.sha256,
            "variant": record.variant,
            "setting": record.setting,
            "seed": record.seed,
            "backbone": record.provenance.backbone.revision,
            "recipe": {
                key: value.value for key, value in record.recipe.items() if key not in places
            },
            "corpus": record.provenance.corpus.sha256,
            **rest,
            "places": {key: name for key, name in places.items() if name is not None},
        }
    )
