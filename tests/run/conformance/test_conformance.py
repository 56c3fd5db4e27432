"""The conformance suite passes what keeps the contract and catches what breaks it, by the check
that is meant for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.method import Batch, Features, Loss, Method, TorchMethod
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Plugin, discover
from bench.method.recipes import variants_of
from bench.methods.simcse import SimCSE
from bench.run.conformance.methods import check_method

ENCODING = [
    "encode gives (n, dim) float32",
    "encode is repeatable",
    "encode ignores order",
    "encode ignores batch size and padding",
    "save and load are exact",
    "the checkpoint is safetensors and JSON",
]
TRAINING = [
    "the loss is finite",
    "a batch can be cut",
    "its gradient reaches what trains",
    "nothing frozen moves",
    "a stopped training goes on",
]


def failures(cls: type[Method], **overrides: str) -> dict[str, str]:
    """Return the checks that failed, with what was observed."""
    findings = check_method(Plugin(cls.name, cls, "here", "", "0" * 64), overrides)
    assert [f.kind for f in findings if "+" not in f.what] == [
        *ENCODING,
        *(TRAINING if cls.settings != ("none",) else []),
    ] * len(cls.settings)
    return {f.kind: f.why for f in findings if not f.passed}


# values without which a method cannot run here: a teacher, a generator that is on this machine,
# fewer directions than the tiny backbone has
NEEDS = {
    "dclr": {"teacher": "builtin"},
    "diffcse": {"generator": "none"},
    "guided-simcse": {"guide": "builtin"},
    "rankcse": {"teacher_1": "builtin", "teacher_2": "none"},
    "pretrained": {"pooling": "mlp"},
    "stored-prefix": {"pooling": "mlp"},
    "truncated": {"pooling": "cls", "size": "16"},
}
REGISTRY = discover()
OWN = [(name, NEEDS.get(name, {})) for name in REGISTRY if own_backbone(REGISTRY[name].cls) is None]


@pytest.mark.slow
@pytest.mark.matrix(every=16)
@pytest.mark.parametrize(("name", "overrides"), OWN, ids=[name for name, _ in OWN])
def test_the_packages_own_methods_keep_the_contract(name: str, overrides: dict[str, str]) -> None:
    plugin = discover()[name]
    findings = check_method(plugin, overrides)
    assert [f for f in findings if not f.passed] == []
    per_setting = {
        s: len(ENCODING) + (0 if s == "none" else len(TRAINING)) for s in plugin.cls.settings
    }
    assert {s: sum(f.what == s for f in findings) for s in per_setting} == per_setting
    of_variants = {
        f"{s}+{variant}" for s in plugin.cls.settings for variant in variants_of(plugin.cls)
    }
    assert {f.what for f in findings} == {*plugin.cls.settings, *of_variants}
    assert all(f.why for f in findings)


@pytest.mark.slow
def test_infersent_keeps_the_contract(tmp_path: Path) -> None:
    """A batch that is cut included: of methods with vectors of their own no other test looks at
    their gradients.
    """
    (tmp_path / "v.txt").write_text("a 1 2\nman 3 4\nis 1 0\n. 0.5 0.5\n")
    values = {"vectors": str(tmp_path / "v.txt"), "lstm_size": "5", "classifier_size": "4"}
    assert [f for f in check_method(discover()["infersent"], values) if not f.passed] == []


class Base(TorchMethod):
    """Untrained, mean over the last layer: keeps the contract."""

    name = "base"
    settings: ClassVar[tuple[str, ...]] = ("none",)

    def embed(self, features: Features) -> Tensor:
        mask = features["attention_mask"][:, :, None].float()
        return (self.hidden(features) * mask).sum(1) / mask.sum(1)


class DropoutLeftOn(Base):
    def embed(self, features: Features) -> Tensor:
        return nn.functional.dropout(super().embed(features), 0.1, training=True)


class PaddingLeaks(Base):
    def embed(self, features: Features) -> Tensor:
        return self.hidden(features).mean(1)


class OrderShows(Base):
    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        vectors = np.concatenate([super(OrderShows, self).encode([s]) for s in sentences])
        return vectors + np.arange(len(sentences), dtype=np.float32)[:, None] * 1e-3


class Pickled(Base):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "model.pkl").write_bytes(pickle.dumps({}))


class Raises(Base):
    def embed(self, features: Features) -> Tensor:
        raise RuntimeError("shapes\ndo not fit")


ENCODERS: list[tuple[type[Method], int, str, int]] = [
    # the class, the check that finds its fault, the report, and how many checks may fail with it
    (DropoutLeftOn, 1, "a second call differs by", 5),
    (PaddingLeaks, 3, "one sentence at a time differs by", 0),
    (OrderShows, 2, "the reversed order differs by", 4),
    (Pickled, 5, "found model.pkl", 0),
    (Raises, 0, "RuntimeError: shapes do not fit", 5),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "check", "seen", "others"), ENCODERS)
def test_a_broken_encoder_is_caught_by_the_right_check(cls, check, seen, others):
    found = failures(cls)
    assert seen in found[ENCODING[check]]
    assert set(found) <= {ENCODING[check], *ENCODING[:others]}


class Trained(SimCSE):
    name = "trained"
    settings = ("unsupervised",)
    variants: ClassVar[Any] = {}


class NotSaved(Trained):
    """A buffer that training changes and the checkpoint forgets."""

    def build(self, backbone: Any, recipe: Any) -> None:
        super().build(backbone, recipe)
        self.register_buffer("center", torch.randn(32) * 0.1, persistent=False)

    def embed(self, features: Features) -> Tensor:
        return super().embed(features) + self.center


class FrozenMoves(Trained):
    """Freezes its embeddings and changes them all the same."""

    def build(self, backbone: Any, recipe: Any) -> None:
        super().build(backbone, recipe)
        self.encoder.embeddings.word_embeddings.weight.requires_grad_(False)

    def forward(self, batch: Batch) -> Loss:
        with torch.no_grad():
            self.encoder.embeddings.word_embeddings.weight.mul_(0.99)
        return super().forward(batch)


class InfiniteLoss(Trained):
    def forward(self, batch: Batch) -> Loss:
        loss = super().forward(batch)
        return Loss(loss.total * float("inf"))


class Unreached(Trained):
    def build(self, backbone: Any, recipe: Any) -> None:
        super().build(backbone, recipe)
        self.unused = nn.Linear(2, 2)


class RowsMeet(Trained):
    """Its views are centred over the batch, which belongs in the loss."""

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        return tuple(view - view.mean(0) for view in super().views(batch))


class ForgetsItsQueue(Trained):
    """A method that keeps the last batch as negatives, outside any state."""

    last: Tensor | None = None

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        loss = super().loss(views, batch)
        more = loss.total * 0 if self.last is None else (views[0] @ self.last.T).mean()
        self.last = views[0].detach()
        return Loss(loss.total + more)


FROZEN = "nothing frozen moves"
CUT = "a batch can be cut"
GOES_ON = "a stopped training goes on"
FINITE, REACHES = "the loss is finite", "its gradient reaches what trains"
TRAININGS: list[tuple[type[Method], str, str]] = [
    (NotSaved, "save and load are exact", "the loaded checkpoint differs by"),
    (FrozenMoves, FROZEN, "to resume from: encoder.embeddings.word_embeddings.weight"),
    (InfiniteLoss, FINITE, "expected one finite number, found inf"),
    (Unreached, REACHES, "unused.weight"),
    (RowsMeet, CUT, "a row of view 1 depends on other rows"),
    (ForgetsItsQueue, GOES_ON, "a plain attribute loses its value"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "caught", "seen"), TRAININGS)
def test_a_broken_training_is_caught_by_the_right_check(cls, caught, seen):
    found = failures(cls)
    assert seen in found[caught]
    assert not set(found) & set(ENCODING) - {caught}
