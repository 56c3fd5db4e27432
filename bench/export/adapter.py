"""Write only the adapters of a run, in the files of peft, without the base that they belong to."""

from __future__ import annotations

from pathlib import Path

from bench.backbones.adapter_folder import WEIGHTS
from bench.backbones.adapters import KEY, NAME
from bench.backbones.bidirectional import was_switched
from bench.backbones.refusals import ADAPTER
from bench.base.errors import BenchError
from bench.export.encoder_files import padding_tokenizer, save_tensors
from bench.method import Portable
from bench.method.json_files import write_json
from bench.run.finished import TrainedRun, backbone_of

PEFT_PREFIX = "base_model.model."
"""The first part of the names of tensors in peft's files."""
MERGED = "leave --unmerged out: the weights of this run, with the adapter merged"


def check_unmerged(run: TrainedRun) -> None:
    """Raise BenchError if the adapters of a run cannot be written alone."""
    recipe = run.recipe
    if recipe.get("adapter") is None:
        raise BenchError(
            f"--unmerged: {run.record.run_id} has no adapter: it trained the encoder itself",
            "leave --unmerged out",
        )
    if recipe.get("base_dtype") is not None:
        raise BenchError(
            f"--unmerged: the adapter was trained on a base in {recipe['base_dtype']}, and a tool "
            "that loads it elsewhere would put it on other weights",
            MERGED,
        )


def base_for_adapter(run: TrainedRun) -> str:
    """Return the base's name for peft: a name of the hub, or the absolute path of a folder.

    Raises BenchError for the built-in backbone's folder of this installation, and for an adapter on
    another run's encoder: neither is a model of its own.
    """
    reference = backbone_of(run.record, run.plugin, run.folder.absolute().parent)
    if reference.trained is not None:
        raise BenchError(
            f"--unmerged: the base of this adapter is the run {reference.name}, which other tools "
            "cannot load",
            "leave --unmerged out; or export that run and train on the export",
        )
    if reference.hub:
        return reference.source or reference.name
    assert reference.path is not None
    return str(reference.path.absolute())


def write_adapter(parts: Portable, folder: Path, base: str) -> None:
    """Write adapter_config.json, adapter_model.safetensors and the tokenizer into a folder.

    ``base``: the name of the model that the adapters belong to, as peft looks for it. Raises
    BenchError for a decoder that attends to both sides: a tool reads the config of its base, which
    says causal, and no setting of an adapter changes that.
    """
    encoder = parts.encoder
    if was_switched(encoder):
        raise BenchError(
            "--unmerged: the adapter was trained with attention to both sides, and its base is "
            "causal",
            MERGED,
        )
    settings = dict(encoder.peft_config[NAME].to_dict())
    name, _, revision = base.partition("@")
    settings |= {"base_model_name_or_path": name, "revision": revision or None}
    settings |= {"inference_mode": True, "task_type": "FEATURE_EXTRACTION"}
    plain: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, set):
            value = sorted(value)
        plain[key] = str(value.value) if hasattr(value, "value") else value
    write_json(folder / ADAPTER, plain)
    tensors = {}
    for key, tensor in encoder.state_dict().items():
        if KEY in key:
            tensors[PEFT_PREFIX + key.replace(f".{NAME}.", ".")] = tensor
    save_tensors(tensors, folder / WEIGHTS)
    padding_tokenizer(parts.tokenizer).save_pretrained(folder)
