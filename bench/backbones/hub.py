"""Models of the Hugging Face hub: what is in its cache on this machine, and fetching what is not.

A revision is part of every name: the one written behind it (``owner/name@revision``), else the one that this project pins,
else the newest at the first fetch. What is here stays: a model that the cache has whole is not asked for again.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench.backbones.folder import PICKLES, WEIGHTS, is_whole
from bench.base.errors import NotAModel
from bench.data.fetching import TIMEOUT, endpoint, without_refused_token
from bench.data.sets.sources import ON_ITS_PAGE, Pending

CANONICAL = {
    "bert-base-uncased": "google-bert",
    "bert-large-uncased": "google-bert",
    "roberta-base": "FacebookAI",
    "roberta-large": "FacebookAI",
}
PINNED = {
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "google-bert/bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    "FacebookAI/roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
    "FacebookAI/roberta-large": "722cf37b1afa9454edce342e7895e588b6ff1d59",
}
"""The commits that a name without a revision means: those that other people's published work names for these models."""
FILES = ("*.json", "*.txt", "*.model", "merges.txt", "vocab.*")  # beside the weights
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
SPARE = 100_000_000  # bytes that a download leaves free on the disk
LOGIN = "hf auth login"


def split(name: str) -> tuple[str, str | None]:
    """ "owner/name@revision" -> the name, and the revision or None."""
    model, _, revision = name.partition("@")
    return model, revision or None


def repositories(model: str) -> list[str]:
    """Where the hub keeps a model: its owner's, and the short name that older caches have."""
    return [f"{CANONICAL[model]}/{model}", model] if model in CANONICAL else [model]


def in_cache(name: str, weights: Sequence[str] = WEIGHTS) -> Path | None:
    """The snapshot folder of a model that the hub's cache holds whole (``weights``, tokenizer, config), else None."""
    model, revision = split(name)
    for repo in repositories(model):
        for wanted in [revision] if revision else [PINNED.get(repo), "main"]:
            snapshot = _snapshot(repo, wanted) if wanted else None
            if snapshot is not None and is_whole(snapshot, weights):
                return snapshot
    return None


