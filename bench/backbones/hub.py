"""Models of the Hugging Face hub: find them in the hub's cache on this machine, or fetch them.

Every name has a revision: the one after the name (``owner/name@revision``), or the one that this
project pins, or the newest at the first fetch. A model that is complete in the cache is not fetched
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from bench.backbones.folder import (
    PICKLES,
    WEIGHTS,
    is_whole,
)
from bench.backbones.known_models import (
    CANONICAL,
    PARAMETERS,
    PINNED,
    nearest_known,
    nearest_words,
)
from bench.backbones.pickles import ALLOW
from bench.backbones.refusals import ADAPTER
from bench.base.errors import DataDamaged, FetchFailed, FetchRefused, NotAModel
from bench.base.terminal import shows_bars
from bench.data.fetching import check_network, site
from bench.data.hub import fetch_snapshot, repository_info
from bench.data.sets import ON_ITS_PAGE, Pending

FILES = ("*.json", "*.txt", "*.model", "merges.txt", "vocab.*")
"""Patterns of the files that are fetched besides the weights."""
NOT = (
    "onnx/*",
    "openvino/*",
    "coreml/*",
    "*.ot",
    "flax_model*",
    "tf_model*",
    "training_args.bin",
    "optimizer*",
)
"""Patterns of files that are never fetched."""
LICENCES = {"google-bert": "Apache-2.0", "FacebookAI": "MIT"}
"""Owner of models -> the licence on their pages."""


def split_revision(name: str) -> tuple[str, str | None]:
    """Split "owner/name@revision" into the name and the revision; None without a revision."""
    model, _, revision = name.partition("@")
    return model, revision or None


def repository_names(model: str) -> list[str]:
    """Return the model's names on the hub: with its owner, then the short one of older caches."""
    if model in CANONICAL:
        return [f"{CANONICAL[model]}/{model}", model]
    return [model]


def find_in_cache(name: str, weights: Sequence[str] = WEIGHTS) -> Path | None:
    """Return the snapshot folder of a model if it is complete in the hub's cache, else None.

    Whole means: config, tokenizer, and ``weights``.
    """
    from huggingface_hub import try_to_load_from_cache

    model, revision = split_revision(name)
    for repo in repository_names(model):
        revisions = [revision] if revision else [PINNED.get(repo, "main"), "main"]
        for wanted in revisions:
            for file in ("config.json", "modules.json"):
                path = try_to_load_from_cache(repo, file, revision=wanted)
                if isinstance(path, str) and is_whole(Path(path).parent, weights):
                    return Path(path).parent
    return None


def fetch_from_hub(name: str, *, allow_pickle: bool, say: Callable[[str], None]) -> Path:
    """Fetch a model, and return its snapshot folder, named after the commit.

    ``say`` gets one line about what is fetched. Raises NotAModel if there is no such model, no
    access, no network, no safetensors file or no space.
    """
    from huggingface_hub.utils import disable_progress_bars

    model, revision = split_revision(name)
    repo = repository_names(model)[0]
    revision = revision or PINNED.get(repo, "main")
    where = site("model", repo, revision, "")
    try:
        info = repository_info(where)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        wanted = _wanted(name, repo, sizes, allow_pickle)
        licence = getattr(info.card_data, "license", None) or "not stated"
        size = f"{sum(sizes[file] for file in wanted) / 1e6:,.0f} MB"
        say(f"fetching backbone {name}: {repo} at {str(info.sha)[:12]}, {size}, licence {licence}")
        if not shows_bars():
            disable_progress_bars()
        return fetch_snapshot(where, wanted)
    except FetchRefused as refused:
        raise _unknown_model(name, refused) from None
    except (FetchFailed, DataDamaged, OSError) as failure:
        hint = getattr(failure, "hint", None) or "free some space, or set HF_HOME to another disk"
        message = getattr(failure, "message", str(failure))
        raise NotAModel(f"backbone '{name}': {message}", hint) from None


def _unknown_model(name: str, refused: FetchRefused) -> NotAModel:
    """Return the error for a name that the hub refuses, with the known name that is nearest."""
    near = nearest_known(split_revision(name)[0])
    if near is None:
        return NotAModel(f"backbone '{name}': {refused.message}", refused.hint)
    return NotAModel(
        f"backbone '{name}': {refused.message}; nearest: {near}",
        f"--backbone {near}; or, for a model that is not public: hf auth login",
    )


