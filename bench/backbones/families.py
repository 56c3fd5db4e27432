"""The families of encoders: known facts, and checks before anything is started.

A family that is not listed is not refused: if it lacks something, building the method fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.backbones.folder import read_config, transformer_folder
from bench.backbones.tensors import checkpoint_names
from bench.base.errors import BenchError, NotAModel


@dataclass(frozen=True)
class Family:
    """One of transformers' model types.

    Example:
        family = FAMILIES["qwen3"]
        family.causal, family.before, family.pad     # True, "", "<|endoftext|>"
    """

    title: str
    # a model of this family on the hub
    example: str
    # a token's state depends on earlier tokens only
    causal: bool = False
    # the special tokens that the makers' tokenizer puts before and after a text; "" for none
    before: str = "[CLS]"
    after: str = "[SEP]"
    # the token that fills a batch; "" if the makers' tokenizer has none: then id 0 does, and its
    # mask is 0
    pad: str = "[PAD]"
    # the side that the makers' tokenizer pads on; vectors here do not depend on it
    padding_side: str = "right"
    # how a position enters the encoder: by a learned "table", "rotary" or "relative"
    positions: str = "table"
    # the key of the config with the width of local attention; "" if every layer sees everything
    window: str = ""
    # the keys of the config that set dropout inside the encoder
    dropout: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    # the key of the config with the number of positions, the room for a prompt and its sentence;
    # "" if nothing limits it
    room: str = "max_position_embeddings"
    # its layers are BERT's, and take keys and values from outside, as a deep prompt needs
    prefix: bool = False
    # position ids alone determine a token's position; if False, the distance of two tokens is
    # counted along the sequence and ignores the ids
    placed: bool = True
    # the first parts of the names of the tensors in its masked-language-modelling head
    head: tuple[str, ...] = ()
    # the first part of the names of the tensors in a decoder's head, if it is not tied to the words
    lm_head: str = ""
    # the module of each layer that a decoder's cross-attention is added behind; "" if it is not
    # known; BERT's layers are taken apart instead
    cross: str = ""
    # its first token has position padding_idx + 1
    offset: bool = False
    # the reason if its checkpoints have no such head
    without_head: str = ""


NO_MLM = "it was trained to continue texts: its head predicts the next word"
ATTENTION_ALONE = ("attention_dropout",)


ROBERTA = Family(
    "RoBERTa",
    "roberta-large",
    before="<s>",
    after="</s>",
    pad="<pad>",
    prefix=True,
    head=("lm_head.dense.",),
    offset=True,
)
# most decoders: rotary positions, no special tokens, dropout on the attention alone
DECODER = Family(
    "decoders",
    "",
    causal=True,
    before="",
    after="",
    positions="rotary",
    dropout=ATTENTION_ALONE,
    lm_head="lm_head.",
    without_head=NO_MLM,
)
QWEN = replace(DECODER, pad="<|endoftext|>", window="sliding_window")
LLAMA = replace(DECODER, before="<s>", pad="", padding_side="left")
GEMMA = replace(DECODER, before="<bos>", pad="<pad>", padding_side="left", window="sliding_window")


FAMILIES: Mapping[str, Family] = {
    "bert": Family("BERT", "bert-base-uncased", prefix=True, head=("cls.predictions.transform.",)),
    "roberta": ROBERTA,
    "xlm-roberta": replace(ROBERTA, title="XLM-R", example="FacebookAI/xlm-roberta-base"),
    "camembert": replace(ROBERTA, title="CamemBERT", example="almanach/camembert-base"),
    "electra": Family(
        "ELECTRA",
        "google/electra-base-discriminator",
        prefix=True,
        head=("generator_predictions.dense.",),
        without_head="the discriminator has no MLM head; the generator has one",
    ),
    "albert": Family(
        "ALBERT",
        "albert/albert-base-v2",
        pad="<pad>",
        head=("predictions.dense.",),
        # its own dropout is 0 in version 2
    ),
    "distilbert": Family(
        "DistilBERT",
        "distilbert/distilbert-base-uncased",
        dropout=("dropout", "attention_dropout"),
        head=("vocab_transform.",),
    ),
    "mpnet": Family(
        "MPNet",
        "microsoft/mpnet-base",
        before="<s>",
        after="</s>",
        pad="<pad>",
        placed=False,
        head=("lm_head.dense.",),
        offset=True,
    ),
    "deberta-v2": Family(
        "DeBERTa-v3",
        "microsoft/deberta-v3-base",
        positions="relative",
        placed=False,
        head=("cls.predictions.transform.",),
        without_head="version 3 was trained as a discriminator: it has no MLM head",
    ),
    "modernbert": Family(
        "ModernBERT",
        "answerdotai/ModernBERT-base",
        positions="rotary",
        # its own dropout is 0; every second or third layer sees only 64 tokens to each side
        window="local_attention",
        dropout=("attention_dropout", "embedding_dropout", "mlp_dropout"),
        head=("decoder.",),
        cross="attn",
    ),
    "nomic_bert": Family(
        "NomicBERT",
        "nomic-ai/nomic-embed-text-v1.5",
        positions="rotary",
        head=("cls.predictions.transform.",),
        cross="post_attention_layernorm",
    ),
    "eurobert": Family(
        "EuroBERT",
        "EuroBERT/EuroBERT-210m",
        before="<|begin_of_text|>",
        after="<|end_of_text|>",
        pad="<|end_of_text|>",
        positions="rotary",
        dropout=ATTENTION_ALONE,
        head=("lm_head.",),
        cross="self_attn",
    ),
    "t5": Family(
        "T5's encoder",
        "google-t5/t5-base",
        before="",
        after="</s>",
        pad="<pad>",
        positions="relative",
        dropout=("dropout_rate",),
        room="",
        placed=False,
        without_head="it was trained with a decoder, which is left out",
    ),
    "qwen2": replace(QWEN, title="Qwen2", example="Qwen/Qwen2.5-0.5B"),
    "qwen3": replace(QWEN, title="Qwen3", example="Qwen/Qwen3-0.6B"),
    "llama": replace(LLAMA, title="Llama", example="meta-llama/Llama-2-7b-hf"),
    "mistral": replace(
        LLAMA, title="Mistral", example="mistralai/Mistral-7B-v0.1", window="sliding_window"
    ),
    "gemma2": replace(GEMMA, title="Gemma 2", example="google/gemma-2-2b"),
    "gemma3_text": replace(GEMMA, title="Gemma 3", example="google/gemma-3-270m"),
    "opt": replace(
        DECODER,
        title="OPT",
        example="facebook/opt-125m",
        before="</s>",
        pad="<pad>",
        positions="table",
        dropout=("dropout", "attention_dropout"),
    ),
    "gpt_neox": replace(
        DECODER,
        title="GPT-NeoX",
        example="EleutherAI/pythia-160m",
        pad="<|padding|>",
        dropout=("attention_dropout", "hidden_dropout"),
        lm_head="embed_out.",
    ),
    "gpt2": replace(
        DECODER,
        title="GPT-2",
        example="openai-community/gpt2",
        pad="",
        positions="table",
        dropout=("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        room="n_positions",
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


def find_family(model_type: str) -> Family | None:
    """Return the entry of one of transformers' model types; None if it is not listed."""
    return FAMILIES.get(model_type)


def family_title(model_type: str) -> str:
    """Return the family's name for people, such as "BERT" for "bert"."""
    family = FAMILIES.get(model_type)
    return model_type if family is None else family.title


def check_prefix(folder: Path | None) -> None:
    """Check that the layers of a backbone take keys and values from outside.

    Args:
        folder: The backbone's folder. None if it is not here yet; then nothing is checked.

    Raises:
        BenchError: If they do not.
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


def check_decoder(folder: Path | None, what: str) -> None:
    """Raise BenchError if the place of a cross-attention in this backbone's layers is not known.

    ``what`` needs one. ``folder`` is None if the backbone is not here yet; then nothing is checked.
    """
    family = family_of(folder)
    if family is not None and not family.prefix and not family.cross:
        able = [known.title for known in FAMILIES.values() if known.prefix or known.cross]
        raise BenchError(
            f"{what} does not work on {family.title}: where a cross-attention goes in its layers "
            "is not known",
            f"take a backbone of one of these families: {', '.join(able)}",
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
    if family.causal:
        kin = "decoder"
    return kin, hidden
