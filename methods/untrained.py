"""The untrained rows of the papers' tables: a pretrained encoder, pooled, nothing trained."""

from __future__ import annotations

from torch import Tensor

from bench.method import Features, Portable, TorchMethod
from bench.methods.pooling import POOLERS, portable_of


class Untrained(TorchMethod):
    """A pretrained encoder, pooled, with nothing trained.

    Example:
        bench run --method cls,last-avg,first-last-avg --backbone bert-base-uncased

    Relations: PromptBERT in the setting "none" reads a template; whitening and flow post-process
    them.
    """

    settings = ("none",)
    deterministic = ("none",)
    pooler: str

    def embed(self, features: Features) -> Tensor:
        # L + 1 of (n, T, H)
        states = self.encoder(**features, output_hidden_states=True).hidden_states
        return POOLERS[self.pooler](states, features["attention_mask"])

    def portable(self) -> Portable:
        return portable_of(self, self.pooler)


class Cls(Untrained):
    """The last layer's first token: `cls_before_pooler` of SimCSE's evaluation.py."""

    name, pooler = "cls", "cls"
    first_token = True
    summary = "the last layer's first token, without a head"


class LastAvg(Untrained):
    """The mean over the tokens of the last layer."""

    name, pooler = "last-avg", "avg"
    summary = "mean over the tokens of the last layer"


class FirstLastAvg(Untrained):
    """The mean over the tokens of layer 1 and the last layer: 60.73 on BERT-base.

    This is the meaning of "first-last avg." since SimCSE commit 206d7ae.
    """

    name, pooler = "first-last-avg", "avg_first_last"
    summary = "mean over the tokens of layer 1 and the last layer"


class EmbeddingLastAvg(Untrained):
    """The mean over the tokens of the embedding layer and the last layer: the papers' 56.70 on
    BERT-base.
    """

    name, pooler = "embedding-last-avg", "avg_emb_last"
    summary = "mean over the tokens of embedding layer and last layer"
