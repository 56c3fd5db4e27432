"""Adapters in the training loop: interrupted, cut into chunks, recomputed, on two processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from adapted_models import tiny_qwen3
from models import Columns, sentences

from bench.backbones import resolve
from bench.base.errors import Interrupted
from bench.method import Context
from bench.method.building import build_method
from bench.method.config import RunConfig
from bench.method.recipes import merge_recipe
from bench.methods.simcse import SimCSE
from bench.training.gradient import backward
from bench.training.loop import run_loop

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")

LORA = {"adapter": "lora", "lora_rank": "4", "pooling": "avg", "head": "false", "dropout": "0.1"}
SHORT = {"batch_size": "4", "learning_rate": "0.01", "eval_steps": "10", "select_on": "last"}


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_qwen3(tmp_path_factory.mktemp("trained") / "qwen3")


def built(backbone: str, folder: Path, stop: Any = lambda: False, **values: str) -> Any:
    recipe = merge_recipe(SimCSE, None, "", LORA | SHORT | values, trained=True)
    config = RunConfig(device="cpu", save_seconds=1e9)
    context = Context(config, seed=3, folder=folder, should_stop=stop)
    return build_method(SimCSE, resolve(backbone), recipe, context, learns=True)


def trained(backbone: str, folder: Path, stops: tuple[int, ...] = (), **values: str) -> bytes:
    """Train to the end, stopped after so many steps each time; return the checkpoint's bytes."""
    for steps in (*stops, 10**6):
        left = [steps]

        def stop() -> bool:
            left[0] -= 1  # noqa: B023 - asked while this round of the loop runs
            return left[0] < 0  # noqa: B023

        method = built(backbone, folder, stop, **values)
        corpus = Columns(method.token_ids(sentences(50, seed=5)))
        try:
            run_loop(method, corpus, method.context)  # type: ignore[arg-type]
        except Interrupted:
            assert steps < 10**6
    return (folder / "checkpoint" / "trained.safetensors").read_bytes()


@pytest.mark.parametrize("held_in", ["fp32", pytest.param("4bit", marks=pytest.mark.nightly)])
def test_an_interrupted_training_ends_with_the_same_bytes(qwen3, tmp_path, held_in):
    values = {"base_dtype": held_in}
    whole = trained(qwen3, tmp_path / "whole", **values)
    assert trained(qwen3, tmp_path / "stopped", stops=(3, 5), **values) == whole


def gradients(method: Any, chunk: int | None = None) -> dict[str, torch.Tensor]:
    from bench.method.batch import Batch

    method.train()
    torch.manual_seed(0)
    batch = Batch((method.assemble(method.token_ids(sentences(6, seed=4))),))
    backward(method, batch, chunk=chunk)
    found = {n: p.grad.clone() for n, p in method.named_parameters() if p.grad is not None}
    method.zero_grad()
    return found


def test_recomputed_activations_have_the_same_gradient(qwen3, tmp_path):
    plain = gradients(built(qwen3, tmp_path))
    again = gradients(built(qwen3, tmp_path, gradient_checkpointing="true"))
    assert plain.keys() == again.keys() and all("lora_" in name for name in plain)
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient, rtol=0, atol=1e-7)
    still = {"dropout": "0", "lora_dropout": "0"}
    whole = gradients(built(qwen3, tmp_path, **still))
    cut = gradients(built(qwen3, tmp_path, gradient_checkpointing="true", **still), chunk=2)
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, rtol=1e-4, atol=1e-6)
