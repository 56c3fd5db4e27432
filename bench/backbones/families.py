"""What is known of each family of encoders, and what a method may ask of it before anything is started. No torch.

A family that is not listed here is not refused: what it cannot do shows when the method is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.backbones.folder import checkpoint_names, readable
from bench.base.errors import BenchError, NotAModel


@dataclass(frozen=True)
class Family:
    """One of transformers' model types.

    ``prefix``: its layers are BERT's, and take keys and values from outside, as a deep prompt needs. ``placed``: position ids alone say where a
    token stands; elsewhere the distance between two tokens is counted along the sequence, whatever ids are given.
    ``head``: how the tensors of its masked-language-modelling head are called. ``offset``: its first token stands at position
    padding_idx + 1.
    """

    title: str
    example: str
    prefix: bool = False
    placed: bool = True
    head: tuple[str, ...] = ()
    offset: bool = False
    note: str = ""


FAMILIES: Mapping[str, Family] = {
    "bert": Family("BERT", "bert-base-uncased", prefix=True, head=("cls.predictions.transform.",)),
    "roberta": Family(
        "RoBERTa", "roberta-large", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "xlm-roberta": Family(
        "XLM-R", "FacebookAI/xlm-roberta-base", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "camembert": Family(
        "CamemBERT", "almanach/camembert-base", prefix=True, head=("lm_head.dense.",), offset=True
    ),
    "electra": Family(
        "ELECTRA",
        "google/electra-base-discriminator",
        prefix=True,
        head=("generator_predictions.dense.",),
        note="the discriminator has no MLM head; the generator has one",
    ),
    "distilbert": Family(
        "DistilBERT", "distilbert/distilbert-base-uncased", head=("vocab_transform.",)
    ),
    "mpnet": Family(
        "MPNet", "microsoft/mpnet-base", placed=False, head=("lm_head.dense.",), offset=True
    ),
    "deberta-v2": Family(
        "DeBERTa-v3",
        "microsoft/deberta-v3-base",
        placed=False,
        head=("cls.predictions.transform.",),
        note="version 3 was trained as a discriminator: it has no MLM head",
    ),
    "modernbert": Family(
        "ModernBERT",
        "answerdotai/ModernBERT-base",
        head=("decoder.",),
        note="its own dropout is 0; every second or third layer sees 64 tokens to each side only",
    ),
}
ANY_HEAD = tuple(
    {prefix for family in FAMILIES.values() for prefix in family.head}
    | {"cls.predictions.", "lm_head."}
)
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
)
"""Where the configs of the families keep the dropout of the encoder itself."""

HEADS = (
    "cls.",
    "lm_head.",
    "classifier.",
    "pooler.",
    "vocab_",
    "generator_",
    "discriminator_",
    "mask_predictions.",
    "lm_predictions.",
    "head.",
    "decoder.",
    "qa_outputs.",
    "pre_classifier.",
    "score.",
    "mlp.",
    "aux_bert.",
    "generator.",
    "discriminator.",
    "electra_head.",
)
"""How the tensors of heads are called that stand on an encoder and are no part of it; the last four are the networks that DiffCSE
trains beside it."""
BUFFERS = ("position_ids", "token_type_ids", "inv_freq")
"""What older versions of transformers stored and every version computes: the last part of a tensor's name."""


def is_head(tensor: str) -> bool:
    """Whether a tensor of a checkpoint belongs to a head (or the pooling layer), by its name."""
    return without_base(tensor).startswith(HEADS)


def is_buffer(tensor: str) -> bool:
    """Whether every version of transformers computes this tensor of a checkpoint itself."""
    return tensor.split(".")[-1] in BUFFERS


def not_read(tensors: Iterable[str], reads: tuple[str, ...] = ()) -> list[str]:
    """Of the tensors that an encoder has no place for: those whose loss would change its vectors. Heads and buffers are harmless,
    and what begins with one of ``reads`` is read by the method."""
    return [
        name
        for name in tensors
        if not is_head(name) and not is_buffer(name) and not without_base(name).startswith(reads)
    ]


