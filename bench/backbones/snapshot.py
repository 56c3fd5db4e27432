"""Fetch a model into the hub's cache on this machine, and compare its bytes with the hub's hashes.

The hub's client names a cached file by its announced hash and does not compare the two. So weights
are fetched to another place, compared, and only then put under that name; the small files that the
client fetches itself are compared right after it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import DataDamaged
from bench.data.announced import announced_hash, has_hash, hash_of_blob
from bench.data.fetching import TIMEOUT, Say, Site, download, endpoint, on_hub

OTHER_BYTES = "has other bytes than the hub announced"
HINT = (
    "nothing of it was kept; the file was altered on the way, "
    "or HF_ENDPOINT names a hub that cannot be trusted"
)


def fetch_snapshot(where: Site, listing: Any, wanted: Sequence[str], say: Say) -> Path:
    """Fetch the files ``wanted`` of a model, and return its folder in the hub's cache.

    ``where`` is the model at a revision, ``listing`` the hub's ModelInfo. The folder is named after
    the commit. The client continues an interrupted download. Raises DataDamaged for bytes without
    the announced hash, after removing them, FetchFailed and OSError.
    """
    from huggingface_hub import snapshot_download

    announced = _announced(listing, wanted)
    for name, (kind, expected) in announced.items():
        if kind == "sha256":
            _fetch_blob(where, name, expected, say)
    folder = Path(
        on_hub(
            lambda token: snapshot_download(
                where.repo,
                revision=where.revision,
                allow_patterns=list(wanted),
                etag_timeout=TIMEOUT,
                token=token,
            ),
            where,
            say,
        )
    )
    for name in wanted:
        _check_file(folder / name, announced.get(name))
    return folder


def _announced(listing: Any, wanted: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return file -> (kind, hash), for files with an announced hash."""
    found: dict[str, tuple[str, str]] = {}
    for file in listing.siblings or []:
        named = announced_hash(file)
        if file.rfilename in wanted and named is not None:
            found[file.rfilename] = named
    return found


def _fetch_blob(where: Site, name: str, sha256: str, say: Say) -> None:
    """Put a file with this hash into the client's cache, unless it is there."""
    from huggingface_hub.constants import HF_HUB_CACHE

    repository = Path(HF_HUB_CACHE) / f"models--{where.repo.replace('/', '--')}"
    blob = repository / "blobs" / sha256
    if blob.exists():
        return
    aside = repository / ".arriving" / sha256
    url = f"{endpoint()}/{where.repo}/resolve/{where.revision}/{name}"
    file = Site(url, "model", where.repo, where.revision, name)
    download(file, aside, sha256=sha256, say=say)
    blob.parent.mkdir(parents=True, exist_ok=True)
    os.replace(aside, blob)
    shutil.rmtree(aside.parent, ignore_errors=True)


def _check_file(file: Path, announced: tuple[str, str] | None) -> None:
    """Remove a cached file that does not have the announced hash, and raise DataDamaged.

    A file that is linked to the blob of its announced hash was compared when it was fetched.
    """
    if not file.exists():
        return
    blob = file.resolve()
    named = hash_of_blob(blob.name)
    if named is not None and named[0] == "sha256" and named == announced:
        return
    for known in {named, announced}:
        if known is None:
            continue
        kind, expected = known
        if not has_hash(blob, kind, expected):
            for path in (file, blob):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
            raise DataDamaged(f"{file.name} {OTHER_BYTES}", HINT)
