"""The vectors of a run's method, and tasks that are scored with them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.method import Method
from bench.method.context import Reporter
from bench.method.finished import FinishedEncoder
from bench.method.prompts import task_prompt
from bench.score.encoding import VectorStore
from bench.score.suites import KnownTask, RunPlace, TaskResult
from bench.score.suites.frequent import Token, Tokens


def dev_score(dev: KnownTask, method: Method) -> float:
    """Compute Spearman x 100 of a method on the selection set; each sentence is encoded once."""
    vectors = VectorStore()
    vectors.add(dev.task.sentences, method.encode)
    return float(dev.task.score(vectors).value)


def tokens_of(method: Method) -> Tokens | None:
    """Return the tokens that a method's encoder reads, None if its tokenizer is not one of
    transformers'.
    """
    tokenizer: Any = getattr(getattr(method, "backbone", None), "tokenizer", None)
    if not hasattr(tokenizer, "backend_tokenizer"):
        return None

    def tokens(texts: Sequence[str]) -> list[list[Token]]:
        read = tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
        every = []
        for one in read.encodings:
            places = zip(one.tokens, one.offsets, strict=True)
            every.append([(token, start, stop) for token, (start, stop) in places])
        return every

    return tokens


class RunVectors:
    """The vectors of one run, in ``folder`` or in memory; each sentence is encoded once for every
    prompt.

    ``encoded`` sentences took ``seconds``.
    """

    def __init__(
        self, method: Method, reporter: Reporter, folder: Path | None = None, key: str = "vectors"
    ) -> None:
        self.method = method
        self.reporter = reporter
        self.folder = folder
        self.key = key
        self.stores: dict[str | None, VectorStore] = {}
        self.encoded, self.seconds = 0, 0.0

    def of(self, prompt: str | None, sentences: Sequence[str]) -> VectorStore:
        """Return the store with these sentences, encoded with a task's prompt, or with the method's
        (None).

        Raises RunFailed, with advice if memory ran out.
        """
        from bench.training.memory import MEMORY_ERRORS, explain_out_of_memory

        if prompt not in self.stores:
            suffix = "" if prompt is None else hashlib.sha256(prompt.encode()).hexdigest()[:8]
            self.stores[prompt] = VectorStore(self.folder, self.key + suffix)
        store, began = self.stores[prompt], time.perf_counter()
        if not (missing := len(store.missing(sentences))):
            return store
        encode = self.method.encode
        if isinstance(self.method, FinishedEncoder):
            encode = partial(self.method.encode_with, prompt)
        self.reporter.phase("encode", missing)
        try:
            self.encoded += store.add(sentences, encode)
        except ValueError as error:
            raise RunFailed(f"encoding failed: {error}") from None
        except MEMORY_ERRORS as error:
            explain_out_of_memory(error, "encoding", self.method.context.device)
            raise
        self.seconds += time.perf_counter() - began
        return store

    def array(self, prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        """Return one row for each sentence."""
        return self.of(prompt, sentences)(sentences)

    def shape_facts(self) -> dict[str, Any]:
        """Return "dimension", and whether all vectors have the length 1 ("normalised"), as some
        thousand of them show.
        """
        vectors = next((store.first(4096) for store in self.stores.values() if len(store)), None)
        if vectors is None:
            return {}
        lengths = (vectors.astype("f8") ** 2).sum(1) ** 0.5
        return {
            "dimension": int(vectors.shape[1]),
            "normalised": bool((abs(lengths - 1) < 1e-3).all()),
        }


def score_tasks(
    tasks: Sequence[KnownTask], vectors: RunVectors, place: RunPlace, device: str
) -> Iterator[tuple[KnownTask, TaskResult | RunFailed]]:
    """Encode the sentences of all tasks together, then score one task after the other.

    A task that cannot be scored yields its error, and the others go on; a failure of the encoding
    raises RunFailed.
    """
    recipe = getattr(vectors.method, "recipe", {})  # a plugin's own ``build`` may set none
    prompts = {known: task_prompt(recipe, known.suite, known.name) for known in tasks}
    sentences: dict[str | None, list[str]] = {}
    for known, prompt in prompts.items():
        sentences.setdefault(prompt, []).extend(known.task.sentences)
    for prompt, texts in sentences.items():
        vectors.of(prompt, texts)
    reporter = vectors.reporter
    reporter.phase("score", len(tasks))
    for i, known in enumerate(tasks, 1):
        reporter.advance(i - 1, task=known.name)
        try:
            yield (
                known,
                known.task.on(device).score_in(place, partial(vectors.array, prompts[known])),
            )
        except RunFailed as failed:
            yield known, failed
        if not known.task.sentences:  # it has encoded meanwhile
            reporter.phase("score", len(tasks))
        reporter.advance(i, task=known.name)