def head_name(tensor: str) -> str:
    return without_base(tensor).split(".")[0]


def without_base(tensor: str) -> str:
    """The name inside the model: "bert.pooler.dense.weight" -> "pooler.dense.weight"."""
    first, _, rest = tensor.partition(".")
    return rest if first in BASES and rest else tensor


BASES = {"bert", "roberta", "electra", "distilbert", "mpnet", "deberta", "model", "encoder_model"}


ALIASES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
}


def read_config(folder: Path) -> dict[str, Any]:
    """The config of a model folder, with BERT's names for DistilBERT's sizes. Raises NotAModel where it is damaged."""
    file = folder / "config.json"
    with readable(file):
        config = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        return {}
    return {alias: config[key] for key, alias in ALIASES.items() if key in config} | config


def type_of(folder: Path) -> str:
    """transformers' model type of the model in a folder, "" where its config names none."""
    return str(read_config(folder).get("model_type", ""))


def family_of(folder: Path | None) -> Family | None:
    """The family of the model in a folder; None where it is not listed, or not here yet."""
    return (
        FAMILIES.get(type_of(folder))
        if folder is not None and (folder / "config.json").is_file()
        else None
    )


def title(model_type: str) -> str:
    return FAMILIES[model_type].title if model_type in FAMILIES else model_type


def check_prefix(folder: Path | None) -> None:
    """Raises BenchError where the layers of this backbone take no keys and values from outside. None: it is not here yet."""
    _check_layers(folder, "a deep prompt", "take no keys and values from outside")


def check_layers(folder: Path | None, what: str) -> None:
    """Raises BenchError where ``what`` cannot go through the layers one by one, for they are not BERT's. None: it is not here yet."""
    _check_layers(folder, what, "are not attention, intermediate and output as BERT's are")


def _check_layers(folder: Path | None, what: str, why: str) -> None:
    family = family_of(folder)
    if family is not None and not family.prefix:
        able = ", ".join(
            known_family.title for known_family in FAMILIES.values() if known_family.prefix
        )
        raise BenchError(
            f"{what} does not work on {family.title}: its layers {why}",
            f"take a backbone of one of these families: {able}",
        )


def check_placed(folder: Path | None, what: str, hint: str) -> None:
    """Raises BenchError where position ids do not decide where a token stands, which ``what`` needs. None: not here yet."""
    family = family_of(folder)
    if family is not None and not family.placed:
        raise BenchError(
            f"{what} does not work on {family.title}: it counts the distance of two tokens along the sequence, "
            "whatever positions they are given",
            hint,
        )


def check_mlm_head(folder: Path) -> None:
    """Raises NotAModel where the checkpoint carries no masked-language-modelling head."""
    family = FAMILIES.get(type_of(folder))
    wanted = family.head if family else ANY_HEAD
    if not any(name.startswith(wanted) for name in checkpoint_names(folder)):
        why = f" ({family.note})" if family and "MLM head" in family.note else ""
        raise NotAModel(
            f"{folder} carries no MLM head, which this needs{why}",
            "take a backbone as it was pretrained, with its MLM head, or builtin",
        )


def shape(config: Mapping[str, Any]) -> tuple[str, int] | None:
    """("bert" or "roberta", whichever the family takes after; hidden size), where a config says both."""
    kind, hidden = str(config.get("model_type")), config.get("hidden_size")
    if kind not in FAMILIES or not isinstance(hidden, int):
        return None
    return ("roberta" if FAMILIES[kind].offset else "bert"), hidden


def own_dropout(config: Mapping[str, Any]) -> float | None:
    """The largest dropout that a config sets between and in the layers; None where it says nothing."""
    return max(
        (float(config[key]) for key in DROPOUTS if isinstance(config.get(key), int | float)),
        default=None,
    )
