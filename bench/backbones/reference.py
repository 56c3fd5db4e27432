"""Find the files and the revision of a backbone's name.

Nothing here imports torch: plans and fingerprints need no more than this.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import Any

from bench.backbones.adapter_folder import find_adapter, hash_adapter, read_base_name
from bench.backbones.folder import (
    PICKLES,
    card_title,
    read_transformer_config,
    weights_hash,
)
from bench.backbones.hub import find_in_cache, split_revision
from bench.backbones.known_models import KNOWN
from bench.backbones.pickles import is_allowed
from bench.backbones.readable import check_readable
from bench.backbones.stored_adapters import holds_adapters, read_adapter_values
from bench.backbones.tensors import tensor_names
from bench.base.errors import NotAModel, UnknownName
from bench.base.files import expand_home
from bench.base.paths import find_path
from bench.base.places import recall_place
from bench.base.reading import RECORD_BYTES, is_plain_file, open_plain_file, read_plain_file
from bench.base.text import looks_like_a_run

LONGEST_SHORT_NAME = 60
"""Characters of a backbone's name in a run's id."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A backbone's name, resolved on this machine: ``resolve("bert-base-uncased").revision``.

    Attributes:
        name: As it was given.
        revision: A hub commit, or the sha256 of the weights of a folder; "unknown" if the files are
            not on this machine.
        path: The folder. None if the files are not on this machine yet.
        hub: It is a name of a hub.
        trained: The checkpoint of the run that fine-tuned it, which replaces the weights.
        title: Its name in tables, if that is another one: from its model card, or NAME=FOLDER.
        source: The hub's name of its files, if it is another one: a run's base, a record's
            revision.
        beneath: The backbone under the adapters that ``trained`` holds. None if it holds whole
            weights.
    """

    name: str
    revision: str
    path: Path | None
    hub: bool = False
    trained: Path | None = None
    title: str = ""
    source: str | None = None
    beneath: Reference | None = None

    @property
    def model(self) -> str:
        """The name without a revision, as recipes use it."""
        return split_revision(self.name)[0] if self.hub else self.name

    @property
    def short(self) -> str:
        """The part of the name in a run's id."""
        last_part = Path(self.name).name or "model"
        # a run's id has letters of ASCII alone; its fingerprint tells two such names apart
        plain = [c if c.isascii() and c.isalnum() or c in "._-" else "-" for c in last_part]
        return "".join(plain)[:LONGEST_SHORT_NAME]

    def config(self) -> dict[str, Any]:
        """Return the model's config with BERT's names for its sizes.

        It is empty if the files are not here yet, or if the folder has no transformer.
        """
        if self.path is None:
            return {}
        config = read_transformer_config(self.path)
        if self.adapter_values().get("attention") == "bidirectional":
            config["is_causal"] = False
        return config

    def adapter_values(self) -> dict[str, Any]:
        """Return the recipe of the run that trained the adapters of this backbone.

        It is empty for any other backbone.
        """
        if self.beneath is None or self.trained is None:
            return {}
        return read_adapter_values(self.trained)


def builtin_folder() -> Path:
    """Return the folder of the backbone that comes with the package."""
    return Path(str(files("bench.builtin") / "backbone"))


def resolve(name: str, *, allow_pickle: bool = False) -> Reference:
    """Find a backbone by name; ``owner/name@revision`` chooses a commit of the hub.

    ``allow_pickle``: weights in a pickle may be read, now and afterwards.
    Raises NotAModel for a folder without a model, UnknownName for a text that cannot be a name.
    """
    if name == "builtin":
        folder = builtin_folder()
        return Reference(name=name, revision=weights_hash(folder), path=folder)
    path = expand_home(name)
    if name and (path / "run.json").is_file():
        return run_folder(path)
    if name and find_adapter(path) is not None:
        return adapter_folder(path, name)
    if name and path.is_dir():
        check_readable(path, allow_pickle=allow_pickle, name=name)
        return Reference(name=name, revision=weights_hash(path), path=path, title=card_title(path))
    if path.is_file() or _looks_like_a_path(name) or looks_like_a_run(name):
        raise NotAModel(
            f"--backbone {name}: no such folder",
            "give a folder with config.json and model.safetensors, the folder of a run "
            "(runs/RUN), a hub name, or builtin",
        )
    if not _can_be_hub_name(name):
        raise UnknownName("backbone", name, KNOWN)
    return _resolve_hub_model(name, allow_pickle=allow_pickle)


def _looks_like_a_path(name: str) -> bool:
    model, _ = split_revision(name)
    return name.startswith((".", "/", "~")) or model.count("/") > 1


