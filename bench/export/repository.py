"""Check a repository of the hub, and upload a folder to it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from bench.base.errors import BenchError, RunFailed, one_line
from bench.data.fetching import offline_now

LOGIN = "hf auth login, or HF_TOKEN with a token that has write access; HF_ENDPOINT for another hub"
OURS = {".gitattributes", "README.md"}
"""Files that a new repository may hold already."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,94}/[A-Za-z0-9][\w.-]{0,94}", re.ASCII)


def check_repository(name: str, *, replace: bool, offline: bool) -> None:
    """Raise BenchError without a valid login, or if the repository holds other files.

    ``replace``: other files may be there.
    """
    from huggingface_hub import HfApi

    if not NAME.fullmatch(name) or "--" in name or ".." in name:
        raise BenchError(
            f"'{name}' is not a repository name", "owner/name: letters, digits, - _ and . only"
        )
    if offline or offline_now():
        raise BenchError(
            "--push needs the hub, and --offline (or HF_HUB_OFFLINE) forbids a connection",
            "bench export RUN --to DIR writes the same files here",
        )
    with _hub_errors(name):
        api = HfApi()
        api.whoami()
        files: set[str] = set()
        if api.repo_exists(name):
            files.update(api.list_repo_files(name))
    others = sorted(files - OURS)
    if others and not replace:
        raise BenchError(
            f"{name} already holds {len(others)} files, such as {others[0]}; nothing was uploaded",
            "--replace overwrites them (the hub keeps the older commits); or choose another name",
        )


def upload(folder: Path, name: str, run_id: str, *, private: bool) -> tuple[str, str]:
    """Put a folder into a repository in one commit, and return (commit, address).

    The repository is made if it does not exist; files that are not in the folder are removed from
    it. Raises RunFailed if the hub refuses or cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    with _hub_errors(name):
        api.create_repo(name, private=private, exist_ok=True)
        done = api.upload_folder(
            repo_id=name,
            folder_path=folder,
            commit_message=f"bench export {run_id}",
            delete_patterns=["*"],
        )
    return str(done.oid), f"{api.endpoint}/{name}"


@contextlib.contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turn errors of the hub's client into one line."""
    try:
        yield
    except Exception as error:
        raise RunFailed(f"{name}: the hub refused it: {one_line(error)[:200]}", LOGIN) from None
