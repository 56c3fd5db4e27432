"""What the harness and a method tell each other while it trains, and seeds that are named after what is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from bench.method.contract import Method
    from bench.method.ranks import Alone


class Reporter(Protocol):
    """Shows the progress of a long step."""

    def phase(self, name: str, total: int | None = None) -> None:
        """A phase begins, of ``total`` steps where that is known."""

    def advance(self, done: int, **fields: Any) -> None:
        """So many steps of the phase are done; ``fields`` are shown with it."""

    def note(self, text: str) -> None:
        """One line for the user."""


class SilentReporter:
    """Shows nothing."""

    def phase(self, *what: Any, **fields: Any) -> None:
        """Nothing, as ``advance`` and ``note``."""

    advance = note = phase


@dataclass(frozen=True)
class Context:
    """What the harness hands to a method besides its recipe. It does not change; what changes while a method trains is in
    :class:`bench.training.loop.Progress`."""

    device: str = "cpu"
    precision: str = "fp32"  # while training: fp32, tf32, bf16 or fp16; scoring is always float32
    seed: int = 42
    folder: Path = Path(".")  # the run's folder: checkpoint/, state/, curve.jsonl
    dev_score: Callable[[Method], float] | None = None  # Spearman x 100; None: keep the last step
    reporter: Reporter = field(default_factory=SilentReporter)
    should_stop: Callable[[], bool] = lambda: False
    offline: bool = False  # open no connection
    chunk: int | None = None  # rows of a batch whose activations are held at once; None: all
    ranks: Alone | None = None  # the processes that train together; None: this one alone
    auto_batch: bool = False  # hold fewer rows at once where a batch does not fit into memory
    compiled: bool = False  # torch compiles the encoder's forward while training
    save_seconds: float = 60.0  # between two saved states; work after the last one is repeated


@dataclass
class TrainReport:
    """What training did. ``dev_score`` is Spearman x 100 of the best checkpoint, None without a dev set."""

    steps: int
    best_step: int
    dev_score: float | None
    train_seconds: float  # without dev evaluation
    dev_seconds: float
    sentences: int  # corpus rows seen, the same row in two epochs counted twice
    tokens: int = 0  # of these rows, without padding
    execution: Mapping[str, Any] = field(default_factory=dict)  # chunk, ranks, compiled

    @property
    def sentences_per_second(self) -> float:
        return self.sentences / self.train_seconds if self.train_seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.train_seconds if self.train_seconds > 0 else 0.0


def seed_for(seed: int, *what: object) -> int:
    """A 63-bit seed for one kind of randomness, named: ``seed_for(42, "data order")`` is the same for every method."""
    return int.from_bytes(hashlib.sha256(repr((seed, *what)).encode()).digest()[:8], "little") >> 1


def rng_for(seed: int, *what: object) -> np.random.Generator:
    """A numpy generator for one named draw: ``rng_for(42, "template", epoch, row)`` is always the same."""
    import numpy as np

    return np.random.default_rng(seed_for(seed, *what))