def _wanted(name: str, repo: str, files: Iterable[str], allow_pickle: bool) -> list[str]:
    """Choose the files to fetch: one copy of the weights, the config and the vocabulary.

    Raises NotAModel if the repository has no weights, or only pickles without ``allow_pickle``.
    """
    from huggingface_hub.utils import filter_repo_objects

    names = {Path(file).name for file in files}
    if not names.isdisjoint(WEIGHTS):
        weights: tuple[str, ...] = ("model.safetensors", "model-*-of-*.safetensors")
        pickles = pickled_modules(files)
        if pickles and not allow_pickle:
            raise NotAModel(
                f"backbone '{name}': {pickles[0]} of {repo} is a pickle, which could run code",
                ALLOW,
            )
        weights += tuple(pickles)
    elif names.isdisjoint(PICKLES):
        if ADAPTER in names:
            raise NotAModel(
                f"'{name}' is an adapter of another model ({repo} holds {ADAPTER})",
                f"hf download {repo} --local-dir FOLDER, and give that folder",
            )
        raise NotAModel(
            f"'{name}' cannot be read here: {repo} has no model.safetensors",
            "give the name of a model of transformers or sentence-transformers",
        )
    elif allow_pickle:
        weights = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
    else:
        raise NotAModel(
            f"backbone '{name}' has its weights as a pickle only ({repo}: pytorch_model.bin), "
            "which could run code",
            ALLOW,
        )
    return sorted(
        filter_repo_objects(
            files,
            allow_patterns=[*FILES, *weights, *(f"*/{pattern}" for pattern in weights)],
            ignore_patterns=list(NOT),
        )
    )


def pickled_modules(files: Iterable[str]) -> list[str]:
    """Return the pickles of modules in a listing, such as "2_Dense/pytorch_model.bin".

    Those with a safetensors file next to them are left out.
    """
    names = set(files)
    found: list[str] = []
    for name in sorted(names):
        file = PurePosixPath(name)
        number = file.parent.name.partition("_")[0]
        is_in_module = len(file.parts) == 2 and number.isdigit()
        if is_in_module and file.name == PICKLES[0] and f"{file.parent}/{WEIGHTS[0]}" not in names:
            found.append(name)
    return found


def describe_pending(name: str) -> Pending:
    """Describe what fetching a model would bring, without a connection to the hub."""
    model, revision = split_revision(name)
    repo = repository_names(model)[0]
    commit = revision or PINNED.get(repo)
    where = f"hub model {repo}"
    if commit:
        where += f" (commit {commit[:12]})"
    parameters = PARAMETERS.get(model.rpartition("/")[2])
    return Pending(
        name=name,
        kind="backbone",
        where=where,
        urls=(site("model", repo, commit or "main", "").url,),
        bytes=None if parameters is None else 4 * parameters,
        licence=LICENCES.get(CANONICAL.get(model, ""), ON_ITS_PAGE),
    )


def look_up(pending: Pending, *, offline: bool, allow_pickle: bool) -> Pending:
    """Ask the hub for a model that this project does not know, and add its size and licence.

    ``where`` of the result says if the name is unchecked, because no connection is allowed
    (``offline``) or the hub does not answer. Raises NotAModel if the hub has no such model, or none
    that can be read.
    """
    model, revision = split_revision(pending.name)
    if pending.bytes is not None:
        return pending
    nearest = nearest_words(model)
    if offline:
        return replace(pending, where=f"{pending.where}, unchecked: offline{nearest}")
    where = site("model", repository_names(model)[0], revision or "main", "")
    try:
        check_network(pending.urls)
        info = repository_info(where)
    except FetchRefused as refused:
        raise _unknown_model(pending.name, refused) from None
    except (FetchFailed, OSError):
        unchecked = f"{pending.where}, unchecked: no answer of the hub{nearest}"
        return replace(pending, where=unchecked)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    wanted = _wanted(pending.name, where.repo, sizes, allow_pickle)
    return replace(
        pending,
        bytes=sum(sizes[file] for file in wanted),
        licence=getattr(info.card_data, "license", None) or pending.licence,
    )
