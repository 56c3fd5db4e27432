"""What the tests of fully fine-tuned methods ask of any of them: structure, checkpoint, state to resume from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import Columns, sentences
from safetensors.torch import load_file

from bench.base.errors import Interrupted
from bench.method import Batch, Context, Features, TorchMethod
from bench.training.loop import run_loop

TEXTS = sentences(8, seed=3, longest=14)


def views(
    method: TorchMethod, texts: Sequence[str], rows: Sequence[int] | None = None, epoch: int = 0
) -> tuple[Features, ...]:
    column = list(texts) if method.trains_on == "text" else method.backbone.ids(texts)
    return method.collate(
        {"sentence": column}, np.array(range(len(texts)) if rows is None else rows), epoch
    )


def batch_of(method: TorchMethod, texts: Sequence[str] = TEXTS, **more: Any) -> Batch:
    return Batch(views(method, texts, **more))


def rows_of(features: Features) -> list[list[int]]:
    """Each row's ids without its padding."""
    return [
        ids[mask.bool()].tolist()
        for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)
    ]


def check_step(
    method: TorchMethod, frozen: Sequence[str] = (), follows: Sequence[str] = ()
) -> None:
    """Two steps of the method's own optimiser: every parameter trains but those that begin with ``frozen``; each gets a gradient
    that is not zero everywhere; what is frozen stays bit for bit, unless it begins with ``follows``."""
    state = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    parameters = dict(method.named_parameters())
    optimizer = method.optimizer()
    method.train()
    torch.manual_seed(0)
    for _ in range(2):  # what follows the encoder moves only after the encoder has moved
        method(batch_of(method)).total.backward()
        for name, parameter in parameters.items():
            assert parameter.requires_grad != name.startswith((*frozen, "-")), name
            assert (parameter.grad is not None) == parameter.requires_grad, name
            # a softmax does not change with a key's bias: its gradient is rounding
            assert parameter.grad is None or "key.bias" in name or bool(parameter.grad.any()), name
        optimizer.step()
    method.eval()
    moved = {
        name for name, tensor in method.state_dict().items() if not torch.equal(tensor, state[name])
    }
    assert moved >= {
        name for name, p in parameters.items() if p.requires_grad and "key.bias" not in name
    }
    still = {
        name
        for name, p in parameters.items()
        if not p.requires_grad and not name.startswith((*follows, "-"))
    }
    assert not moved & still
    assert {name.split(".")[0] for name in moved if name.startswith((*follows, "-"))} == {
        name.split(".")[0] for name in follows
    }


def check_checkpoint(
    build: Callable[..., TorchMethod], folder: Path, absent: Sequence[str] = ()
) -> None:
    """After some steps: what is loaded into a fresh one encodes bit for bit alike, and nothing that begins with ``absent`` is in it."""
    first, second = build(seed=1), build(seed=2)
    for _ in range(2):
        optimizer = first.optimizer()
        first.train()
        first(batch_of(first)).total.backward()
        optimizer.step()
    first.save(folder)
    wanted = first.encode(TEXTS)
    assert not np.array_equal(second.encode(TEXTS), wanted)
    second.load(folder)
    assert np.array_equal(second.encode(TEXTS), wanted)
    stored = set(load_file(folder / "trained.safetensors"))
    assert any(name.startswith("encoder.") for name in stored)
    assert not [name for name in stored if name.startswith((*absent, "-"))]


def check_resume(
    build: Callable[..., TorchMethod], folder: Path, extra: Sequence[str] = ()
) -> None:
    """A training that was stopped half-way and goes on ends like one that was not: every tensor, also those that only training
    needs. ``extra``: beginnings of what the state to resume from must hold beside the checkpoint."""

    def trained(name: str, stop_after: int | None) -> TorchMethod:
        asked = iter(range(100))
        context = Context(
            seed=1,
            folder=folder / name,
            save_seconds=1e9,
            should_stop=lambda: next(asked) == stop_after if stop_after else False,
        )
        method = build(
            seed=1,
            context=context,
            max_steps=5,
            batch_size=3,
            select_on="last",
            epochs=5,
            drop_last=True,
        )
        column = TEXTS if method.trains_on == "text" else method.backbone.ids(TEXTS)
        corpus: Any = Columns(column)
        corpus.columns = ("sentence",)
        if stop_after is None:
            run_loop(method, corpus, context)
        else:
            with pytest.raises(Interrupted):
                run_loop(method, corpus, context)
        return method

    whole = trained("whole", None)
    trained("stopped", 3)
    resumed = trained("stopped", None)
    kept = whole.training_state()
    assert {name.split(".")[0] for name in kept.keys() - whole.trained_state().keys()} == set(extra)
    for name, tensor in resumed.state_dict().items():
        assert torch.equal(tensor, whole.state_dict()[name]), name
    assert np.array_equal(resumed.encode(TEXTS), whole.encode(TEXTS))
