"""Frozen teachers: ready-made encoders that judge how similar sentences are while another one is
trained. They know no method.

No gradient reaches a teacher, its dropout is off, and no checkpoint holds it: the recipe names it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bench.method import Backbone, BenchError, Features, load_backbone
from bench.methods.losses import cosine_matrix, float32_at_least
from bench.methods.momentum import FrozenCopy


def load_teacher(name: str, student: Backbone, *, offline: bool) -> Backbone:
    """Load the trained encoder that a hub name, a folder or a run names.

    Its width may differ from the student's. Raises BenchError if its vocabulary is not the
    student's, because it reads the student's token ids, and if its first token sees no other.
    """
    model = load_backbone(name, offline=offline)
    if model.tokenizer.get_vocab() != student.tokenizer.get_vocab():
        raise BenchError(
            f"{model.name} and {student.name} have different vocabularies",
            "take a teacher of the same family",
        )
    if not model.reads_ahead:
        raise BenchError(
            f"{model.name} is causal: its first token, by which a teacher judges, "
            "sees none of the others",
            "take a teacher that reads both ways",
        )
    return model


class Teacher(nn.Module):
    """A frozen, trained encoder that gives the CLS of its last layer."""

    def __init__(
        self, name: str, student: Backbone, *, offline: bool = False, dropout: bool = False
    ) -> None:
        super().__init__()
        model = load_teacher(name, student, offline=offline)
        self.encoder = FrozenCopy(model.encoder, dropout=dropout)

    def forward(self, features: Features) -> Tensor:
        cls: Tensor = self.encoder(**features).last_hidden_state[:, 0]
        return float32_at_least(cls)  # (n, H of the teacher)


def teacher_cosines(vectors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return the weighted sum, (B, B), of several teachers' cosines, from (B, H of each) of the
    same sentences.
    """
    cosines = []
    for vectors_BH, weight in zip(vectors, weights, strict=True):
        cosines.append(weight * cosine_matrix(vectors_BH, vectors_BH))
    return torch.stack(cosines).sum(0)
