"""The harness's own values of recipe keys, which backbones, methods, papers and users replace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.method.contract import Method, how_fitted
from bench.method.own_vectors import own_backbone
from bench.method.recipe import Value

SHARED = "the papers' common loop (SimCSE train.py)"
# the folder with recipes/backbones.toml, the values that belong to a backbone
BACKBONES = Path(__file__).parents[1] / "builtin"

# the harness's own keys, which bench.training reads
TRAINING: Mapping[str, Value] = {
    "batch_size": Value(64, "harness default"),
    "learning_rate": Value(3e-5, "harness default"),
    "epochs": Value(1, "harness default"),
    "max_steps": Value(None, "harness default: as many as the epochs have"),
    "max_seq_length": Value(32, SHARED + "; special tokens included"),
    "eval_steps": Value(125, SHARED, "SimCSE's paper, appendix A, says 250"),
    "select_on": Value("STS-B dev", SHARED + ": best Spearman, strictly better, one checkpoint"),
    "warmup_steps": Value(0, SHARED),
    "weight_decay": Value(0.0, SHARED),
    "max_grad_norm": Value(1.0, SHARED),
    "dropout": Value(None, "the backbone's own config"),
    "warmup_ratio": Value(0.0, SHARED),
    "schedule": Value("linear", SHARED),
    "drop_last": Value(False, SHARED),
    "patience": Value(None, SHARED),
    "corpus_column": Value(None, "harness default: the corpus as it is"),
}

# how the encoder of any method is held, read and trained
ENCODER_VALUES: Mapping[str, Value] = {
    "adapter": Value(None, "harness default: what the method trains of its encoder"),
    "lora_rank": Value(16, "harness default, as LLM2Vec run_simcse.py"),
    "lora_alpha": Value(None, "harness default: twice lora_rank, as LLM2Vec run_simcse.py"),
    "lora_dropout": Value(0.05, "harness default, as LLM2Vec run_simcse.py and PromptEOL"),
    "lora_targets": Value(
        "all",
        "harness default: every linear layer, as PromptEOL ft_llm.py in 4 bits and LLM2Vec train "
        "it",
    ),
    "base_dtype": Value(None, "harness default: float32"),
    "gradient_checkpointing": Value(False, "harness default"),
    "attention": Value(None, "harness default: the backbone's own"),
}
# the keys that an encoder without training has, too
ENCODER_VALUES_UNTRAINED = ("base_dtype", "attention")

# keys that are in a recipe only if something sets them, so that the fingerprints of recipes without
# them stay the same
ON_REQUEST: Mapping[str, Value] = {
    "budget": Value(None, "harness default: as long as the epochs say"),
    "schedule_steps": Value(None, "harness default: the schedule is as long as the training"),
    "duplicates": Value(None, "harness default: keep, rows come as they are drawn"),
}

# the values of each key of the harness that has a name for a value
TRAINING_CHOICES: Mapping[str, tuple[str, ...]] = {
    "schedule": ("linear", "constant"),
    "duplicates": ("keep", "drop"),
}

# key -> its description in tables of recipe keys
HELP: Mapping[str, str] = {
    "batch_size": "rows of the corpus in one optimiser step; also how many candidates an anchor "
    "sees",
    "learning_rate": "AdamW's first rate; falls linearly to 0",
    "epochs": "passes over the corpus",
    "max_steps": "optimiser steps at most; the schedule ends there",
    "max_seq_length": "tokens of a training sentence, special tokens included",
    "eval_steps": "steps between two dev scores",
    "select_on": "'STS-B dev', 'sts-dev-clean' (no pair that a test set has), 'STS-B-de dev' "
    "and nine more languages, 'captions dev', or "
    "'last' to keep the last step",
    "warmup_steps": "steps in which the rate rises from 0",
    "weight_decay": "AdamW's, not on biases and layer norms",
    "max_grad_norm": "global norm to which gradients are clipped",
    "dropout": "hidden and attention dropout of the backbone",
    "warmup_ratio": "the same as a share of all steps, where warmup_steps is 0",
    "schedule": "of the rate after the warm-up: 'linear' to 0, or 'constant'",
    "drop_last": "leave the last short batch of an epoch out",
    "patience": "dev scores in a row without improvement until training stops; none: never",
    "budget": "how long to train, in place of the epochs: 10m, 2h, 5000steps, 1e6sentences, "
    "3e7tokens, 2gpu-h",
    "adapter": "'lora': freeze the encoder and train low-rank adapters on it; 'same': go on with "
    "the adapter of the run that --backbone names",
    "lora_rank": "rank of an adapter",
    "lora_alpha": "an adapter counts lora_alpha / lora_rank times",
    "lora_dropout": "dropout of an adapter's input",
    "lora_targets": "layers with an adapter: 'all' linear ones, or names with + between them, "
    "q_proj+v_proj",
    "base_dtype": "weights of an encoder that does not train itself: fp32, bf16 or 4bit",
    "gradient_checkpointing": "compute activations again in the backward pass, in place of "
    "keeping them",
    "attention": "'bidirectional': every token of a decoder attends to every other one",
    "schedule_steps": "steps of the schedule of the learning rate, if it is laid out for a longer "
    "training than max_steps ends",
    "duplicates": "'drop': no two rows of a batch share a text, and a row that would repeat one "
    "waits for a later batch; 'keep': rows come as they are drawn",
    "corpus_column": "train on one column of a wider corpus ('sent0'), or on every cell as a "
    "sentence ('all')",
}
# the keys of a method that reads its corpus once
ONE_PASS = ("max_seq_length", "dropout", "corpus_column")


def harness_keys(method: type[Method], trained: bool) -> tuple[str, ...]:
    """Return the harness's recipe keys that a method uses, if it is trained (or fitted) or not."""
    if trained:
        return ONE_PASS if how_fitted(method) == "pass" else tuple(TRAINING)
    return ("dropout",) if own_backbone(method) is None else ()
