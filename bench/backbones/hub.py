"""Models of the Hugging Face hub: what is in its cache on this machine, and fetching what is not.

A revision is part of every name: the one written behind it (``owner/name@revision``), else the one that this project pins,
else the newest at the first fetch. What is here stays: a model that the cache has whole is not asked for again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bench.backbones.folder import PICKLES, WEIGHTS, is_whole
from bench.base.errors import FetchFailed, NotAModel
from bench.data.fetching import TIMEOUT, on_hub, repository_info, site
from bench.data.sets import ON_ITS_PAGE, Pending

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


def download(name: str, *, allow_pickle: bool, near: str, say: Callable[[str], None]) -> Path:
    """Fetch a model; gives its snapshot folder, whose name is the commit. Cut downloads are resumed by the hub's client.

    Raises NotAModel, with what to do: no such model, private or gated, no network, no safetensors, no space. ``near``: a name that may
    be meant instead; ``say`` shows, in one line, what is fetched.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    model, revision = split(name)
    repo = repositories(model)[0]
    revision = revision or PINNED.get(repo, "main")
    where = site("model", repo, revision, "")
    try:
        info = repository_info(where, say)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        wanted = _wanted(name, repo, sizes, allow_pickle)
        megabytes = sum(sizes[file] for file in wanted) / 1e6
        licence = getattr(info.card_data, "license", None) or "not stated"
        commit = str(info.sha)[:12]
        say(f"fetching backbone {name}: {repo} at {commit}, {megabytes:,.0f} MB, licence {licence}")
        if not sys.stderr.isatty():
            disable_progress_bars()
        snapshot = partial(
            snapshot_download,
            repo,
            revision=revision,
            allow_patterns=wanted,
            etag_timeout=TIMEOUT,
        )
        return Path(on_hub(lambda token: snapshot(token=token), where, say))
    except (FetchFailed, OSError) as failure:
        hint = getattr(failure, "hint", None) or "free some space, or set HF_HOME to another disk"
        raise NotAModel(f"backbone '{name}': {failure}", near + hint) from None


def _wanted(name: str, repo: str, files: Iterable[str], allow_pickle: bool) -> list[str]:
    """Which files are fetched: of several copies of the weights only those that transformers takes.

    Raises NotAModel where there are none, or only a pickle that nobody allowed.
    """
    from huggingface_hub.utils import filter_repo_objects

    names = {Path(file).name for file in files}
    if not names.isdisjoint(WEIGHTS):
        weights = ("model.safetensors", "model-*-of-*.safetensors")
    elif names.isdisjoint(PICKLES):
        raise NotAModel(
            f"'{name}' is no model that can be read here: {repo} has no model.safetensors",
            "give the name of a model of transformers or sentence-transformers",
        )
    elif allow_pickle:
        weights = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
    else:
        raise NotAModel(
            f"backbone '{name}' has its weights as a pickle only ({repo}: pytorch_model.bin), which could run code",
            "--allow-pickle reads its tensors, and nothing else of it, and keeps them as safetensors",
        )
    patterns = [*FILES, *weights, *(f"*/{pattern}" for pattern in weights)]
    return sorted(filter_repo_objects(files, allow_patterns=patterns, ignore_patterns=list(NOT)))


LICENCES = {"google-bert": "Apache-2.0", "FacebookAI": "MIT"}
"""Of the models with short names, as their pages state it."""


PARAMETERS = {
    "bert-base-uncased": 110_104_890,
    "bert-large-uncased": 336_224_058,
    "roberta-base": 125_288_793,
    "roberta-large": 356_462_681,
}
"""What the checkpoints of these models hold, with the dense layer of the MLM head; each number has four bytes."""


def describe_pending(name: str) -> Pending:
    """What fetching a model would bring, without asking the hub: size and licence where they are known."""
    model, revision = split(name)
    repo = repositories(model)[0]
    commit = revision or PINNED.get(repo)
    return Pending(
        name=name,
        kind="backbone",
        where=f"hub model {repo}" + (f" (commit {commit[:12]})" if commit else ""),
        urls=(site("model", repo, commit or "main", "").url,),
        bytes=4 * PARAMETERS.get(model.rpartition("/")[2], 0) or None,
        licence=LICENCES[CANONICAL[model]] if model in CANONICAL else ON_ITS_PAGE,
    )


def bring_over(name: str) -> str:
    """How a model comes to a machine without a network."""
    from huggingface_hub import constants

    folder = "models--" + repositories(split(name)[0])[0].replace("/", "--")
    return f"where there is a network: bench doctor --backbone {name} --fetch; then copy {folder} out of its hub cache to {constants.HF_HUB_CACHE}"