def _snapshot(repo: str, revision: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for file in ("config.json", "modules.json"):
        path = try_to_load_from_cache(repo, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    return None


def download(name: str, *, allow_pickle: bool, hint: str, say: Callable[[str], None]) -> Path:
    """Fetch a model; gives its snapshot folder, whose name is the commit. Cut downloads are resumed by the hub's client.

    Raises NotAModel, with what to do: no such model, private or gated, no network, no safetensors, no space. ``hint`` is
    what to try where the name may be wrong; ``say`` is told, in one line, what is fetched.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    model, revision = split(name)
    repo = repositories(model)[0]
    with _in_plain_words(name, repo, hint):
        revision = revision or PINNED.get(repo, "main")
        info = without_refused_token(
            lambda token: HfApi(token=token).model_info(
                repo, revision=revision, files_metadata=True, timeout=TIMEOUT
            ),
            say,
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        wanted = _wanted(name, repo, sizes, allow_pickle)
        total = sum(wanted.values())
        _check_space(name, total)
        licence = getattr(info.card_data, "license", None) or "not stated"
        say(
            f"fetching backbone {name}: {repo} at {str(info.sha)[:12]}, {total / 1e6:,.0f} MB, licence {licence}"
        )
        if not sys.stderr.isatty():
            disable_progress_bars()
        return Path(
            without_refused_token(
                lambda token: snapshot_download(
                    repo,
                    revision=revision,
                    allow_patterns=sorted(wanted),
                    etag_timeout=TIMEOUT,
                    token=token,
                ),
                say,
            )
        )


def _wanted(name: str, repo: str, sizes: dict[str, int], allow_pickle: bool) -> dict[str, int]:
    """Which files are fetched, with their sizes: of several copies of the weights only those that transformers takes.

    Raises NotAModel where there are none, or only a pickle that nobody allowed.
    """
    names = {Path(file).name for file in sizes}
    if not names.isdisjoint(WEIGHTS):
        weights, parts = "*.safetensors", ("model.safetensors", "model-*-of-*.safetensors")
    elif names.isdisjoint(PICKLES):
        raise NotAModel(
            f"'{name}' is no model that can be read here: {repo} has no model.safetensors",
            "give the name of a model of transformers or sentence-transformers",
        )
    elif allow_pickle:
        weights, parts = "*.bin", ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
    else:
        raise NotAModel(
            f"backbone '{name}' has its weights as a pickle only ({repo}: pytorch_model.bin), which could run code",
            "--allow-pickle reads its tensors, and nothing else of it, and keeps them as safetensors",
        )

    def is_wanted(file: str) -> bool:
        if any(fnmatch(file, pattern) for pattern in NOT):
            return False
        name, patterns = (Path(file).name, parts) if fnmatch(file, weights) else (file, FILES)
        return any(fnmatch(name, pattern) for pattern in patterns)

    return {file: size for file, size in sizes.items() if is_wanted(file)}


def _check_space(name: str, needed: int) -> None:
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE)
    folder = next(parent for parent in (cache, *cache.parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        raise NotAModel(
            f"backbone '{name}' needs {needed / 1e6:,.0f} MB, and {cache} has {free / 1e6:,.0f} MB free",
            "free some space, or set HF_HOME to a folder on another disk",
        )


@contextlib.contextmanager
def _in_plain_words(name: str, repo: str, hint: str) -> Iterator[None]:
    """What the hub's client raises -> one line that says what is wrong and what to do."""
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except NotAModel:
        raise
    except Exception as error:  # the hub client raises many kinds
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, GatedRepoError):
            why = f"backbone '{name}' is gated: {repo} is open only to users who accepted its terms"
            hint = f"accept them on its page of the hub, then: {LOGIN}"
        elif isinstance(error, RevisionNotFoundError):
            why = (
                f"the hub has {repo}, but no revision '{split(name)[1] or PINNED.get(repo)}' of it"
            )
            hint = f"name another: {repo}@REVISION"
        elif isinstance(error, RepositoryNotFoundError) or status in (401, 404):
            why = f"the hub has no model '{repo}', or it is private and you are not logged in"
            hint = f"{hint}; for a private one: {LOGIN}"
        else:
            reason = " ".join(str(error).split())[:160] or type(error).__name__
            why = f"backbone '{name}' could not be fetched from the hub: {reason}"
        raise NotAModel(why, hint) from None


LICENCES = {"google-bert": "Apache-2.0", "FacebookAI": "MIT"}
"""Of the models with short names, as their pages state it."""


def describe_pending(name: str, sizes: Mapping[str, Any]) -> Pending:
    """What fetching a model would bring, without asking the hub: size and licence where they are known. ``sizes``: of its config."""
    model, revision = split(name)
    repo = repositories(model)[0]
    commit = revision or PINNED.get(repo)
    return Pending(
        name=name,
        kind="backbone",
        where=f"hub model {repo}" + (f" (commit {commit[:12]})" if commit else ""),
        urls=(f"{endpoint()}/{repo}",),
        bytes=4 * parameters(sizes) if sizes else None,
        licence=LICENCES[CANONICAL[model]] if model in CANONICAL else ON_ITS_PAGE,
    )


def parameters(sizes: Mapping[str, Any]) -> int:
    """Of BERT or RoBERTa with its MLM head's dense layer: what their checkpoints hold, each number four bytes."""
    hidden, inner, vocabulary = (
        sizes["hidden_size"],
        sizes["intermediate_size"],
        sizes["vocab_size"],
    )
    embeddings = (vocabulary + sizes["max_position_embeddings"] + 2 + 2) * hidden
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    head = hidden * hidden + 3 * hidden + vocabulary
    return int(embeddings + sizes["num_hidden_layers"] * layer + hidden * hidden + hidden + head)


def bring_over(name: str) -> str:
    """How a model comes to a machine without a network."""
    from huggingface_hub import constants

    folder = "models--" + repositories(split(name)[0])[0].replace("/", "--")
    return f"where there is a network: bench doctor --backbone {name} --fetch; then copy {folder} out of its hub cache to {constants.HF_HUB_CACHE}"
