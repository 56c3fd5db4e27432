"""The sentences, and a tiny random BERT and RoBERTa for both versions of transformers.

The folders can be read by transformers 5 and 4.2.1. No weight stays at the library's flat start,
which hides many mistakes, and dropout is 0: only then can two programs be compared number by
number.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from bench.backbones import builtin_folder, silence_transformers

SENTENCES = (
    "A man is playing a guitar.",
    'She said "no", twice, and left.',
    "Dogs run",
    "The bank's prices rose in March because oil fell, which nobody at the market had expected to "
    "happen so very soon.",
    "two women read a book in the park",
    "Is this it?",
)
POSITIVES = (
    "Somebody plays music .",
    "She refused and went away",
    "Animals are running across the grass, fast.",
    "Prices rose.",
    "People are reading",
    "This may be it; who knows?",
)
NEGATIVES = (
    "Nobody plays anything.",
    "She stayed!",
    "The dogs are sleeping in the sun near the house by the sea",
    "Prices fell in March",
    "A woman burns a book",
    "It is that.",
)
SCORED = (
    *SENTENCES,
    "",
    *NEGATIVES[:2],
)  # an empty one too; trained with debiasing, it would be a zero vector and rounding
SHAPE: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    # Prompt-BERT's table of biases is for sentences of up to 256 tokens
    "max_position_embeddings": 300,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def tiny_backbones(folder: Path, spread: float = 0.2) -> dict[str, str]:
    """Family -> folder with config, weights (an encoder and an MLM head) and vocabulary."""
    from transformers import BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

    silence_transformers()
    torch.manual_seed(0)
    bert, roberta = folder / "tiny-bert", folder / "tiny-roberta"
    bert.mkdir()
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(builtin_folder() / name, bert / name)
    words = len((bert / "vocab.txt").read_text(encoding="utf-8").splitlines())
    models = {
        bert: BertForMaskedLM(BertConfig(vocab_size=words, layer_norm_eps=1e-12, **SHAPE)),
        roberta: RobertaForMaskedLM(
            RobertaConfig(
                vocab_size=_byte_level_vocabulary(roberta),
                layer_norm_eps=1e-5,
                type_vocab_size=1,
                pad_token_id=1,
                bos_token_id=0,
                eos_token_id=2,
                **SHAPE,
            )
        ),
    }
    for path, model in models.items():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=spread)
        model.save_pretrained(path)
    return {"bert": str(bert), "roberta": str(roberta)}


def _byte_level_vocabulary(folder: Path) -> int:
    """Makes RoBERTa's kind of vocabulary of the sentences above; returns its size."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaTokenizerFast

    folder.mkdir()
    vocabulary = ByteLevelBPETokenizer()
    text = [*SENTENCES, *POSITIVES, *NEGATIVES, "This sentence of \" means . The sentence : ' '"]
    vocabulary.train_from_iterator(
        text * 2, vocab_size=500, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    )
    vocabulary.save_model(str(folder))
    words = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    merges = [
        tuple(line.split())
        for line in (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    ]
    tokenizer = RobertaTokenizerFast(
        vocab=words, merges=merges
    )  # from_pretrained cannot read the two files in transformers 5.2
    tokenizer.save_pretrained(folder)
    return len(tokenizer)
