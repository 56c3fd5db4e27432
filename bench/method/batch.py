"""A batch of the corpus, and the loss that a method computes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from bench.method.features import Features


@dataclass
class Batch:
    """Rows of the corpus as features, as ``TorchMethod.collate`` made them.

    Attributes:
        columns: One entry per column, by default (sentence,), (anchor, positive[, hard negative]),
            (anchor, other, {"labels": (n,)}) or (first, second, {"scores": (n,)}).
        step: Optimiser steps already done.
        rows: (n,) numbers of the rows in the corpus. None: made by hand.
        tokens: Tokens of all columns of the complete batch, without padding.
        whole: Rows of the batch over all processes. None: one process.
    """

    columns: tuple[Features, ...]
    step: int = 0
    rows: np.ndarray | None = None
    tokens: int = 0
    whole: int | None = None

    @property
    def size(self) -> int:
        """n, the number of rows."""
        return len(next(iter(self.columns[0].values())))

    def with_columns(self, columns: tuple[Features, ...]) -> Batch:
        """Make a batch of other features at the same step, such as a slice of this one's rows.

        Args:
            columns: The other features.

        Returns:
            A batch of these.
        """
        return Batch(columns, self.step)


@dataclass
class Loss:
    """The loss of one batch.

        return Loss(contrast + weight * hinge, {"contrast": contrast, "hinge": hinge})

    Attributes:
        total: The scalar to minimise.
        parts: Numbers that are logged under their names.
    """

    total: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)
