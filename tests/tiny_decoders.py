"""Tiny random causal language models with tokenizers of their own: a Llama and a Qwen2, as their makers save them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from models import TEXT, sentences

PROMPTEOL = 'This sentence : "[X]" means in one word:"'
SIZES = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
)


def decoder(folder: Path, kind: str) -> str:
    """A causal language model with a head, as its makers save it; the Llama's tokenizer puts <s> before a text, the Qwen's nothing."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    specials = ["<s>", "</s>", "<unk>"] if kind == "llama" else ["<|endoftext|>"]
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer, fast.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    fast.train_from_iterator(
        [TEXT, *sentences(100), PROMPTEOL],
        trainers.BpeTrainer(vocab_size=500, special_tokens=specials, initial_alphabet=alphabet),
    )
    if kind == "llama":
        fast.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=fast, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
        )
    else:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=fast, eos_token="<|endoftext|>", pad_token="<|endoftext|>"
        )
    torch.manual_seed(3)
    model: Any
    if kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SIZES))  # type: ignore[arg-type]
    else:
        model = Qwen2ForCausalLM(
            Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=True, **SIZES)
        )  # type: ignore[arg-type]
    for parameter in model.parameters():  # of a fresh model all states are nearly the same
        torch.nn.init.normal_(parameter, std=0.3) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
