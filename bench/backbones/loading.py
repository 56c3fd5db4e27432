"""Read a backbone into memory from the files of its reference."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from bench.backbones.adapted import put_on_adapters
from bench.backbones.dropout import check_dropout_arrived, set_dropout
from bench.backbones.encoder_class import encoder_class, without_pooling_layer
from bench.backbones.families import BUFFERS, family_title, without_base
from bench.backbones.fetching import fetch_backbone
from bench.backbones.folder import (
    VOCABULARIES,
    has_transformer,
    module_types,
    read_config,
    stored_as,
    transformer_folder,
)
from bench.backbones.four_bit import four_bit_options, in_four_bits, prepare_layers
from bench.backbones.heads import is_head
from bench.backbones.load_failures import damaged_weights, explain_failure, lacking_weights
from bench.backbones.reference import Reference, resolve
from bench.backbones.refusals import ADAPTER
from bench.backbones.sizes import check_sizes
from bench.backbones.tensors import checkpoint_names, take_trained
from bench.backbones.tokenizer import ReadTokenizer, check_vocabulary, read_tokenizer
from bench.base.errors import NotAModel
from bench.base.extras import install_hint

if TYPE_CHECKING:
    from bench.backbones.model import Backbone


SENTENCEPIECE = ("sentencepiece", "protobuf")
"""Packages that transformers needs to read a SentencePiece vocabulary."""
PREFIX = "prefix_encoder."
"""The first part of the names of a stored prompt's tensors (PromCSE, DCPCSE)."""
NUMBER_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "stored": "auto"}
"""Number format of an encoder -> its name for transformers."""
MOST_NAMES = 3
"""Tensors that an error names."""


@dataclass(frozen=True)
class _FolderRead:
    """The objects that transformers makes of a model folder."""

    config: Any
    tokenized: ReadTokenizer
    encoder: Any
    # transformers' lists of missing and unexpected tensors
    info: Mapping[str, Any]


def load(
    reference: Reference,
    *,
    dropout: float | None = None,
    offline: bool = False,
    dtype: str = "fp32",
    reads: tuple[str, ...] = (),
    merge: bool = True,
) -> Backbone:
    """Load encoder and tokenizer on the CPU, in evaluation mode.

    ``dropout`` replaces every dropout of the encoder. ``dtype``: fp32, bf16, fp16, 4bit (its linear
    layers), or "stored": as the files have it. ``reads``: the first parts of the names of tensors
    that are outside of the encoder and that the caller reads. ``merge``: add the adapters of a run
    to the weights; else they are left out.

    Raises NotAModel if the folder cannot be read as a transformers encoder, lacks weights, or holds
    weights that would be left out although they change the encoder's output; also if ``dropout``
    does not arrive in all of the encoder.
    """
    from bench.backbones.model import Backbone

    reference = fetch_backbone(reference, offline=offline)
    assert reference.path is not None
    if reference.beneath is not None:
        # a base without a path is on the hub; it was fetched just now, into the reference's path
        beneath = replace(reference.beneath, path=reference.beneath.path or reference.path)
        whole = load(beneath, dropout=dropout, offline=offline, reads=reads)
        return put_on_adapters(whole, reference, dtype, merge=merge)
    name, folder = reference.name, transformer_folder(reference.path)
    _check_files(name, reference.path)
    silence_transformers()
    damage = damaged_weights(folder)
    if damage is not None:
        raise damage
    check_sizes(name, folder, read_config(folder), len(checkpoint_names(folder)))
    # a run's weights take the place of the folder's before they are narrowed
    in_files = "fp32" if dtype == "4bit" and reference.trained is not None else dtype
    read = _read_folder(name, folder, dropout, in_files)
    config, encoder = read.config, read.encoder
    tokenizer = read.tokenized.tokenizer
    check_vocabulary(name, tokenizer, config)
    _check_missing(name, folder, read.info["missing_keys"])
    unused = _without_buffers(read.info["unexpected_keys"])
    strange = _outside_of_heads(unused, encoder, config, reads)
    _check_unused(name, folder, config.model_type, strange)
    if reference.trained is not None:
        take_trained(encoder, reference.trained)
        if dtype == "4bit":
            encoder = in_four_bits(encoder)
    if in_files == "4bit":
        prepare_layers(encoder)
    if dropout is not None:
        check_dropout_arrived(name, encoder, dropout)
    return Backbone(
        name=name,
        revision=reference.revision,
        family=config.model_type,
        encoder=encoder.eval(),
        tokenizer=tokenizer,
        path=reference.path,
        weights=folder,
        trained=reference.trained,
        unused=tuple(unused),
        note=read.tokenized.note,
    )


