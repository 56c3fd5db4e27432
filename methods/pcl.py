"""PCL, PeerCL: Peer-Contrastive Learning with Diverse Augmentations for Unsupervised Sentence
Embeddings (Wu et al., EMNLP 2022).

Two networks, student u and peer q, start from one checkpoint and both train; only the student
remains. Each reads ten texts of a sentence: the sentence (anchor), the sentence again (dropout),
and twice, drawn anew, its words shuffled, reversed, some deleted and some repeated. So an anchor
has nine positives:

    a(X, Y)_i = [ cos(X_i0, Y_ik) / tau for k = 1..9 | cos(X_i0, Y_j0) / tau for j != i ]
                                         B + 8 entries
    loss = CE(u) + CE(q)                 anchors against the second views, InfoNCE
         + BCE(u) + BCE(q)               with logits that are the VALUES of softmax a(X, X);
                                         target 1 for the nine, 0 for others
         + KL(softmax a(q,u) || softmax a(u,q)) + KL(softmax a(q,q) || softmax a(u,u))

BCE and KL are means over all B (B + 8) entries, and gradients run into both networks, as in the
authors' code. The head is one for both, and serves training only. In that code the peer reads
without an attention mask and through BERT's own pooling layer; here it reads as the student does,
`faithful` has theirs. A step costs ten times as much as one of SimCSE: `--chunk` helps with memory.
The student's CLS is scored without the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, kl_div

from bench.method import (
    Backbone,
    Batch,
    Features,
    Ids,
    Loss,
    Recipe,
    Value,
    check_positive,
    join,
    rng_for,
)
from bench.methods.bounds import check_share
from bench.methods.losses import cosine_matrix, float32_at_least, info_nce, unit_vectors
from bench.methods.pooling import Head, ScoredFirstToken
from bench.methods.rankcse import others

RUN = "PeerCL run_unsup_pcl.sh"


class PCL(ScoredFirstToken):
    """PCL: two networks teach each other with nine altered copies of a sentence.

    Take it if cost does not matter: a step costs ten times as much as one of SimCSE.

    Example:
        bench run --method pcl --setting unsupervised --backbone bert-base-uncased --chunk 16

    Relations: ESimCSE has one altered copy and a momentum encoder in the place of the peer.
    """

    name = "pcl"
    settings = ("unsupervised",)
    by_dropout = ("unsupervised",)
    summary = "two networks teach each other, ten texts per sentence"
    paper = (
        "Wu et al.: PCL: Peer-Contrastive Learning with Diverse Augmentations for Unsupervised "
        "Sentence Embeddings, EMNLP 2022, arXiv 2201.12093"
    )
    trains = "the whole encoder; while training also the head and the peer, a second whole encoder"
    training_only = ("head", "peer", "peer_pooler")
    defaults = {
        "learning_rate": Value(3e-5, RUN),
        "batch_size": Value(
            64,
            "PeerCL README.md",
            "256 in the run script since 2023-04-07, 16 in its first version",
        ),
        "temperature": Value(0.05, RUN),
        "share": Value(0.2, "PeerCL train.py", "of the words, deleted or repeated"),
        "faithful": Value(
            False,
            "ours",
            "true: the peer without attention mask, through the backbone's own pooling layer",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_positive(recipe, "temperature")
        check_share(recipe, "share")

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.head = Head(backbone.hidden_size)
        self.peer = deepcopy(self.encoder)
        # BERT's own pooling layer has the form of the head; RoBERTa has none, and begins with a
        # fresh one
        self.peer_pooler: Head | None = None
        if recipe.faithful:
            self.peer_pooler = Head.kept_by(backbone) or Head(backbone.hidden_size)

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        """Make the ten texts."""
        (ids,) = columns.values()
        room = self.recipe.max_seq_length - len(self.before) - len(self.after)
        texts = []
        for row, number in zip(ids, rows, strict=True):
            rng = rng_for(self.context.seed, "pcl", epoch, int(number))
            texts.append(ten_texts(row[:room], self.recipe.share, room, rng))
        return tuple(self.assemble(column) for column in zip(*texts, strict=True))

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the vectors of student and peer for the ten texts, (n, 10, H) each."""
        texts = join(batch.columns, self.pad_id)  # (10 n, T): one pass of either network
        student = self.head(self.embed(texts))
        peer = self.head(self.read_by_peer(texts))
        return tuple(torch.stack(z.chunk(len(batch.columns)), dim=1) for z in (student, peer))

    def read_by_peer(self, texts: Features) -> Tensor:
        """Return the peer's CLS, (n, H); the authors' peer gets no attention mask."""
        if self.peer_pooler is None:
            cls: Tensor = self.peer(**texts).last_hidden_state[:, 0]
            return cls
        unmasked = self.peer(input_ids=texts["input_ids"]).last_hidden_state[:, 0]
        pooled: Tensor = self.peer_pooler(unmasked)
        return pooled

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        parts = peer_losses(*views, temperature=self.recipe.temperature)
        return Loss(torch.stack(list(parts.values())).sum(), parts)


