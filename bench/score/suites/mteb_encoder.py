"""A run's vectors behind mteb's encoder protocol: what mteb asks for is looked up, or encoded if nobody asked before."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.score.suites.vectors import Vectors, checked


class MtebEncoder:
    """``vectors`` answers for any sentence. Similarity is the cosine; prompts are not used: no method here has one."""

    def __init__(
        self, model_name: str, revision: str | None = None, *, device: str | None = None, vectors: Vectors, **_: Any
    ) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self._vectors = vectors
        known = {"name": model_name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE, "modalities": ["text"]}
        self._meta = ModelMeta.create_empty(known)

    @property
    def mteb_model_meta(self) -> Any:
        return self._meta

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any = None, **_: Any
    ) -> np.ndarray:
        """(n, dim) float32 of every text in the batches, in their order. Raises RunFailed, naming the first bad sentence."""
        sentences = texts(inputs)
        return checked(self._vectors(sentences), sentences, str(task_metadata.name))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosine of every vector with every other, (n, m)."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosine of vector i with vector i, (n,)."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def texts(inputs: Any) -> list[str]:
    """The sentences in mteb's batches."""
    return [text for batch in inputs for text in batch["text"]]
