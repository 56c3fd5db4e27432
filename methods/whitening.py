"""BERT-whitening: Whitening Sentence Representations for Better Semantics and Faster Retrieval (Su
et al. 2021).

A cosine presumes coordinates that are uncorrelated and of one scale. BERT's are neither, so they
are made so, with nothing trained: one pass over unlabelled sentences gives the mean mu and the
covariance of their pooled vectors x (1, H), and

    C = U diag(s) U^T, s descending        W = U diag(s^-1/2), so that W^T C W = 1
    y = (x - mu) W[:, :k]                  algorithm 1;  k = H, or fewer: the k directions of most
                                           variance

y is scored, by its cosines; the signs of U's columns are free and change none of them. The encoder
is as it comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.base.errors import Interrupted
from bench.method import (
    Affine,
    Backbone,
    BenchError,
    Context,
    Features,
    Ids,
    Portable,
    Recipe,
    TorchMethod,
    TrainReport,
    Value,
    check_choice,
)
from bench.methods.pooling import POOLERS, pooled, portable_of

# rows that are sorted by length together; rows of one pass through the encoder
CHUNK, BATCH = (
    4096,
    64,
)


class Whitening(TorchMethod):
    """Whitening: pooled vectors of a frozen encoder are made uncorrelated and of one scale, in one
    pass.

    Take it to post-process an untrained encoder in one pass.

    Example:
        bench run --method whitening --corpus target --backbone bert-base-uncased

    Relations: flow is the nonlinear case.
    """

    mu: Tensor  # (H,)
    W: Tensor  # (H, k)

    name = "whitening"
    settings = ("none",)
    deterministic = ("none",)
    summary = "pooled vectors made uncorrelated and of one scale"
    paper = (
        "Su, Cao, Liu, Ou: Whitening Sentence Representations for Better Semantics and Faster "
        "Retrieval, arXiv 2103.15316"
    )
    trains = (
        "nothing by gradient; the mean (H) and the kernel (H, components) are computed, the "
        "encoder is frozen"
    )
    encoder_is_frozen = True
    defaults = {
        "pooling": Value(
            "avg_first_last",
            "BERT-whitening eng/utils.py: outputs of layer 1 and the last",
            "SimCSE's own whitening script (66.28) is unpublished; "
            "its first-last was avg_emb_last at that time",
        ),
        "components": Value(
            None,
            "all of them: SimCSE's tables",
            "BERT-whitening also published 256 (base) and 384 (large)",
        ),
        "max_seq_length": Value(
            64,
            "BERT-whitening eng/utils.py: of the sentences that it is fitted on and of those "
            "that are scored",
        ),
        "corpus_column": Value(
            "all",
            "SimCSE appendix C: both columns of SNLI and MNLI",
            "target text (--corpus target) is the paper's other option",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_choice(recipe, "pooling", sorted(POOLERS))
        if recipe.get("dropout") is not None:
            raise BenchError(
                f"dropout={recipe.dropout}: whitening reads sentences without dropout",
                "leave dropout out",
            )
        components = recipe.components
        if components is None:
            return
        if not isinstance(components, int) or components < 1:
            raise BenchError(
                f"components={components}: expected a whole number, at least 1",
                "--set components=none keeps all",
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.check(recipe, backbone.path)
        H = backbone.hidden_size
        k = H if recipe.components is None else recipe.components
        if k > H:
            raise BenchError(
                f"components={k}: {backbone.name} has {H} dimensions",
                f"--set components={H}, or none for all",
            )
        self.encoder.requires_grad_(False)
        self.register_buffer("mu", torch.zeros(H))
        # until it is fitted: the pooled vector itself
        self.register_buffer("W", torch.eye(H)[:, :k].contiguous())

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        return super().assemble(ids, max_length or self.recipe.max_seq_length)

    def pooled(self, features: Features) -> Tensor:
        return pooled(self, features, self.recipe.pooling)  # (n, H)

    def embed(self, features: Features) -> Tensor:
        whitened: Tensor = (self.pooled(features) - self.mu) @ self.W  # (n, k)
        return whitened

    def portable(self) -> Portable:
        """Return two affine maps, x - mu and its product with W.

        In one map, W mu would be taken from W x: large numbers from large ones.
        """
        centred = Affine(torch.eye(len(self.mu)), -self.mu)
        return portable_of(
            self,
            self.recipe.pooling,
            centred,
            Affine(self.W.T),
            max_tokens=self.recipe.max_seq_length,
        )

    def fit(self, corpus: Any, context: Context) -> TrainReport:
        """Pass once over the corpus, in evaluation mode, with float32 vectors and float64 sums."""
        began = time.perf_counter()
        self.to(context.device).eval()
        context.reporter.phase("fit", len(corpus))
        moments = Moments(self.backbone.hidden_size)
        for vectors_nH in self._vectors(corpus, context):
            moments.add(vectors_nH)
            context.reporter.advance(moments.count)
        W = kernel(moments, self.W.shape[1])
        self.mu.copy_(torch.from_numpy(moments.mean))
        self.W.copy_(torch.from_numpy(W))
        seconds = time.perf_counter() - began
        return TrainReport(
            steps=0,
            best_step=0,
            dev_score=None,
            train_seconds=seconds,
            dev_seconds=0.0,
            sentences=len(corpus),
        )

    def _vectors(self, corpus: Any, context: Context) -> Iterator[np.ndarray]:
        for start in range(0, len(corpus), CHUNK):
            rows = corpus.column(0).rows(np.arange(start, min(start + CHUNK, len(corpus))))
            rows = sorted(rows, key=len)
            for i in range(0, len(rows), BATCH):
                if context.should_stop():
                    raise Interrupted(
                        "stopped while whitening was fitted; the same command begins that again"
                    )
                features = {
                    key: value.to(context.device)
                    for key, value in self.assemble(rows[i : i + BATCH]).items()
                }
                with torch.inference_mode():
                    yield self.pooled(features).double().cpu().numpy()


class Moments:
    """The mean (H) and covariance (H, H) of rows that come in blocks, in float64, without large
    sums that cancel.

    Source: Chan, Golub and LeVeque 1979, the update of a mean and a scatter matrix by a further
    block.
    """

    def __init__(self, dimensions: int) -> None:
        self.count = 0
        self.mean = np.zeros(dimensions)
        self.scatter = np.zeros((dimensions, dimensions))

    def add(self, rows_nH: np.ndarray) -> None:
        n, total = len(rows_nH), self.count + len(rows_nH)
        mean = rows_nH.mean(0)
        centred, shift = rows_nH - mean, mean - self.mean
        self.scatter += centred.T @ centred + np.outer(shift, shift) * (self.count * n / total)
        self.mean += shift * (n / total)
        self.count = total

    def covariance(self) -> np.ndarray:
        return self.scatter / (self.count - 1)


def kernel(moments: Moments, components: int) -> np.ndarray:
    """Return W, (H, components), such that the whitened rows have covariance 1.

    Raises BenchError if the corpus is too small for it.
    """
    H = len(moments.mean)
    if moments.count <= components:
        raise BenchError(
            f"whitening to {components} dimensions needs more than {components} sentences, "
            f"the corpus has {moments.count}",
            "give a larger --corpus, or --set components= a smaller number",
        )
    s, U = np.linalg.eigh(moments.covariance())  # ascending
    s, U = s[::-1], U[:, ::-1]
    # below it is the rounding of float32 vectors; one layer of a fresh LayerNorm, whose outputs sum
    # to 0, has such a direction
    rank = int((s > s[0] * (H * np.finfo(np.float32).eps) ** 2).sum())
    if rank < components:
        raise BenchError(
            f"the corpus's vectors vary in {rank} directions only, "
            f"whitening to {components} divides by 0",
            f"give a larger --corpus, or --set components={rank}"
            if rank
            else "give a corpus of different sentences",
        )
    whitening: np.ndarray = U[:, :components] / np.sqrt(s[:components])
    return whitening
