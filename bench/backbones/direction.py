"""Find causal encoders: a token's state depends only on earlier tokens.

So the first token's state holds nothing of the sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones.dropout import some_tokens
from bench.backbones.folder import read_config
from bench.base.errors import BenchError

if TYPE_CHECKING:
    from torch import nn

CAUSAL = frozenset(
    [
        "afmoe",
        "apertus",
        "arcee",
        "bamba",
        "biogpt",
        "bitnet",
        "bloom",
        "codegen",
        "cohere",
        "cohere2",
        "ctrl",
        "cwm",
        "dbrx",
        "deepseek_v2",
        "deepseek_v3",
        "diffllama",
        "doge",
        "ernie4_5",
        "exaone4",
        "falcon",
        "falcon_h1",
        "falcon_mamba",
        "flex_olmo",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "gemma3n",
        "gemma3n_text",
        "gemma4",
        "gemma4_text",
        "glm",
        "glm4",
        "gpt2",
        "gpt-sw3",
        "gpt_bigcode",
        "gpt_neo",
        "gpt_neox",
        "gpt_neox_japanese",
        "gpt_oss",
        "gptj",
        "granite",
        "granitemoe",
        "helium",
        "internlm3",
        "jamba",
        "jetmoe",
        "lfm2",
        "llama",
        "llama4",
        "llama4_text",
        "mamba",
        "mamba2",
        "minimax",
        "ministral",
        "ministral3",
        "mistral",
        "mixtral",
        "modernbert-decoder",
        "mpt",
        "nemotron",
        "olmo",
        "olmo2",
        "olmo3",
        "olmoe",
        "openai-gpt",
        "opt",
        "persimmon",
        "phi",
        "phi3",
        "phimoe",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_5_text",
        "qwen3_moe",
        "qwen3_next",
        "recurrent_gemma",
        "rwkv",
        "seed_oss",
        "smollm3",
        "stablelm",
        "starcoder2",
        "vaultgemma",
        "xglm",
        "xlstm",
        "zamba",
        "zamba2",
    ]
)
"""transformers' model types of decoders without an encoder. A family that is missing here is
recognised once it is loaded.
"""


def is_causal(config: Mapping[str, Any]) -> bool:
    """Tell whether a config describes a causal model; False if nothing is known about it."""
    if config.get("is_causal") is False or config.get("use_bidirectional_attention"):
        return False  # a decoder that was taught to look both ways
    return str(config.get("model_type")) in CAUSAL or bool(config.get("is_decoder"))


def check_not_causal(folder: Path | None, what: str, why: str, hint: str) -> None:
    """Raise BenchError if the config in a folder describes a causal model, where ``what`` fails.

    ``folder`` is None if the backbone is not here yet; then nothing is checked.
    """
    if folder is None or not (folder / "config.json").is_file():
        return
    config = read_config(folder)
    if is_causal(config):
        raise BenchError(
            f"{what} does not work on {config.get('model_type')}, which is causal: {why}", hint
        )


def reads_ahead(encoder: nn.Module) -> bool:
    """Tell whether the first token's state changes with the last token, measured on four tokens.

    False means that the model is causal.
    """
    import torch

    features = some_tokens(encoder)
    changed = features["input_ids"].clone()
    changed[0, -1] = changed[0, 0]
    was_training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            states = encoder(**features).last_hidden_state[0, 0]
            others = encoder(**features | {"input_ids": changed}).last_hidden_state[0, 0]
    finally:
        encoder.train(was_training)
    return not torch.equal(states, others)
