"""An export on the hub: a model repository that takes one commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, RunFailed
from bench.data.fetching import offline_now

LOGIN = "log in with: hf auth login   (or set HF_TOKEN to a token that may write)"
OURS = {".gitattributes", "README.md"}  # what a new repository may hold already
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,94}/[A-Za-z0-9][\w.-]{0,94}", re.ASCII)


@dataclass(frozen=True)
class Pushed:
    """Where an export is: the repository and the commit, by which others can pin it."""

    name: str
    revision: str
    url: str


def check_name(name: str) -> None:
    """Raises BenchError for a name that is not owner/name."""
    if not NAME.fullmatch(name) or "--" in name or ".." in name:
        raise BenchError(f"'{name}' is no name of a repository", "owner/name: letters, digits, - _ and . only")


def check_online(offline: bool) -> None:
    """Raises BenchError where no connection may be opened."""
    if offline or offline_now():
        why = "--offline" if offline else "HF_HUB_OFFLINE"
        raise BenchError(f"push needs the hub, and {why} forbids a connection", "bench export RUN --to DIR writes the same files here")


def check_repository(name: str, *, replace: bool) -> None:
    """Raises BenchError where the hub does not know who asks, or the repository holds other files and ``replace`` is not given."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    api = HfApi()
    try:
        api.whoami()
    except Exception as error:
        raise _said(error, name) from None
    try:
        files = set(api.list_repo_files(name))
    except RepositoryNotFoundError:
        return
    except Exception as error:
        raise _said(error, name) from None
    if (others := sorted(files - OURS)) and not replace:
        raise BenchError(
            f"{name} holds {len(others)} files already, the first is {others[0]}; nothing was sent",
            "--replace puts this export in their place (the hub keeps the older commits), or take another name",
        )


def upload(folder: Path, name: str, run_id: str, *, private: bool) -> Pushed:
    """Make the repository if there is none, and put the folder in it in one commit; files that were there and are not in the
    folder are removed by it. Raises RunFailed where the hub refuses or cannot be reached."""
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        done: Any = api.upload_folder(repo_id=name, folder_path=folder, commit_message=f"bench push {run_id}", delete_patterns=["*"])
    except Exception as error:
        raise _said(error, name) from None
    return Pushed(name, str(done.oid), f"{api.endpoint}/{name}")


def _said(error: Exception, name: str) -> BenchError:
    """What the hub's client raised, as one line that says what to do."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) if isinstance(error, HfHubHTTPError) else None
    reason = " ".join(str(error).split())[:160]
    if isinstance(error, LocalTokenNotFoundError) or status == 401:
        return BenchError(f"{name}: the hub does not know who you are", LOGIN)
    if status == 403:
        return BenchError(f"{name}: your token may not write there", "take a token with write access and a name of your own; " + LOGIN)
    if status == 429:
        return RunFailed(f"{name}: the hub asks to wait (too many requests)", "run the same command again later")
    if status is not None:
        return RunFailed(f"{name}: the hub answered {status}: {reason}", "run the same command again")
    return RunFailed(f"{name}: the hub cannot be reached: {reason}", "check the network, and HF_ENDPOINT if it is set")
