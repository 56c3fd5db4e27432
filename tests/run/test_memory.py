"""What a plan says of a run's parameters and memory, against real modules and the bytes that
autograd saves in a real pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from models import built
from transformers import AutoConfig

from bench.backbones import Reference, resolve
from bench.data.corpora import open_corpus_file
from bench.method.plugins import discover
from bench.method.recipes import merge_recipe
from bench.run import memory
from bench.run.memory import Held, fitting_chunk, held_by, memory_of
from bench.run.options import as_typed
from bench.run.planned import PlannedRun

REGISTRY = discover()
SIZES: dict[str, dict[str, Any]] = {
    "bert": {"num_attention_heads": 4, "intermediate_size": 1024},
    "modernbert": {"num_attention_heads": 4, "intermediate_size": 384},
    "qwen3": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 768,
    },
    "t5": {"num_heads": 4, "d_kv": 64, "d_ff": 1024, "d_model": 256, "num_layers": 4},
}
COMMON = {"hidden_size": 256, "num_hidden_layers": 4, "vocab_size": 1000}
COMMON |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1}
COMMON |= {"sep_token_id": 2}


def planned(method: str, backbone: Reference, precision: str = "fp32", **values: Any) -> PlannedRun:
    plugin = REGISTRY[method]
    texts = {key: as_typed(value) for key, value in values.items()}
    return PlannedRun(
        plugin=plugin,
        variant="",
        setting="unsupervised",
        seed=1,
        recipe=merge_recipe(plugin.cls, None, "", texts, trained=True),
        backbone=backbone,
        corpus=open_corpus_file("builtin"),
        precision=precision,
    )


def hub(name: str) -> Reference:
    return Reference(name=name, revision="unknown", path=None, hub=True)


BUILT: list[tuple[str, dict[str, Any]]] = [
    ("simcse", {}),
    ("simcse", {"mlm": True}),
    ("promcse", {"prompt_length": 40}),
    ("dcpcse", {"mlm": True, "freeze_lm_head": True}),
    ("tsdae", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), BUILT)
def test_a_plan_counts_what_the_built_method_has(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    held = held_by(planned(name, resolve("builtin"), **values))
    method = built(REGISTRY[name].cls, "builtin", tmp_path, setting="unsupervised", **values)
    trained = sum(p.numel() for p in method.parameters() if p.requires_grad)
    everything = sum(p.numel() for p in method.parameters())
    everything += sum(buffer.numel() for buffer in method.buffers())
    assert held is not None
    assert (held.parameters, held.frozen) == (trained, everything - trained)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # of transformers' models without their pooling layers
        ("bert-base-uncased", 109_482_240 - 590_592),
        ("roberta-large", 355_359_744 - 1_049_600),
        ("Qwen/Qwen3-0.6B", 596_049_920),
    ],
)
def test_known_models_are_counted_without_their_files(name: str, parameters: int) -> None:
    held = held_by(planned("simcse", hub(name), pooling="avg"))
    assert held is not None and held.trained == {"encoder": parameters}
    assert held_by(planned("simcse", hub("nobody/knows-this"))) is None


def saved_bytes(encoder: Any, texts: int, length: int, precision: str) -> int:
    """Return the bytes that autograd keeps for the backward pass, besides weights and autocast's
    copies of them.
    """
    weights = {p.untyped_storage().data_ptr() for p in encoder.parameters()}
    shapes = {tuple(p.shape) for p in encoder.parameters()}
    shapes |= {shape[::-1] for shape in shapes}
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in weights and tuple(tensor.shape) not in shapes:
            kept[place] = tensor
        return tensor

    words = encoder.get_input_embeddings()(torch.randint(5, 900, (texts, length)))
    words = words.detach().requires_grad_()
    mask = torch.ones(texts, length, dtype=torch.int64)
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
    ):
        encoder(inputs_embeds=words, attention_mask=mask)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "precision"),
    [
        *((what, "fp32") for what in (*SIZES, "bert, frozen", "qwen3, adapted")),
        ("bert", "bf16"),
    ],
)
def test_activations_are_within_a_factor_of_what_autograd_saves(what: str, precision: str) -> None:
    from bench.backbones.adapters import AdapterSettings, add_adapters
    from bench.backbones.encoder_class import encoder_class

    family, _, state = what.partition(", ")
    config = AutoConfig.for_model(family, **COMMON | SIZES[family])
    encoder = encoder_class(config).from_config(config).train()
    if state == "frozen":
        encoder.requires_grad_(False)
    elif state == "adapted":
        add_adapters(encoder, AdapterSettings(rank=8, alpha=8, dropout=0.1), seed=0)
    method = torch.nn.Module()
    method.encoder = encoder
    held = memory._count(method)
    run = planned("simcse", hub(family), precision, batch_size=8, max_seq_length=32)
    without = Held(held.trained, held.frozen, held.frozen_in_layers, 0, held.layers, held.hidden)
    counted = memory_of(run, held) - memory_of(run, without)
    saved = saved_bytes(encoder, 16, 32, precision)
    assert saved / 2 < counted < saved * 2, f"{counted / saved:.2f}"


def test_a_narrow_base_takes_less() -> None:
    shape: dict[str, Any] = {"adapter": "lora", "pooling": "avg", "batch_size": 1}
    sizes = {}
    for held_in in ("fp32", "bf16", "4bit"):
        run = planned("simcse", hub("Qwen/Qwen3-0.6B"), base_dtype=held_in, **shape)
        held = held_by(run)
        assert held is not None and set(held.trained) == {"adapter"}
        sizes[held_in] = memory_of(run, held)
    layers = 28 * (2 * 1024 * 2048 + 2 * 1024 * 1024 + 3 * 1024 * 3072)
    assert sizes["fp32"] - sizes["bf16"] == 2 * held.frozen
    adapters = held.parameters
    assert held.frozen_in_layers == layers and adapters > 0
    assert sizes["fp32"] - sizes["4bit"] == pytest.approx((4 - 0.52) * layers, rel=1e-6)


def test_the_formula_by_hand() -> None:
    """BERT base, two views of 64 rows of 32 tokens; a chunk has its share of them."""
    run = planned("simcse", hub("bert-base-uncased"), batch_size=64, max_seq_length=32, head=False)
    held = held_by(run)
    assert held is not None and held.numbers == 12 * 18 * 768
    trained = 16 * (109_482_240 - 590_592)
    activations = 2 * 64 * 32 * held.numbers * 5
    assert memory_of(run, held) == trained + activations + 4 * held.frozen
    trained += 4 * held.frozen  # the numbers of positions and of token types
    assert memory_of(run, held, 16) == trained + activations // 4
    assert memory_of(run, held, 500) == memory_of(run, held)
    room = trained + activations // 8
    assert fitting_chunk(run, held, room) == 8 and fitting_chunk(run, held, room - 1) == 4
    assert fitting_chunk(run, held, trained) is None
    values: dict[str, Any] = {"head": False, "gradient_checkpointing": True}
    again = planned("simcse", hub("bert-base-uncased"), "bf16", **values)
    a_token = 4 * 12 * 768 + 3.5 * 18 * 768
    assert memory_of(again, held) == trained + 2 * 64 * 32 * a_token
