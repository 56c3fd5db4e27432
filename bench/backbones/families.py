"""The families of encoders: known facts, and checks before anything is started.

A family that is not listed is not refused: if it lacks something, building the method fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.backbones.folder import read_config, transformer_folder
from bench.backbones.tensors import checkpoint_names
from bench.base.errors import BenchError, NotAModel


@dataclass(frozen=True)
class Family:
    """One of transformers' model types."""

    title: str
    # a model of this family on the hub
    example: str
    # its layers are BERT's, and take keys and values from outside, as a deep prompt needs
    prefix: bool = False
    # position ids alone determine a token's position; if False, the distance of two tokens is
    # counted along the sequence and ignores the ids
    placed: bool = True
    # the first parts of the names of the tensors in its masked-language-modelling head
    head: tuple[str, ...] = ()
    # its first token has position padding_idx + 1
    offset: bool = False
    # the reason if its checkpoints have no such head
    without_head: str = ""


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
        without_head="the discriminator has no MLM head; the generator has one",
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
        without_head="version 3 was trained as a discriminator: it has no MLM head",
    ),
    "modernbert": Family(
        "ModernBERT",
        "answerdotai/ModernBERT-base",
        head=("decoder.",),
        # its own dropout is 0; every second or third layer sees only 64 tokens to each side
    ),
}
BUFFERS = ("position_ids", "token_type_ids", "inv_freq")
"""Last parts of tensor names that old versions of transformers stored, and all compute."""
BASES = {"bert", "roberta", "electra", "distilbert", "mpnet", "deberta", "model", "encoder_model"}


def without_base(tensor: str) -> str:
    """Remove the model's own prefix: "bert.pooler.dense.weight" -> "pooler.dense.weight"."""
    first, _, rest = tensor.partition(".")
    return rest if first in BASES and rest else tensor


def family_of(folder: Path | None) -> Family | None:
    """Return the family of the model in a folder; None if it is not listed or not here yet."""
    if folder is None or not (folder / "config.json").is_file():
        return None
    return FAMILIES.get(str(read_config(folder).get("model_type", "")))


def family_title(model_type: str) -> str:
    """Return the family's name for people, such as "BERT" for "bert"."""
    family = FAMILIES.get(model_type)
    return model_type if family is None else family.title


def check_prefix(folder: Path | None) -> None:
    """Raise BenchError if the layers of this backbone take no keys and values from outside.

    ``folder`` is None if the backbone is not here yet; then nothing is checked.
    """
    check_layers(folder, "a deep prompt", "take no keys and values from outside")


def check_layers(
    folder: Path | None,
    what: str,
    why: str = "are not attention, intermediate and output as BERT's are",
) -> None:
    """Raise BenchError if the layers are not BERT's, as ``what`` needs them.

    ``why``: the reason in the message. ``folder`` is None if the backbone is not here yet; then
    nothing is checked.
    """
    family = family_of(folder)
    if family is not None and not family.prefix:
        able = ", ".join(known.title for known in FAMILIES.values() if known.prefix)
        raise BenchError(
            f"{what} does not work on {family.title}: its layers {why}",
            f"take a backbone of one of these families: {able}",
        )


def check_placed(folder: Path | None, what: str, hint: str) -> None:
    """Raise BenchError if position ids do not determine a token's position, which ``what`` needs.

    ``folder`` is None if the backbone is not here yet; then nothing is checked.
    """
    family = family_of(folder)
    if family is not None and not family.placed:
        raise BenchError(
            f"{what} does not work on {family.title}, which counts the distance of two tokens "
            "along the sequence, "
            "whatever their position ids",
            hint,
        )


def check_mlm_head(path: Path | None) -> None:
    """Raise NotAModel if the checkpoint in a folder has no masked-language-modelling head.

    ``path`` is None if the backbone is not here yet; then nothing is checked.
    """
    if path is None:
        return
    folder = transformer_folder(path)
    family = family_of(folder)
    if family is None:
        known = {prefix for family in FAMILIES.values() for prefix in family.head}
        wanted: tuple[str, ...] = (*known, "cls.predictions.", "lm_head.")
    else:
        wanted = family.head
    if not any(name.startswith(wanted) for name in checkpoint_names(folder)):
        why = ""
        if family is not None and family.without_head:
            why = f" ({family.without_head})"
        raise NotAModel(
            f"{folder} has no MLM head, which this method needs{why}",
            "take a backbone as it was pretrained, with its MLM head, or builtin",
        )


def find_architecture(config: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return ("bert" or "roberta", whichever the family resembles; hidden size).

    It is None if the family is not listed or the config names no hidden size.
    """
    family = FAMILIES.get(str(config.get("model_type")))
    hidden = config.get("hidden_size")
    if family is None or not isinstance(hidden, int):
        return None
    kin = "roberta" if family.offset else "bert"
    return kin, hidden
