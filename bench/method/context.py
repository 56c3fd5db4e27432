"""Everything that the harness and a method tell each other while it trains, and named seeds."""

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
    """An object that shows the progress of a long step."""

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase of ``total`` steps (None: not known)."""

    def advance(self, done: int, **fields: Any) -> None:
        """Report how many steps of the phase are done, with ``fields`` to display."""

    def note(self, text: str) -> None:
        """Show one line to the user."""


class SilentReporter:
    """A reporter that shows nothing."""

    def phase(self, *what: Any, **fields: Any) -> None:
        """Do nothing, like ``advance`` and ``note``."""

    advance = note = phase


@dataclass(frozen=True)
class Context:
    """The settings that the harness gives a method besides its recipe.

    They do not change during a run.
    """

    device: str = "cpu"
    # fp32, tf32, bf16 or fp16 while training; scoring is always float32
    precision: str = "fp32"
    seed: int = 42
    # the run's folder, with checkpoint/, state/ and curve.jsonl
    folder: Path = Path(".")
    # gives Spearman x 100 on the dev set; None: the last step is kept
    dev_score: Callable[[Method], float] | None = None
    reporter: Reporter = field(default_factory=SilentReporter)
    # true once the user asked to stop
    should_stop: Callable[[], bool] = lambda: False
    # open no connection
    offline: bool = False
    # number of rows of a batch that have their activations in memory at once; None: all
    chunk: int | None = None
    # the processes that train together; None: this one alone
    ranks: Alone | None = None
    # torch compiles the encoder's forward while training
    compiled: bool = False
    # seconds between two saved states; work after the last one is repeated
    save_seconds: float = 60.0


@dataclass
class TrainReport:
    """The result of a training: its length, its speed, and the step that is kept."""

    # optimiser steps that were done
    steps: int
    # the step of the checkpoint
    best_step: int
    # Spearman x 100 of the checkpoint; None without a dev set
    dev_score: float | None
    # without dev scores
    train_seconds: float
    dev_seconds: float
    # rows of the corpus that were seen; a row in two epochs counts twice
    sentences: int
    # tokens of these rows, without padding
    tokens: int = 0
    # chunk, ranks, compiled: how it was executed
    execution: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentences_per_second(self) -> float:
        """Rows of the corpus per second of training."""
        return self.sentences / self.train_seconds if self.train_seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens without padding per second of training."""
        return self.tokens / self.train_seconds if self.train_seconds > 0 else 0.0


def seed_for(seed: int, *what: object) -> int:
    """Return a 63-bit seed for one named draw: ``seed_for(42, "data order")`` is the same for every
    method.
    """
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def rng_for(seed: int, *what: object) -> np.random.Generator:
    """Return a numpy generator for one named draw: ``rng_for(42, "template", epoch, row)`` is
    always the same.
    """
    import numpy as np

    return np.random.default_rng(seed_for(seed, *what))
