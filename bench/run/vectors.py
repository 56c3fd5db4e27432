"""The vectors of a run's method, and tasks that are scored with them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import RunFailed
from bench.base.sides import DOCUMENT
from bench.method import Method
from bench.method.context import Reporter
from bench.method.finished import FinishedEncoder
from bench.method.prompts import Way, way_of
from bench.method.smaller import Smaller, Vectors
from bench.score.encoding import VectorStore
from bench.score.suites import KnownTask, LoadedTask, RunPlace, TaskResult
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


def sentences_by_way(
    recipe: Mapping[str, Any], tasks: Sequence[KnownTask], *, tells_sides: bool
) -> dict[Way, list[str]]:
    """Return all sentences of these tasks by the way in which each is encoded."""
    found: dict[Way, list[str]] = {}
    for known in tasks:
        whole: dict[str | None, Sequence[str]] = {None: known.task.sentences}
        sides = {**known.task.sides} or whole
        for side, sentences in sides.items():
            way = way_of(recipe, known.suite, known.name, side, tells_sides=tells_sides)
            found.setdefault(way, []).extend(sentences)
    return found


class RunVectors:
    """The vectors of one run, in ``folder`` or in memory; each sentence is encoded once in every
    way.

    ``encoded`` sentences took ``seconds``.
    """

    def __init__(
        self, method: Method, reporter: Reporter, folder: Path | None = None, key: str = "vectors"
    ) -> None:
        self.method = method
        self.reporter = reporter
        self.folder = folder
        self.key = key
        self.stores: dict[Way, VectorStore] = {}
        self.encoded, self.seconds = 0, 0.0

    def of(self, way: Way, sentences: Sequence[str]) -> VectorStore:
        """Return the store with these sentences, encoded in this way.

        Raises RunFailed, with advice if memory ran out.
        """
        from bench.training.memory import MEMORY_ERRORS, explain_out_of_memory

        if way not in self.stores:
            self.stores[way] = VectorStore(self.folder, self.key + way.suffix)
        store, began = self.stores[way], time.perf_counter()
        if not (missing := len(store.missing(sentences))):
            return store
        encode = self.method.encode
        if isinstance(self.method, FinishedEncoder):
            encode = partial(self.method.encode_with, way)
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

    def array(self, way: Way, sentences: Sequence[str]) -> np.ndarray:
        """Return one row for each sentence."""
        return self.of(way, sentences)(sentences)

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
    tells_sides = getattr(vectors.method, "tells_sides", False)
    smaller = Smaller.of(recipe)
    for way, texts in sentences_by_way(recipe, tasks, tells_sides=tells_sides).items():
        vectors.of(way, texts)
    reporter = vectors.reporter
    reporter.phase("score", len(tasks))
    for i, known in enumerate(tasks, 1):
        reporter.advance(i - 1, task=known.name)
        find = partial(way_of, recipe, known.suite, known.name, tells_sides=tells_sides)
        given = {side: partial(vectors.array, find(side)) for side in (None, *known.task.sides)}
        try:
            whole, sides = _made_smaller(known.task, given, smaller)
            own_place = replace(place, sides=sides)
            yield known, known.task.on(device).score_in(own_place, whole)
        except RunFailed as failed:
            yield known, failed
        if not known.task.sentences:  # it has encoded meanwhile
            reporter.phase("score", len(tasks))
        reporter.advance(i, task=known.name)


def _made_smaller(
    task: LoadedTask, given: Mapping[str | None, Vectors], smaller: Smaller | None
) -> tuple[Vectors, dict[str, Vectors]]:
    """Return the vectors of a task and of its sides, as small as a recipe says.

    int8 is calibrated on all sentences of a task; if it has two sides, on its documents.
    """
    made = dict(given)
    if smaller is not None:
        sample = task.sides.get(DOCUMENT, task.sentences)
        ranges = smaller.ranges(given[DOCUMENT if task.sides else None], sample)
        made = {side: smaller.make(vectors, ranges) for side, vectors in given.items()}
    return made[None], {side: made[side] for side in task.sides}