def _can_be_hub_name(name: str) -> bool:
    if not name or not all(c.isalnum() or c in "._-/@" for c in name):
        return False
    return name.count("@") <= 1 and not name.startswith("@") and not name.endswith("@")


def _resolve_hub_model(name: str, *, allow_pickle: bool) -> Reference:
    """Find a model in the hub's cache; its path is None if the cache does not hold it whole."""
    cached = find_in_cache(name)
    if cached is not None:
        check_readable(cached, allow_pickle=allow_pickle, name=name)
        return Reference(name=name, revision=cached.name, path=cached, hub=True)
    pickled = find_in_cache(name, PICKLES)
    if pickled is not None and (allow_pickle or is_allowed(pickled)):
        check_readable(pickled, allow_pickle=allow_pickle, name=name)
        return Reference(name=name, revision=pickled.name, path=pickled, hub=True)
    return Reference(name=name, revision="unknown", path=None, hub=True)


def resolve_recorded(name: str, revision: str | None, runs: Path | None = None) -> Reference:
    """Find the backbone that a record names.

    A hub model is taken at exactly the recorded revision, not the newest. A folder is looked for
    where this machine had it, according to the runs folder ``runs``, and then by its name.
    """
    # records of an earlier bench hold absolute paths, which need no place
    if runs is not None and find_path(name) is None:
        known_folder = recall_place(runs, revision)
        if known_folder is not None:
            return resolve(str(known_folder))
    newest = resolve(name)
    if newest.hub and revision is not None and re.fullmatch("[0-9a-f]{64}", revision):
        raise NotAModel(
            f"the folder {name} (sha256 {revision[:12]}), which this run was made with, is not "
            "here",
            f"put it, or a link to it, into the working directory as {name}",
        )
    if newest.hub and revision not in (None, "unknown", newest.revision):
        source = f"{newest.model}@{revision}"
        return replace(resolve(source), name=name, source=source)
    return newest


def run_folder(path: Path) -> Reference:
    """Use the encoder that a run fine-tuned as a backbone.

    Raises NotAModel if the run trained no encoder, is not finished, or was made from another
    revision.
    """
    try:
        record = json.loads(read_plain_file(path / "run.json", RECORD_BYTES))
        backbone, status = record["provenance"]["backbone"], record["status"]
        revision = backbone["revision"]
        base = resolve_recorded(backbone["name"], revision, path.absolute().parent)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAModel(f"{path}: run.json is damaged ({error})", "give another run") from None
    trained = path / "checkpoint" / "trained.safetensors"
    if status != "finished" or not is_plain_file(trained):
        raise NotAModel(
            f"{path} is a run without a finished checkpoint (status {status})",
            "run its command again, with --fresh if it had finished; if it trained nothing: "
            f"--backbone {quote(base.name)}",
        )
    if not any(name.startswith("encoder.") for name in tensor_names(trained)):
        raise NotAModel(
            f"{path} did not train its encoder, only parameters added to a frozen one",
            "a prompt method's run cannot be a backbone; take a run that fine-tuned the whole "
            "encoder",
        )
    if base.path is not None and base.revision != revision:
        raise NotAModel(
            f"{path} was trained on {base.name} revision {revision[:12]}; here it is "
            f"{base.revision[:12]}",
            "bring the revision that the run was trained on to this machine",
        )
    digest = hashlib.sha256(f"{revision}\0".encode())
    with open_plain_file(trained, inside=path) as stream:
        hashlib.file_digest(stream, lambda: digest)
    beneath = None
    if holds_adapters(trained):
        beneath = base
        if base.beneath is not None and read_adapter_values(trained).get("adapter") == "same":
            beneath = base.beneath  # the adapter went on: it is in this run's checkpoint
    return Reference(
        name=str(path),
        revision=digest.hexdigest(),
        path=base.path,
        hub=base.hub,
        trained=trained,
        source=base.source or base.name,
        beneath=beneath,
    )


def adapter_folder(path: Path, name: str) -> Reference:
    """Use a folder with an adapter that peft has saved as a backbone: its base, with the adapter
    merged.

    Raises NotAModel if the base is not a model of this machine or of the hub, in one line that
    names it.
    """
    weights = find_adapter(path)
    assert weights is not None
    base_name = read_base_name(path)
    try:
        base = resolve(base_name)
    except (NotAModel, UnknownName) as error:
        raise NotAModel(
            f"{name} is an adapter of {base_name}, which cannot be found here: {error.message}",
            f"put that model, or a link to it, at {base_name}",
        ) from None
    return Reference(
        name=name,
        revision=hash_adapter(path, base.revision),
        path=base.path,
        hub=base.hub,
        trained=weights,
        source=base.source or base.name,
        title=card_title(path),
        beneath=base,
    )
