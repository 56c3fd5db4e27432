"""Tiny random causal language models with tokenizers of their own: a Llama and a Qwen2, as their
makers save them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from models import TEXT, sentences

EOL = 'This sentence : "{x}" means in one word:"'
PROMPTEOL = 'This sentence : "[X]" means in one word:"'
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}


def decoder(folder: Path, kind: str) -> str:
    """A causal language model with a head, as its makers save it; the Llama's tokenizer puts <s>
    before a text, the Qwen's nothing.
    """
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
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=specials, initial_alphabet=alphabet
    )
    fast.train_from_iterator([TEXT, *sentences(100), PROMPTEOL], trainer)
    if kind == "llama":
        start = [("<s>", 0)]
        fast.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=start)
        tokens = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    else:
        tokens = {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, **tokens)
    torch.manual_seed(3)
    sizes: Any = SIZES | {"vocab_size": len(tokenizer)}
    model: Any
    if kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**sizes))
    else:
        model = Qwen2ForCausalLM(Qwen2Config(**sizes, tie_word_embeddings=True))
    for parameter in model.parameters():  # all states of a fresh model are nearly the same
        torch.nn.init.normal_(parameter, std=0.3) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def cleaned(text: str) -> str:
    """Write the authors' three steps again."""
    if len(text) > 0 and text[-1] not in [".", "?", '"', "'"]:
        text = text + "."
    text = text.replace('"', "'")
    if len(text) > 0 and text[-1] == "?":
        text = text[:-1] + "."
    return text


def states_of(folder: str, prompt: str) -> Any:
    """Return all hidden states of one prompt, (layers + 1, T, H)."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    ids = torch.tensor([AutoTokenizer.from_pretrained(folder)(prompt)["input_ids"]])
    with torch.no_grad():
        return torch.stack(model(input_ids=ids, output_hidden_states=True).hidden_states)[:, 0]