def peer_losses(student_BKH: Tensor, peer_BKH: Tensor, *, temperature: float) -> dict[str, Tensor]:
    """Return the six parts of PCL's loss, to be summed.

    Text 0 is the anchor, text 1 the sentence again, the others are altered.

    Source: PCL (Wu et al. 2022), as in the authors' pcl/models.py.
    """
    u, q = student_BKH, peer_BKH
    uu = similarities(u, u) / temperature
    qq = similarities(q, q) / temperature
    uq = similarities(u, q) / temperature
    qu = similarities(q, u) / temperature

    def classes(logits: Tensor) -> Tensor:
        """Return the mean binary cross-entropy of a list's entries being positives, from its
        softmax.
        """
        target = torch.zeros_like(logits)
        target[:, : u.shape[1] - 1] = 1
        return binary_cross_entropy_with_logits(logits.softmax(1), target)

    def divergence(target: Tensor, guess: Tensor) -> Tensor:
        log_q, log_p = guess.log_softmax(1), target.log_softmax(1)
        return kl_div(log_q, log_p, reduction="none", log_target=True).mean()

    return {
        "simcse_student": info_nce(u[:, 0], u[:, 1], temperature=temperature),
        "simcse_peer": info_nce(q[:, 0], q[:, 1], temperature=temperature),
        "bce_student": classes(uu),
        "bce_peer": classes(qq),
        "kl_cross": divergence(qu, uq),
        "kl_sym": divergence(qq, uu),
    }


def similarities(x_BKH: Tensor, y_BKH: Tensor) -> Tensor:
    """Return the cosines of each anchor of x, (B, K - 1 + B - 1).

    First with the K - 1 other texts of y's same sentence, then with y's other anchors.
    """
    with torch.autocast(x_BKH.device.type, enabled=False):
        x = unit_vectors(float32_at_least(x_BKH))
        y = unit_vectors(float32_at_least(y_BKH))
        own = (x[:, :1] * y[:, 1:]).sum(-1)
    return torch.cat([own, others(cosine_matrix(x_BKH[:, 0], y_BKH[:, 0]))], dim=1)


def ten_texts(ids: Ids, share: float, longest: int, rng: np.random.Generator) -> list[list[int]]:
    """Return the anchor, the same again, and eight altered copies.

    Twice: shuffled, reversed, with words deleted, with words repeated (up to ``longest``).
    """
    words = [int(token) for token in ids]
    count = round(share * len(words))
    room = max(0, longest - len(words))
    texts = [words, words]
    for _ in range(2):
        texts.append([words[i] for i in rng.permutation(len(words))])
        texts.append(words[::-1])
        texts.append(deleted(words, count, rng))
        texts.append(repeated(words, min(count, room), rng))
    return texts


def deleted(words: Sequence[int], count: int, rng: np.random.Generator) -> list[int]:
    """Leave out ``count`` drawn words; of several that are equal the first goes."""
    left = list(words)
    for i in rng.choice(len(words), size=count, replace=False):
        left.remove(words[i])
    return left


def repeated(words: Sequence[int], count: int, rng: np.random.Generator) -> list[int]:
    """Put ``count`` drawn words in a second time, at random places."""
    longer = list(words)
    if not count:
        return longer
    for i in rng.choice(len(words), size=count, replace=False):
        longer.insert(int(rng.integers(len(longer) + 1)), words[i])
    return longer
