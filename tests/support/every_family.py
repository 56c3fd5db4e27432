"""Tiny random models of the families beyond :mod:`family_models`: ALBERT, NomicBERT, EuroBERT, T5's
encoder, and nine decoders.

Tokenizers are transformers' own classes with a vocabulary of their own; EuroBERT has none, and gets
the post-processor that its makers saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import transformers
from family_models import (
    BERT_SPECIALS,
    FAMILIES,
    SIZES,
    VOCABULARY,
    _byte_pairs,
    _known,
    _text,
    _unigrams,
    _word_pieces,
    written,
)

ROOM = {"max_position_embeddings": 192}
"""Positions of a decoder, which reads prompts in words."""
GROUPED = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
"""Grouped queries, as most decoders have them."""


def _pairs(specials: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the vocabulary and the merges of a byte-level BPE."""
    model = json.loads(_byte_pairs(specials)._tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def _blank_pairs(specials: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the vocabulary and the merges of a BPE in which a blank is part of the words, as in
    SentencePiece.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY + 256, special_tokens=[*specials, *alphabet], max_token_length=12
    )
    made.train_from_iterator(_text(), trainer)
    model = json.loads(made.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def albert() -> tuple[Any, Any]:
    pieces = _unigrams(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer = transformers.AlbertTokenizerFast(vocab=pieces)
    sizes = SIZES | {"embedding_size": 16, "num_hidden_groups": 1}
    return _known("Albert", tokenizer, **sizes)


def nomic_bert() -> tuple[Any, Any]:
    tokenizer = transformers.BertTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return _known("NomicBert", tokenizer, **SIZES)


def eurobert() -> tuple[Any, Any]:
    from tokenizers.processors import TemplateProcessing

    first, last = "<|begin_of_text|>", "<|end_of_text|>"
    inner = _byte_pairs([first, last, "<|mask|>"])._tokenizer
    ends = [(token, inner.token_to_id(token)) for token in (first, last)]
    inner.post_processor = TemplateProcessing(single=f"{first} $A {last}", special_tokens=ends)
    names = {"bos_token": first, "eos_token": last, "pad_token": last, "mask_token": "<|mask|>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **names)
    ids = {"bos_token_id": ends[0][1], "eos_token_id": ends[1][1], "pad_token_id": ends[1][1]}
    return _known("EuroBert", tokenizer, **SIZES | GROUPED, **ids)


def t5() -> tuple[Any, Any]:
    pieces = _unigrams(["<pad>", "</s>", "<unk>"])
    tokenizer = transformers.T5TokenizerFast(vocab=pieces, extra_ids=0)
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    return _known("T5", tokenizer, "EncoderModel", **sizes)


def _causal(name: str, tokenizer: Any, **config: Any) -> tuple[Any, Any]:
    made = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **config)
    head = {"Gemma3Text": "Gemma3ForCausalLM", "GPT2": "GPT2LMHeadModel"}
    cls = getattr(transformers, head.get(name, f"{name}ForCausalLM"))
    return tokenizer, cls(made)


def qwen(name: str) -> tuple[Any, Any]:
    vocabulary, merges = _pairs(["<|endoftext|>"])
    tokenizer = transformers.Qwen2TokenizerFast(vocab=vocabulary, merges=merges)
    return _causal(name, tokenizer, **SIZES | GROUPED | ROOM, tie_word_embeddings=True)


def llama(name: str) -> tuple[Any, Any]:
    vocabulary, merges = _blank_pairs(["<unk>", "<s>", "</s>"])
    tokenizer = transformers.LlamaTokenizerFast(
        vocab=vocabulary, merges=merges, add_bos_token=True, padding_side="left"
    )
    more = {"sliding_window": 9} if name == "Mistral" else {}
    return _causal(name, tokenizer, **SIZES | GROUPED | ROOM | more)


def gemma(name: str) -> tuple[Any, Any]:
    vocabulary, merges = _blank_pairs(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"])
    tokenizer = transformers.GemmaTokenizerFast(vocab=vocabulary, merges=merges, add_bos_token=True)
    sizes = SIZES | GROUPED | ROOM | {"sliding_window": 9, "query_pre_attn_scalar": 8}
    return _causal(name, tokenizer, **sizes, pad_token_id=0, eos_token_id=1, bos_token_id=2)


def opt() -> tuple[Any, Any]:
    vocabulary, merges = _pairs(["<s>", "<pad>", "</s>", "<unk>"])
    names = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}
    tokenizer = transformers.GPT2TokenizerFast(
        vocab=vocabulary, merges=merges, add_bos_token=True, **names
    )
    sizes = SIZES | ROOM | {"ffn_dim": 64, "word_embed_proj_dim": 32}
    return _causal("OPT", tokenizer, **sizes)


def gpt_neox() -> tuple[Any, Any]:
    vocabulary, merges = _pairs(["<|endoftext|>", "<|padding|>"])
    tokenizer = transformers.GPTNeoXTokenizerFast(vocab=vocabulary, merges=merges)
    return _causal("GPTNeoX", tokenizer, **SIZES | ROOM)


def gpt2() -> tuple[Any, Any]:
    vocabulary, merges = _pairs(["<|endoftext|>"])
    tokenizer = transformers.GPT2TokenizerFast(vocab=vocabulary, merges=merges)
    return _causal("GPT2", tokenizer, n_embd=32, n_layer=2, n_head=2, n_positions=192)


DECODERS: dict[str, Callable[[Path], str]] = {
    "qwen2": partial(written, partial(qwen, "Qwen2")),
    "qwen3": partial(written, partial(qwen, "Qwen3")),
    "llama": partial(written, partial(llama, "Llama")),
    "mistral": partial(written, partial(llama, "Mistral")),
    "gemma2": partial(written, partial(gemma, "Gemma2")),
    "gemma3_text": partial(written, partial(gemma, "Gemma3Text")),
    "opt": partial(written, opt),
    "gpt_neox": partial(written, gpt_neox),
    "gpt2": partial(written, gpt2),
}
EVERY: dict[str, Callable[[Path], str]] = {
    **FAMILIES,
    "albert": partial(written, albert),
    "nomic_bert": partial(written, nomic_bert),
    "eurobert": partial(written, eurobert),
    "t5": partial(written, t5),
    **DECODERS,
}
