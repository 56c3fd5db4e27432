"""Brings the files of a backbone to this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.backbones.adapter_folder import find_adapter, hash_adapter
from bench.backbones.hub import fetch_from_hub, repository_names, split_revision
from bench.backbones.known_models import nearest_words
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
    if offline or offline_now():
        from huggingface_hub.constants import HF_HUB_CACHE

        # a session is offline, too, if the variable is set
        reason = "HF_HUB_OFFLINE" if offline_now() else "--offline"
        allow = "unset HF_HUB_OFFLINE" if offline_now() else "leave --offline out"
        folder = "models--" + repository_names(model)[0].replace("/", "--")
        raise NotAModel(
            f"backbone '{name}' is not on this machine and {reason} forbids fetching it"
            f"{nearest_words(model)}",
            f"{allow}; or, on a machine with a network: bench doctor {name} --fetch; "
            f"then copy {folder} out of its hub cache to {HF_HUB_CACHE}",
        )
    snapshot = fetch_from_hub(name, allow_pickle=allow_pickle, say=say)
    check_readable(snapshot, allow_pickle=allow_pickle, name=name)
    revision = reference.revision if reference.trained else snapshot.name
    if reference.trained is not None and find_adapter(reference.trained.parent) is not None:
        revision = hash_adapter(reference.trained.parent, snapshot.name)
    return replace(reference, revision=revision, path=snapshot, hub=True)
