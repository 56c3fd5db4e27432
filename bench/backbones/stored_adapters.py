"""Adapters in a file, put on an encoder by peft and added to its weights.

Two kinds of files are read: the checkpoint of a run, and the folder of an adapter that peft saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones.adapters import (
    KEY,
    AdapterSettings,
    add_adapters,
    check_installed,
    merge_adapters,
)
from bench.backbones.folder import read_settings
from bench.backbones.heads import is_head
from bench.backbones.refusals import ADAPTER, MERGE_FIRST
from bench.backbones.tensors import tensor_names, tensors_of
from bench.base.errors import NotAModel, one_line
from bench.base.reading import RECORD_BYTES, read_plain_file
from bench.base.text import plural

if TYPE_CHECKING:
    from torch import nn

CHANGED_BASE = ("pissa", "olora", "corda", "loftq")
"""Beginnings of peft's ``init_lora_weights`` with which the base's weights were changed, too."""


def holds_adapters(file: Path) -> bool:
    """Tell whether the checkpoint of a run holds adapters in the place of a whole encoder."""
    return any(name.startswith("encoder.") and KEY in name for name in tensor_names(file))


def read_adapter_values(file: Path) -> dict[str, Any]:
    """Read the recipe of the run that wrote a checkpoint; empty for an adapter of peft.

    Raises NotAModel if it cannot be read.
    """
    about = file.with_name("method.json")
    if not about.is_file():
        return {}
    try:
        recipe = json.loads(read_plain_file(about, RECORD_BYTES))["recipe"]
        return dict(recipe)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{about} is damaged: {error}", "give another run") from None


def merge_run(encoder: nn.Module, file: Path, values: Mapping[str, Any]) -> None:
    """Add the adapters in the checkpoint of a run to an encoder in float32.

    ``values``: the recipe of that run. Raises NotAModel if they do not fit.
    """
    try:
        settings = AdapterSettings(
            rank=int(values["lora_rank"]),
            alpha=float(values["lora_alpha"]),
            dropout=0.0,
            targets=str(values["lora_targets"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotAModel(
            f"{file.with_name('method.json')} does not say how its adapters were made ({error})",
            "give another run",
        ) from None
    add_adapters(encoder, settings, seed=0)
    stored = tensors_of(file, "encoder.")
    wanted = {name for name, _ in encoder.named_parameters() if KEY in name}
    hint = "bring the revision that the run was trained on to this machine"
    _check_names(file, missing=wanted - stored.keys(), unexpected=stored.keys() - wanted, hint=hint)
    try:
        encoder.load_state_dict(stored, strict=False)
    except RuntimeError as error:  # other shapes
        raise NotAModel(f"{file} does not fit its backbone: {one_line(error)}", hint) from None
    merge_adapters(encoder)


def merge_folder(encoder: Any, folder: Path, weights: Path) -> None:
    """Add the adapter of a folder that peft saved to an encoder in float32.

    Adapters of layers behind the encoder, such as ``lm_head``, are left out. Raises NotAModel for
    anything but low-rank matrices of linear layers, and if they do not fit the encoder.
    """
    check_installed()
    _check_kind(folder, read_settings(folder / ADAPTER))
    hint = f"look at base_model_name_or_path in {folder / ADAPTER}, or {MERGE_FIRST}"
    try:
        read = encoder.load_adapter(str(folder), use_safetensors=True, ignore_mismatched_sizes=True)
    except Exception as error:  # peft and transformers raise many kinds for a folder that is wrong
        raise NotAModel(f"{folder} does not fit its base: {one_line(error)}", hint) from None
    if read.mismatched_keys:
        tensor, stored, wanted = min(read.mismatched_keys, key=str)
        raise NotAModel(
            f"{weights}: {tensor} has shape {tuple(stored)}, and its base needs {tuple(wanted)}",
            hint,
        )
    unexpected = [name for name in read.unexpected_keys if not is_head(name, encoder.config)]
    _check_names(weights, missing=read.missing_keys, unexpected=unexpected, hint=hint)
    for name, parameter in encoder.named_parameters():
        if KEY in name and not parameter.isfinite().all():
            raise NotAModel(f"{weights}: {name} has NaN or infinite values", "copy it again")
    merge_adapters(encoder)


def _check_names(
    file: Path, *, missing: Iterable[str], unexpected: Iterable[str], hint: str
) -> None:
    """Raise NotAModel if a file lacks tensors of adapters, or holds some that nothing reads."""
    lacking = sorted(missing)
    strange = sorted(unexpected)
    if lacking:
        raise NotAModel(
            f"{file} lacks {plural(len(lacking), 'tensor')}, the first is {lacking[0]}", hint
        )
    if strange:
        raise NotAModel(
            f"{file} holds {plural(len(strange), 'tensor')} that its base has no place for; "
            f"the first is {strange[0]}",
            hint,
        )


def _check_kind(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raise NotAModel for an adapter that is more than W + scale * B A."""
    kind = str(settings.get("peft_type", "")).upper()
    start = settings.get("init_lora_weights")
    problem = ""
    if kind != "LORA":
        problem = f"an adapter of the kind {kind or 'unknown'}"
    elif settings.get("use_dora"):
        problem = "an adapter with DoRA"
    elif settings.get("layer_replication"):
        problem = "an adapter that repeats layers of its base"
    elif isinstance(start, str) and start.startswith(CHANGED_BASE):
        problem = f"an adapter that began with a changed base (init_lora_weights={start})"
    if problem:
        base = settings.get("base_model_name_or_path")
        raise NotAModel(
            f"{folder} is {problem} of {base}; only plain LoRA can be merged here", MERGE_FIRST
        )


def class_of_adapter(path: Path) -> str:
    """Return the class that an adapter was trained on if transformers has none of that name."""
    import transformers

    mapping = read_settings(path / ADAPTER).get("auto_mapping")
    name = mapping.get("base_model_class") if isinstance(mapping, dict) else None
    if not isinstance(name, str) or hasattr(transformers, name):
        return ""
    return name
