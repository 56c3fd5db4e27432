"""CLAIF: Improving Contrastive Learning of Sentence Embeddings from AI Feedback (Cheng et al.,
Findings of ACL 2023, arXiv 2305.01918).

A large language model has rated the similarity of pairs of sentences from 0 to 1. The loss is the
squared error of the cosine, mean over the batch, and nothing else. The pooled vector without a head
trains and is scored.

The authors' sentences come from the training pairs of STS-B, which share sentences with the STS
sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from bench.method import BenchError, Context, Loss, Value
from bench.methods.cosent import CoSENT, pair_cosines
from bench.methods.pooling import POOLERS

CODE = "CLAIF run_training.py"


class CLAIF(CoSENT):
    """CLAIF: the cosine of a pair is regressed on a rating from 0 to 1 by a language model.

    Take it if pairs have ratings that mean something in themselves, not only by their order.

    Example:
        bench run --method claif --setting supervised --corpus rated.csv --backbone roberta-base

    Relations: CoSENT and AnglE use only the order of the ratings.
    """

    name = "claif"
    summary = "regression of the cosine on ratings by a language model"
    paper = (
        "Cheng, Yang, Sun, Li, Qiu: Improving Contrastive Learning of Sentence Embeddings from "
        "AI Feedback, Findings of ACL 2023, arXiv 2305.01918"
    )
    defaults = {
        "pooling": Value(
            "cls", CODE + ":121", f"{', '.join(POOLERS)}; the README's example of loading takes avg"
        ),
        "batch_size": Value(32, CODE + ":113"),
        "epochs": Value(3, "CLAIF README", CODE + ":115: 1"),
        "learning_rate": Value(2e-5, CODE + ":118"),
        "warmup_ratio": Value(0.1, CODE + ":233"),
        "weight_decay": Value(0.01, "sentence-transformers, default of fit()"),
        "max_seq_length": Value(128, "harness: CLAIF's code leaves it to the model, 512"),
        "matryoshka": CoSENT.defaults["matryoshka"],
    }

    def fit(self, corpus: Any, context: Context) -> None:
        """Refuse a corpus with a score outside of 0 to 1."""
        scores = np.concatenate(corpus.column(2).rows(range(len(corpus))))
        wrong = np.flatnonzero((scores < 0) | (scores > 1))
        if len(wrong):
            row = int(wrong[0])
            raise BenchError(
                f"row {row + 1} of the corpus has the score {scores[row]:g}",
                "claif needs scores from 0 to 1",
            )

    def loss_of_pairs(self, x_nH: Tensor, y_nH: Tensor, scores_n: Tensor) -> Loss:
        return Loss((pair_cosines(x_nH, y_nH) - scores_n).square().mean())
