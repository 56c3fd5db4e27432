"""Tiny random decoders and encoders that adapters are put on, and the plain computations of peft
that results are compared with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tiny_decoders import SIZES, decoder


def tiny_qwen3(folder: Path) -> str:
    """Save a random Qwen3 with two layers, grouped queries and a gated MLP; its config has an
    attention dropout of 0, as the published ones have.
    """
    import transformers

    decoder(folder, "qwen")  # for its tokenizer
    sizes: Any = SIZES | {"head_dim": 8, "tie_word_embeddings": True}
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(folder))
    torch.manual_seed(4)
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(vocab_size=vocabulary, **sizes))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return str(folder)


def adapter_of(kind: Any, base: str, folder: Path, **values: Any) -> Any:
    """Save an adapter that peft made of a model of a class of transformers; return peft's model."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(9)
    config = LoraConfig(r=4, lora_alpha=12, target_modules=["q_proj", "down_proj"], **values)
    model = get_peft_model(kind.from_pretrained(base), config).eval()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return model