def _check_files(name: str, path: Path) -> None:
    """Raise NotAModel if a folder has no transformer, no tokenizer, or lacks a package for it."""
    if not has_transformer(path):
        if (path / ADAPTER).is_file():
            raise NotAModel(
                f"{name} is an adapter that sentence-transformers saved with its own pooling",
                "bench evaluate scores it as it is; to train, or to pool it otherwise, "
                f"copy {ADAPTER}, the weights and the tokenizer to a folder without modules.json",
            )
        raise NotAModel(
            f"{name} has no transformer: its first module is {module_types(path)[0]}",
            "bench evaluate scores it as it is; "
            "to train, or to pool it otherwise, give a transformers checkpoint",
        )
    folder = transformer_folder(path)
    vocabularies = [file for file in VOCABULARIES if (folder / file).exists()]
    if not vocabularies:  # transformers would make up an empty one
        raise NotAModel(
            f"{name} has no tokenizer: none of {', '.join(VOCABULARIES)} is there",
            "save the tokenizer into the folder",
        )
    packages = [package for package in SENTENCEPIECE if not any(distributions(name=package))]
    if packages and all(file.endswith(".model") for file in vocabularies):
        raise NotAModel(
            f"{name} has a SentencePiece vocabulary ({vocabularies[0]}), "
            f"which needs {' and '.join(packages)}",
            install_hint("sentencepiece"),
        )


def _read_folder(name: str, folder: Path, dropout: float | None, dtype: str) -> _FolderRead:
    """Read config, tokenizer and encoder. Raises NotAModel, with the reason."""
    import transformers

    options: dict[str, Any] = {"output_loading_info": True, "trust_remote_code": False}
    options |= four_bit_options() if dtype == "4bit" else {"dtype": NUMBER_TYPES[dtype]}
    read_again: Any = None
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if dropout is not None:
            set_dropout(config, dropout)
        tokenized = read_tokenizer(folder)
        read_again = partial(
            encoder_class(config).from_pretrained, folder, config=config, **options
        )
        encoder, info = without_pooling_layer(read_again)
    except NotAModel:
        raise
    except Exception as error:  # transformers raises many kinds for a damaged folder
        raise explain_failure(name, folder, error, read_again) from None
    return _FolderRead(config, tokenized, encoder, info)


def _without_buffers(tensors: Iterable[str]) -> list[str]:
    """Return the names of tensors that are weights, sorted; buffers are computed when loading."""
    weights: list[str] = []
    for tensor in sorted(tensors):
        if tensor.split(".")[-1] not in BUFFERS:
            weights.append(tensor)
    return weights


def _check_missing(name: str, folder: Path, keys: Iterable[str]) -> None:
    """Raise NotAModel if weights of the encoder are missing in its checkpoint."""
    missing = sorted(key for key in keys if "pooler" not in key and "position_ids" not in key)
    if missing:
        raise lacking_weights(name, folder, missing)


def load_without_encoder(reference: Reference, *, offline: bool = False) -> Backbone:
    """Return a backbone without a model, such as word vectors, which the caller loads."""
    from bench.backbones.model import Backbone

    reference = fetch_backbone(reference, offline=offline)
    assert reference.path is not None
    return Backbone(
        name=reference.name,
        revision=reference.revision,
        family="",
        encoder=None,
        tokenizer=None,
        path=reference.path,
    )


def _outside_of_heads(
    tensors: Iterable[str], encoder: Any, config: Any, reads: tuple[str, ...]
) -> list[str]:
    """Return the tensors that belong to no head and that the caller does not read either."""
    strange: list[str] = []
    for tensor in tensors:
        inside = without_base(tensor).removeprefix(f"{encoder.base_model_prefix}.")
        is_read = bool(reads) and inside.startswith(reads)
        if not is_read and not is_head(inside, config):
            strange.append(tensor)
    return strange


def _check_unused(name: str, folder: Path, model_type: str, strange: list[str]) -> None:
    """Raise NotAModel if a checkpoint holds tensors that nothing reads."""
    if not strange:
        return
    shown = ", ".join(strange[:MOST_NAMES])
    if len(strange) > MOST_NAMES:
        shown += f" and {len(strange) - MOST_NAMES} more"
    file = next(folder / name for name in stored_as(folder) if (folder / name).exists())
    hint = (
        "take the config.json that belongs to these weights, "
        "or save the file without these tensors if no score needs them"
    )
    if any(tensor.startswith(PREFIX) for tensor in strange):
        hint = (
            "a PromCSE or DCPCSE checkpoint: "
            f"bench run --method stored-prefix --backbone {quote(name)}"
        )
    raise NotAModel(
        f"{file} holds tensors that a {family_title(model_type)} encoder does not read: {shown}",
        hint,
    )


def check_stored_prefix(reference: Reference, reads: tuple[str, ...]) -> None:
    """Raise NotAModel for a checkpoint with a stored prefix that the method would leave out.

    This is called before anything is started.
    """
    if reference.path is None or PREFIX in reads:
        return
    folder = transformer_folder(reference.path)
    stored: list[str] = []
    with contextlib.suppress(NotAModel):  # the file is damaged, which load() reports
        stored = [name for name in checkpoint_names(folder) if name.startswith(PREFIX)]
    _check_unused(reference.name, folder, str(reference.config().get("model_type", "")), stored)


def load_backbone(name: str, *, offline: bool = False) -> Backbone:
    """Load another pretrained encoder, on the CPU, in evaluation mode.

    Args:
        name: A hub name, a folder or a run's folder.
        offline: Open no connection.

    Returns:
        Encoder and tokenizer.

    Raises:
        NotAModel: If the folder cannot be read as a transformers encoder, lacks weights, or holds
            weights that would be left out although they change the encoder's output.
    """
    return load(resolve(name), offline=offline)


def silence_transformers() -> None:
    """Switch off the progress bars and the advice of transformers: bench reports by itself."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
