"""Checks of a hub's announcements before its client uses them.

That is names that become parts of paths, sizes, and the hashes of files.

A hub may be a mirror ($HF_ENDPOINT) or somebody on an unencrypted line. Its client
(huggingface_hub) makes paths out of commits and ETags, so that "../" in one of them leads out of
the cache, and it never compares a file with the hash that was announced for it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from bench.base.errors import FetchFailed

PLAIN_NAME = re.compile(r"[0-9A-Za-z_+=-][0-9A-Za-z._+=-]{0,199}")
"""A commit or an ETag: one part of a path, and not a hidden one."""
HEADERS = ("ETag", "X-Linked-Etag", "X-Repo-Commit", "X-Xet-Hash")
"""Headers of the answer about a file that the client uses in paths."""
NAMED = ("sha", "oid", "blobId", "sha256", "xetHash")
FILES = ("rfilename", "path")
LISTING = re.compile(r"/api/(models|datasets|spaces)/")
HINT = "nothing was stored; HF_ENDPOINT names the hub, and is it the one that you mean?"


@cache
def guard_client() -> None:
    """Let the hub's client look at every answer with :func:`check_answer` first, in this
    process.
    """
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def make_client() -> Any:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks.get("response", []), check_answer]}
        return client

    set_client_factory(make_client)


def check_answer(answer: Any) -> None:
    """Raise FetchFailed for an answer of a hub that names a path outside of its cache, or that
    lists files in another form."""
    where = f"{answer.request.url.host}"
    if answer.request.method == "HEAD":
        for header in HEADERS:
            name = answer.headers.get(header)
            if name is not None and not PLAIN_NAME.fullmatch(name.removeprefix("W/").strip('"')):
                raise FetchFailed(f"{where} answers with {header}: {name[:60]!r}", HINT)
    elif answer.is_success and LISTING.search(answer.request.url.path):
        try:
            answer.read()
            listing = answer.json()
        except ValueError:  # the client says so
            return
        check_listing(where, listing)


def check_listing(where: str, listing: Any) -> None:
    """Raise FetchFailed for a model's or data set's description, or its list of files, that no hub
    writes.

    ``where``: the server, for the message.
    """
    described = [listing]
    if isinstance(listing, dict):
        described += _list(where, "siblings", listing.get("siblings"))
    elif isinstance(listing, list):
        described = listing
    for about in described:
        if not isinstance(about, dict):
            raise FetchFailed(f"{where} lists {str(about)[:60]!r} instead of a file", HINT)
        _check_entry(where, about)
        if about.get("lfs") is not None:
            if not isinstance(about["lfs"], dict):
                raise FetchFailed(f"{where} lists an lfs of {str(about['lfs'])[:60]!r}", HINT)
            _check_entry(where, about["lfs"])


def _list(where: str, key: str, value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise FetchFailed(f"{where} lists {key} as {str(value)[:60]!r}", HINT)
    return value


def _check_entry(where: str, about: dict[str, Any]) -> None:
    for key in NAMED:
        name = about.get(key)
        if name is not None and not (isinstance(name, str) and PLAIN_NAME.fullmatch(name)):
            raise FetchFailed(f"{where} lists a {key} of {str(name)[:60]!r}", HINT)
    for key in FILES:
        name = about.get(key)
        if name is not None and not _is_inside(name):
            raise FetchFailed(f"{where} lists a file {str(name)[:60]!r}", HINT)
    size = about.get("size")
    if size is not None and not (type(size) is int and 0 <= size < 1 << 62):
        raise FetchFailed(f"{where} lists a file of size {str(size)[:60]!r}", HINT)


def _is_inside(name: Any) -> bool:
    """Say if a name leads to a file below the folder that it is joined to, on every system."""
    if not isinstance(name, str) or not name or "\0" in name or "\\" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def announced_hash(about: Any) -> tuple[str, str] | None:
    """Return (kind, hash) of a file in a listing:

    ("sha256", ...) of a large one, ("git", ...) of a small one; None if none is announced.
    """
    lfs = getattr(about, "lfs", None)
    sha256 = getattr(lfs, "sha256", None)
    if sha256:
        return "sha256", str(sha256)
    blob = getattr(about, "blob_id", None)
    return ("git", str(blob)) if blob else None


def hash_of_blob(name: str) -> tuple[str, str] | None:
    """Return (kind, hash) that the name of a file in the hub's cache states: 64 digits are a
    sha256, 40 are git's name of a blob.
    """
    if re.fullmatch("[0-9a-f]{64}", name):
        return "sha256", name
    if re.fullmatch("[0-9a-f]{40}", name):
        return "git", name
    return None


def has_hash(file: Path, kind: str, expected: str) -> bool:
    """Say if a file's bytes have this hash: "sha256" of its bytes, or "git", the sha1 that git
    gives a blob. Raises OSError.
    """
    with file.open("rb") as stream:
        if kind == "sha256":
            return hashlib.file_digest(stream, "sha256").hexdigest() == expected
        digest = hashlib.sha1(f"blob {file.stat().st_size}\0".encode(), usedforsecurity=False)
        hashlib.file_digest(stream, lambda: digest)
        return digest.hexdigest() == expected
