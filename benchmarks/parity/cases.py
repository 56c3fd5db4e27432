"""A case: one setting of a method in both programs' words, and how their names map to ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from tiny import NEGATIVES, POSITIVES, SENTENCES

from bench.method import TorchMethod

COLUMNS = {
    "unsupervised": {"sentence": SENTENCES},
    "supervised": {"sent0": SENTENCES, "sent1": POSITIVES, "hard_neg": NEGATIVES},
}


def scored(method: TorchMethod, sentences: Sequence[str]) -> torch.Tensor:
    """Compute the vectors of our method's `encode` before they become float32."""
    return method.embed(method.assemble(method.token_ids(sentences)))


@dataclass(frozen=True)
class Embedding:
    """One way in which the authors embed sentences, and ours for it.

    By their trainer's batcher, for the dev score, or by evaluation.py, for the test.
    """

    name: str
    by: str = "trainer"  # "trainer" | "evaluation"
    arguments: Mapping[str, Any] = field(default_factory=dict)  # options of evaluation.py
    whole_model: bool = False  # evaluation.py loads their training class, not the library's encoder
    ours: Callable[[TorchMethod, Sequence[str]], torch.Tensor] = scored


@dataclass(frozen=True)
class Case:
    """One setting of one method on one backbone, in both programs' words."""

    name: str
    method: type[TorchMethod]
    setting: str = "unsupervised"
    values: Mapping[str, Any] = field(default_factory=dict)  # keys of our recipe
    arguments: Mapping[str, Any] = field(default_factory=dict)  # options of their train.py
    embeddings: tuple[Embedding, ...] = (Embedding("dev"),)
    step: int = 0  # optimiser steps already done
    processes: int = 1  # over which the batch is spread
    families: tuple[str, ...] = ("bert", "roberta")


@dataclass(frozen=True)
class Repository:
    """The authors' repository.

    ``names``: pairs (beginning of our parameter's name, beginning of theirs), in which FAMILY means
    bert or roberta. The first that fits counts.
    """

    name: str
    package: str
    names: tuple[tuple[str, str], ...]

    def theirs(self, name: str, family: str) -> str:
        for ours, theirs in self.names:
            if name.startswith(ours):
                return theirs.replace("FAMILY", family) + name[len(ours) :]
        raise SystemExit(f"our parameter {name} has no counterpart in {self.name}")
