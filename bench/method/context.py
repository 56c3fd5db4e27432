"""Everything that the harness and a method tell each other while it trains, and named seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bench.method.config import RunConfig

if TYPE_CHECKING:
    import numpy as np

    from bench.method.ranks import Alone


class Reporter(Protocol):
    """An object that shows the progress of a long step."""

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase of ``total`` steps (None: not known)."""

    def advance(self, done: int, **fields: Any) -> None:
        """Report how many steps of the phase are done, with ``fields`` to display."""

    def note(self, text: str, *, detail: bool = False) -> None:
        """Show one line to the user; a ``detail`` only with ``--verbose``."""


class SilentReporter:
    """A reporter that shows nothing."""

    def phase(self, *what: Any, **fields: Any) -> None:
        """Do nothing, like ``advance`` and ``note``."""

    advance = note = phase


@dataclass(frozen=True)
class Context:
    """The settings that the harness gives a method besides its recipe.

    They do not change during a run.

    Attributes:
        config: The options of the run, such as chunk.
        device: "cpu", "cuda:0", "mps".
        precision: "fp32", "tf32", "bf16" or "fp16" while training; scoring is always float32.
        offline: Open no connection.
        seed: The run's seed, from which ``rng_for`` and ``seed_for`` draw.
        folder: The run's folder, with checkpoint/, state/ and curve.jsonl.
        dev_score: Gives Spearman x 100 on the dev set. None: the last step is kept.
        reporter: Shows progress.
        should_stop: True once the user asked to stop.
        ranks: The processes that train together. None: only this one.
    """

    config: RunConfig = field(default_factory=partial(RunConfig, device="cpu", precision="fp32"))
    seed: int = 42
    folder: Path = Path(".")
    dev_score: Callable[[Any], float] | None = None
    reporter: Reporter = field(default_factory=SilentReporter)
    should_stop: Callable[[], bool] = lambda: False
    ranks: Alone | None = None

    @property
    def device(self) -> str:
        return self.config.device

    @property
    def precision(self) -> str:
        return self.config.precision

    @property
    def offline(self) -> bool:
        return self.config.offline


@dataclass
class TrainReport:
    """The result of a training: its length, its speed, and the step that is kept.

    Attributes:
        steps: Optimiser steps that were done.
        best_step: The step of the checkpoint.
        dev_score: Spearman x 100 of the checkpoint. None without a dev set.
        train_seconds: Seconds of training, without dev scores.
        dev_seconds: Seconds of dev scores.
        sentences: Rows of the corpus that were seen; a row in two epochs counts twice.
        tokens: Tokens of these rows, without padding.
        execution: How it was executed: chunk, ranks, compiled.
    """

    steps: int
    best_step: int
    dev_score: float | None
    train_seconds: float
    dev_seconds: float
    sentences: int
    tokens: int = 0
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
    """Derive a seed for one named draw.

    ``seed_for(42, "data order")`` is the same for every method.

    Args:
        seed: The run's seed.
        *what: What is drawn: texts and numbers.

    Returns:
        63 bits of the sha256 of all arguments.
    """
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def rng_for(seed: int, *what: object) -> np.random.Generator:
    """Make a generator for one named draw.

    ``rng_for(42, "template", epoch, row)`` always draws the same.

    Args:
        seed: The run's seed.
        *what: What is drawn: texts and numbers.

    Returns:
        A generator of numpy, with the seed of ``seed_for``.
    """
    import numpy as np

    return np.random.default_rng(seed_for(seed, *what))
