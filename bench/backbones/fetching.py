"""Brings the files of a backbone to this machine."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from bench.backbones.adapter_folder import find_adapter, hash_adapter
from bench.backbones.hub import fetch_from_hub, repository_names, split_revision
from bench.backbones.known_models import KNOWN
from bench.backbones.readable import check_readable
from bench.backbones.reference import Reference
from bench.base.errors import NotAModel
from bench.data.fetching import offline_now


def fetch_backbone(
    reference: Reference,
    *,
    offline: bool,
    allow_pickle: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Reference:
    """Bring the files of a reference to this machine, and return the reference to them.

    ``say`` gets one line about what is fetched. Raises NotAModel if they are not available.
    """
    if reference.path is not None:
        return reference
    name = reference.source or reference.name
    model = split_revision(name)[0]
    hint = ""
    if model not in KNOWN:
        near = difflib.get_close_matches(model, KNOWN, n=1, cutoff=0.8)
        if near:
            hint = f"did you mean {near[0]}? else "
    if offline or offline_now():
        from huggingface_hub.constants import HF_HUB_CACHE

        reason = "--offline" if offline else "HF_HUB_OFFLINE"
        folder = "models--" + repository_names(model)[0].replace("/", "--")
        raise NotAModel(
            f"backbone '{name}' is not on this machine and {reason} forbids fetching it",
            f"{hint}on a machine with a network, run: bench doctor --backbone {name} --fetch; "
            f"then copy {folder} out of its hub cache to {HF_HUB_CACHE}",
        )
    snapshot = fetch_from_hub(name, allow_pickle=allow_pickle, near=hint, say=say)
    check_readable(snapshot, allow_pickle=allow_pickle, name=name)
    revision = reference.revision if reference.trained else snapshot.name
    if reference.trained is not None and find_adapter(reference.trained.parent) is not None:
        revision = hash_adapter(reference.trained.parent, snapshot.name)
    return replace(reference, revision=revision, path=snapshot, hub=True)
