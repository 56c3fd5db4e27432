"""Fetch files of a hub with its own client, and compare each once with the hash it announced.

A hub may be a mirror ($HF_ENDPOINT) or somebody on an unencrypted line. Its client
(huggingface_hub) makes paths out of commits and ETags, so that "../" in one of them leads out of
its folder, and it never compares a file with the hash that was announced for it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from bench.base.errors import DataDamaged, FetchFailed
from bench.data.fetching import (
    DISK,
    NO_NETWORK,
    TIMEOUT,
    Site,
    arriving,
    check_online,
    innermost,
    refusal,
)

T = TypeVar("T")

PLAIN_NAME = re.compile(r"[0-9A-Za-z_+=-][0-9A-Za-z._+=-]{0,199}")
"""A commit or an ETag: one part of a path, and not a hidden one."""
HEADERS = ("ETag", "X-Linked-Etag", "X-Repo-Commit", "X-Xet-Hash")
"""Headers of the answer about a file that the client uses in paths."""
ODD_HUB = "nothing was stored; HF_ENDPOINT names the hub, and is it the one that you mean?"
LAST = ("config.json", "modules.json")
"""Files without which a folder is no model: they come last, so that a killed process leaves no
folder that looks whole."""


def repository_info(where: Site) -> Any:
    """Return the hub's DatasetInfo or ModelInfo at a revision or branch.

    It has the commit, the files with their sizes, and the card. Raises FetchFailed, also for a
    commit, a file name or a size that no hub writes.
    """
    from huggingface_hub import HfApi

    get = HfApi().dataset_info if where.kind == "dataset" else HfApi().model_info
    about: Any = on_hub(
        lambda: get(where.repo, revision=where.revision, files_metadata=True, timeout=TIMEOUT),
        where,
    )
    if not isinstance(about.sha, str) or not PLAIN_NAME.fullmatch(about.sha):
        raise FetchFailed(f"{where.url} has the commit {str(about.sha)[:60]!r}", ODD_HUB)
    for file in about.siblings or []:
        if not _is_inside(file.rfilename):
            raise FetchFailed(f"{where.url} lists a file {str(file.rfilename)[:60]!r}", ODD_HUB)
        if file.size is not None and not (type(file.size) is int and 0 <= file.size < 1 << 62):
            size = str(file.size)[:60]
            raise FetchFailed(f"{where.url} lists a file of size {size!r}", ODD_HUB)
    return about


def _is_inside(name: Any) -> bool:
    """Say if a name leads to a file below the folder that it is joined to, on every system."""
    if not isinstance(name, str) or not name or "\0" in name or "\\" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def download_from_hub(where: Site, to: Path) -> str:
    """Fetch a file of a hub's repository into ``to``, and return its commit.

    Two processes take turns. Raises FetchFailed (refused, unreachable, broken off, disk full) or
    DataDamaged (other bytes than announced); then ``to`` is unchanged.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download

    about = on_hub(lambda: get_hf_file_metadata(where.url, timeout=TIMEOUT), where)
    commit = about.commit_hash or where.revision
    with arriving(to) as folder:
        arrived = on_hub(
            lambda: hf_hub_download(
                where.repo,
                where.path,
                repo_type=where.kind,
                revision=commit,
                local_dir=folder,
                etag_timeout=TIMEOUT,
            ),
            where,
        )
        check_bytes(Path(arrived), about.etag or "", where.url)
        os.replace(arrived, to)
    return commit


def fetch_snapshot(where: Site, wanted: Sequence[str]) -> Path:
    """Fetch files of a model into the hub's cache, and return the folder, named after the commit.

    Weights come first. A file with other bytes than announced is removed. Raises DataDamaged for
    such a file, FetchFailed and OSError.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.constants import HF_HUB_CACHE

    repository = Path(HF_HUB_CACHE) / f"models--{where.repo.replace('/', '--')}"
    for leftover in repository.glob("blobs/*.incomplete"):  # of a process that was killed
        if leftover.stat().st_mtime < time.time() - 3600:
            leftover.unlink(missing_ok=True)
    folders = []
    for name in sorted(wanted, key=lambda name: (name in LAST, name)):
        fetch = partial(hf_hub_download, where.repo, name, revision=where.revision)
        file = Path(on_hub(partial(fetch, etag_timeout=TIMEOUT), where))
        check_bytes(file, file.resolve().name, f"{name} of {where.repo}")
        folders.append(file.parents[name.count("/")])
    if len(set(folders)) > 1:
        raise FetchFailed(f"{where.url} changed while it was fetched", "run the command again")
    return folders[0]


def check_bytes(file: Path, announced: str, what: str) -> None:
    """Compare a file with its announced hash, and remove it if it has another one.

    ``announced``: the ETag of a hub, which names the file in the client's cache: 64 digits are a
    sha256, 40 are git's name of a blob, anything else is no hash. Raises DataDamaged, OSError.
    """
    blob = file.resolve()
    with blob.open("rb") as stream:
        if re.fullmatch("[0-9a-f]{64}", announced):
            arrived = hashlib.file_digest(stream, "sha256").hexdigest()
        elif re.fullmatch("[0-9a-f]{40}", announced):
            size = blob.stat().st_size
            digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
            arrived = hashlib.file_digest(stream, lambda: digest).hexdigest()
        else:
            return
    if arrived != announced:
        file.unlink()
        blob.unlink(missing_ok=True)
        raise DataDamaged(
            f"{what} has other bytes than the hub announced",
            "nothing of it was kept; the file was altered on the way, "
            "or HF_ENDPOINT names a hub that cannot be trusted",
        )


def on_hub(call: Callable[[], T], where: Site) -> T:
    """Return the result of a call of the hub's client.

    Raises FetchFailed for all that the hub, the network or the client does wrong, OSError if the
    disk fails.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    check_online(where.url)
    prepare_client()
    try:
        return call()
    except FetchFailed:
        raise
    except Exception as error:  # the client's own HTTP library has errors of its own
        if isinstance(error, OSError) and (error.filename is not None or error.errno in DISK):
            raise
        cause: BaseException | None = error
        if isinstance(error, LocalEntryNotFoundError):
            cause = error.__cause__
        if isinstance(cause, HfHubHTTPError) and cause.response is not None:
            headers = cause.response.headers
            raise refusal(where, cause.response.status_code, headers.get("Retry-After")) from None
        raise FetchFailed(
            f"{where.url} cannot be fetched ({innermost(error)})", NO_NETWORK
        ) from None


@cache
def prepare_client() -> None:
    """Let the hub's client look at every answer with :func:`check_answer` first, and print nothing:
    what fails is one line of ours.
    """
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def make_client() -> Any:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [*hooks.get("response", []), check_answer]}
        return client

    set_client_factory(make_client)
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)


def check_answer(answer: Any) -> None:
    """Raise FetchFailed if the answer about a file has a commit or an ETag that is a path."""
    if answer.request.method != "HEAD":
        return
    for header in HEADERS:
        name = answer.headers.get(header)
        if name is not None and not PLAIN_NAME.fullmatch(name.removeprefix("W/").strip('"')):
            where = answer.request.url.host
            raise FetchFailed(f"{where} answers with {header}: {name[:60]!r}", ODD_HUB)
