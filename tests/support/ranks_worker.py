"""One of the processes of test_spread.py: python ranks_worker.py RANK RANKS FOLDER BACKBONE; it
leaves answers-RANK.json.

For every method, setting and variant: the gradient of a batch in this process alone, and the
gradient of the same batch spread over the ranks. Nothing is random in either: no dropout, and masks
that the tokens themselves determine.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist
from models import built, sentences
from torch import Tensor, nn

from bench.method import Batch, BenchError, Context, Loss, TorchMethod, seed_for
from bench.method.contract import how_fitted
from bench.method.own_vectors import own_backbone
from bench.method.plugins import discover
from bench.method.ranks import Ranks
from bench.run.planned import NOT_TRAINED, learns
from bench.training.batches import part_of
from bench.training.gradient import backward

COLUMNS = {
    "sentences": ("sentence",),
    "triplets": ("sent0", "sent1", "hard_neg"),
    "labelled": ("sent0", "sent1", "label"),
    "graded": ("sent0", "sent1", "score"),
}
# rows of a batch; "one row": as few as the method takes
SHARES = {"uneven": 5, "one row": 1}
PLACES = (
    "teacher",
    "generator",
    "teacher_1",
    "teacher_2",
    "guide",
)  # recipe keys that name a second model
# thresholds at which the tiny guide, which finds all sentences alike, keeps some negatives: else the
# loss is 0
KEEPS = {"guided-simcse": {"phi": 0.99999, "margin": -0.001}}
FEWEST = {"unsee": 2}  # rows, for the statistics of a batch
DROPS = ("dropout", "prefix_dropout", "drophead")


def cases() -> Iterator[tuple[str, type[TorchMethod], str, str]]:
    """List (name, class, setting, variant) of all that the loop trains on a pretrained encoder."""
    for name, plugin in discover().plugins.items():
        cls: Any = plugin.cls
        if own_backbone(cls) is not None or not issubclass(cls, TorchMethod):
            continue  # the conformance check looks at the gradients of what has no backbone
        if how_fitted(cls) == "pass":
            continue
        for setting in cls.settings:
            if learns(cls, setting) and (setting != NOT_TRAINED or how_fitted(cls) == "steps"):
                yield from (
                    (f"{name}+{v}" if v else name, cls, setting, v) for v in ("", *cls.variants)
                )


def columns_of(method: TorchMethod, kind: str, count: int) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for seed, name in enumerate(COLUMNS[kind]):
        if name == "label":
            columns[name] = [[i % 3] for i in range(count)]
            continue
        if name == "score":
            columns[name] = [[i % 3 / 2] for i in range(count)]
            continue
        texts = sentences(count, seed=seed, longest=9)
        columns[name] = texts if method.trains_on == "text" else method.token_ids(texts)
    return columns


def batch_of(method: TorchMethod, columns: dict[str, Any], rows: np.ndarray, whole: int) -> Batch:
    """Make these rows of a batch of ``whole`` rows, as the loop does."""
    batch = part_of(
        Batch(method.collate(columns, np.arange(whole), 0), step=3, rows=np.arange(whole)), rows
    )
    batch.whole = whole
    return batch


def still(method: TorchMethod) -> TorchMethod:
    """Put a method in train mode and float64, with no dropout anywhere."""
    method.double().train()
    for module in method.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return method


def masked_by_token(
    ids: Tensor, spared: Tensor, mask_id: int, vocabulary: int, probability: float
) -> tuple[Tensor, Tensor]:
    """Mask by token, in place of the random masks of masked language modelling."""
    chosen = (ids % 3 == 0) & ~spared
    return torch.where(chosen, mask_id, ids), torch.where(chosen, ids, -100)


def gradient(
    method: TorchMethod, batch: Batch, ranks: Ranks | None, chunk: int | None = None
) -> dict[str, Any]:
    """Return loss, parts and gradients, and the buffers as the batch has left them."""
    method.context = replace(method.context, ranks=ranks)
    trained = [p for p in method.parameters() if p.requires_grad]
    losses = backward(method, batch, chunk=chunk)
    if ranks is not None:
        ranks.mean_gradients(trained)
    grads = [p.grad for p in trained]
    pairs = list(zip(trained, grads, strict=True))
    flat = torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])
    missing, buffers = [g is None for g in grads], dict(method.named_buffers())
    return {"losses": losses, "gradient": flat, "missing": missing, "buffers": buffers}


def compared(alone: dict[str, Any], spread: dict[str, Any]) -> dict[str, float]:
    """Return how far the two are apart, and how large the gradient is."""
    buffers = [
        (alone["buffers"][name], tensor)
        for name, tensor in spread["buffers"].items()
        if tensor.is_floating_point()
    ]
    a, b = alone["gradient"], spread["gradient"]
    losses = [(alone["losses"][name] - spread["losses"][name]).item() for name in alone["losses"]]
    return {
        "size": a.abs().max().item(),
        "gradient": (a - b).abs().max().item(),
        "halved": (a / 2 - b).abs().max().item(),
        "ratio": (b @ a / (a @ a)).item(),
        "losses": max(map(abs, losses)),
        "buffers": max(((x - y).abs().max().item() for x, y in buffers if x.numel()), default=0.0),
        "missing": float(alone["missing"] != spread["missing"]),
    }


def answer(
    cls: type[TorchMethod],
    setting: str,
    variant: str,
    backbone: str,
    ranks: Ranks,
    folder: Path,
    **values: Any,
) -> Any:
    chunk = values.pop("chunk", None)
    about = {"setting": setting, "variant": variant, "context": Context(seed=1, folder=folder)}
    method = still(built(cls, backbone, folder, **about, **values))
    (kind, *_) = [kind for kind in reversed(cls.needs(setting, method.recipe)) if kind in COLUMNS]
    found = {}
    for name, rows_of_batch in SHARES.items():
        count = max(rows_of_batch, FEWEST.get(cls.name, 1))
        tokenizer = method.backbone.tokenizer  # a third of the time went into copies of it
        one, many = (copy.deepcopy(method, {id(tokenizer): tokenizer}) for _ in range(2))
        columns, rows = columns_of(method, kind, count), np.arange(count)
        one.loss = with_the_same_draws(one.loss)  # type: ignore[method-assign]
        with mock.patch("bench.methods.gather.processes", lambda: 1):
            alone = gradient(one, batch_of(one, columns, rows, count), None)
        found[name] = compared(
            alone, gradient(many, batch_of(many, columns, ranks.part(rows), count), ranks, chunk)
        )
    return found


def with_the_same_draws(loss: Callable[..., Loss]) -> Callable[..., Loss]:
    """Return a loss that makes in one process the draws of every rank."""

    def seeded(views: tuple[Tensor, ...], batch: Batch) -> Loss:
        torch.manual_seed(seed_for(1, "loss", batch.step))
        return loss(views, batch)

    return seeded


def everything(backbone: str, ranks: Ranks, folder: Path) -> dict[str, Any]:
    answers = {}
    for name, cls, setting, variant in cases():
        values = {key: backbone for key in PLACES if key in cls.defaults}
        values |= KEEPS.get(cls.name, {})
        values |= {key: 0.0 for key in DROPS if key in cls.defaults or key == "dropout"}
        more = {"": {"chunk": 2} if name in ("simcse", "promcse", "diffcse") else {}}
        if "faithful" in cls.defaults and not variant:
            more["faithful "] = {"faithful": True}
        for how, changed in more.items():
            try:
                answers[f"{how}{name}, {setting}"] = answer(
                    cls, setting, variant, backbone, ranks, folder, **values, **changed
                )
            except BenchError:  # the two do not go together: not this variant in this setting
                continue
    return answers


def main() -> None:
    rank, count = map(int, sys.argv[1:3])
    folder, backbone = Path(sys.argv[3]), sys.argv[4]
    modules = [module for name, module in sys.modules.items() if name.startswith("bench.methods.")]
    for module in (one for one in modules if hasattr(one, "mask_tokens")):
        module.mask_tokens = masked_by_token  # type: ignore[attr-defined]
    torch.set_default_dtype(torch.float64)  # the draws of a loss
    ranks = Ranks(dist.FileStore(str(folder / "store"), count), rank, count, "cpu")
    answers = everything(backbone, ranks, folder)
    (folder / f"answers-{rank}.json").write_text(json.dumps(answers), encoding="utf-8")
    ranks.share(None)
    os._exit(0)  # gloo's threads may outlive the interpreter, which then aborts


if __name__ == "__main__":
    discover()  # the methods' modules are there now
    main()
