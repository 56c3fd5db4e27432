"""Inputs that tests of promises make themselves: texts, rated pairs, labels and tiny encoders."""

from __future__ import annotations

import json
import random
from pathlib import Path

WHO = ["man", "woman", "girl", "boy", "dog", "cat", "teacher", "student", "farmer", "child"]
HOW = ["young", "old", "tall", "small", "quiet", "happy", "tired", "famous"]
DOES = ["plays", "sees", "carries", "paints", "buys", "sells", "finds", "washes"]
WHAT = ["guitar", "ball", "book", "apple", "car", "house", "river", "letter", "flower", "piano"]
WHERE = ["park", "school", "kitchen", "street", "garden", "market", "station", "forest"]
SMALL_WORDS = ["a", "the", "in", "at", "is", "not", "of", "and", "with"]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return so many distinct sentences of one pattern, the same ones for a seed."""
    chosen, drawn = random.Random(seed), dict[str, None]()
    while len(drawn) < count:
        how, who, does, what, where = (chosen.choice(of) for of in (HOW, WHO, DOES, WHAT, WHERE))
        drawn[f"the {how} {who} {does} a {what} in the {where}"] = None
    return list(drawn)


def rated_pairs(count: int, seed: int = 1) -> list[tuple[str, str, float]]:
    """Return pairs of sentences with a rating from 0 to 5: how many of five words they share."""
    chosen, rows = random.Random(seed), []
    for first in sentences(count, seed):
        words = first.split()
        places = ((1, HOW), (2, WHO), (3, DOES), (5, WHAT), (8, WHERE))
        changed = chosen.sample(places, chosen.randint(0, 5))
        for place, others in changed:
            words[place] = chosen.choice([one for one in others if one != words[place]])
        rows.append((first, " ".join(words), 5.0 - len(changed)))
    return rows


def write_corpus(path: Path, count: int = 200) -> Path:
    """Write training text: a sentence a line."""
    path.write_text("\n".join(sentences(count)) + "\n", encoding="utf-8")
    return path


def write_pairs(path: Path, count: int = 80) -> Path:
    """Write rated pairs, a file that is a suite: ``--suite pairs.tsv``."""
    rows = [f"{first}\t{second}\t{score}" for first, second, score in rated_pairs(count)]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    return path


def write_triplets(path: Path, count: int = 120) -> Path:
    """Write triplets as CSV: a sentence, one that shares words, one that shares none."""
    rows = ["sent0,sent1,hard_neg"]
    others = sentences(count, seed=3)
    for (first, second, _), other in zip(rated_pairs(count, seed=2), others, strict=True):
        rows.append(f"{first},{second},{other}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def tiny_encoder(folder: Path, kind: str = "bert", *, dropout: float = 0.1, seed: int = 0) -> Path:
    """Write a random encoder of two layers, 32 wide, whose vocabulary is that of the texts here.

    ``kind``: ``bert`` or ``llama`` (a decoder; its first token sees nothing but itself).
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForPreTraining,
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,'?")
    words = [*WHO, *HOW, *DOES, *WHAT, *WHERE, *SMALL_WORDS]
    vocabulary = dict.fromkeys([*special, *letters, *words, *(f"##{one}" for one in letters)])
    ids = {word: place for place, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if kind == "bert":
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(pad_token="[PAD]", unk_token="[UNK]")
    if kind == "bert":
        names |= dict(cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    else:
        names |= dict(bos_token="[CLS]", eos_token="[SEP]")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)
    shape = dict(
        vocab_size=len(ids),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        pad_token_id=0,
    )
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    if kind == "bert":
        model = BertForPreTraining(
            BertConfig(**shape, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
        )
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape, bos_token_id=2, eos_token_id=3))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            # with the library's smaller weights mistakes hardly show
            torch.nn.init.normal_(parameter, std=0.1)
    torch.set_rng_state(state)
    model.save_pretrained(folder)
    wrapped.save_pretrained(folder)
    if kind == "bert":
        # the class that such a folder names, so that AutoTokenizer and sentence-transformers agree
        config = folder / "tokenizer_config.json"
        said = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps(said | {"tokenizer_class": "BertTokenizer"}), encoding="utf-8")
        (folder / "vocab.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
    return folder
