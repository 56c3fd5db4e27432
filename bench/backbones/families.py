"""The families of encoders: known facts, and checks before anything is started.

A family that is not listed is not refused: if it lacks something, building the method fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.backbones.direction import CAUSAL
from bench.backbones.folder import read_config, transformer_folder
from bench.backbones.tensors import checkpoint_names
from bench.base.errors import BenchError, NotAModel


@dataclass(frozen=True)
class Family:
    """One of transformers' model types.

    Example:
        family = FAMILIES["qwen3"]
        family.lm_head, family.placed     # "lm_head.", True
    """

    title: str
    # its layers are BERT's, and take keys and values from outside, as a deep prompt needs
    prefix: bool = False
    # position ids alone determine a token's position; if False, the distance of two tokens is
    # counted along the sequence and ignores the ids
    placed: bool = True
    # the first parts of the names of the tensors in its masked-language-modelling head
    head: tuple[str, ...] = ()
    # the first part of the names of the tensors in a decoder's head, if it is not tied to the words
    lm_head: str = ""
    # its first token has position padding_idx + 1
    offset: bool = False
    # the reason if its checkpoints have no such head
    without_head: str = ""


ROBERTA = Family("RoBERTa", prefix=True, head=("lm_head.dense.",), offset=True)
DECODER = Family(
    "decoders",
    lm_head="lm_head.",
    without_head="it was trained to continue texts: its head predicts the next word",
)


FAMILIES: Mapping[str, Family] = {
    "bert": Family("BERT", prefix=True, head=("cls.predictions.transform.",)),
    "roberta": ROBERTA,
    "xlm-roberta": replace(ROBERTA, title="XLM-R"),
    "camembert": replace(ROBERTA, title="CamemBERT"),
    "electra": Family(
        "ELECTRA",
        prefix=True,
        head=("generator_predictions.dense.",),
        without_head="the discriminator has no MLM head; the generator has one",
    ),
    "albert": Family("ALBERT", head=("predictions.dense.",)),
    "distilbert": Family("DistilBERT", head=("vocab_transform.",)),
    "mpnet": Family("MPNet", placed=False, head=("lm_head.dense.",), offset=True),
    "deberta-v2": Family(
        "DeBERTa-v3",
        placed=False,
        head=("cls.predictions.transform.",),
        without_head="version 3 was trained as a discriminator: it has no MLM head",
    ),
    "modernbert": Family("ModernBERT", head=("decoder.",)),
    "nomic_bert": Family("NomicBERT", head=("cls.predictions.transform.",)),
    "eurobert": Family("EuroBERT", head=("lm_head.",)),
    "t5": Family(
        "T5's encoder",
        placed=False,
        without_head="it was trained with a decoder, which is left out",
    ),
    "qwen2": replace(DECODER, title="Qwen2"),
    "qwen3": replace(DECODER, title="Qwen3"),
    "llama": replace(DECODER, title="Llama"),
    "mistral": replace(DECODER, title="Mistral"),
    "gemma2": replace(DECODER, title="Gemma 2"),
    "gemma3_text": replace(DECODER, title="Gemma 3"),
    "opt": replace(DECODER, title="OPT"),
    "gpt_neox": replace(DECODER, title="GPT-NeoX", lm_head="embed_out."),
    "gpt2": replace(DECODER, title="GPT-2"),
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
    """Check that position ids determine a token's position.

    Args:
        folder: The backbone's folder. None if it is not here yet; then nothing is checked.
        what: What needs it, in words.
        hint: What to do instead.

    Raises:
        BenchError: If they do not.
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
    """Check that a checkpoint has a masked-language-modelling head.

    Args:
        path: The backbone's folder. None if it is not here yet; then nothing is checked.

    Raises:
        NotAModel: If it has none.
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
    """Return ("bert", "roberta" or "decoder", whichever the family resembles; hidden size).

    It is None if the family is not listed, or if the config names no hidden size.
    """
    family = FAMILIES.get(str(config.get("model_type")))
    hidden = config.get("hidden_size")
    if family is None or not isinstance(hidden, int):
        return None
    kin = "roberta" if family.offset else "bert"
    if config.get("model_type") in CAUSAL:
        kin = "decoder"
    return kin, hidden
