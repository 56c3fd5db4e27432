"""From a method and loaded tasks to scores: for the record, and for choosing a checkpoint while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bench.base.errors import CorpusError, Interrupted, RunFailed
from bench.data.overlap import ScoredSentences, count_overlaps, merge_overlaps, scored_sentences
from bench.method import Method, Reporter, task_prompt
from bench.runs import CorpusUsed, Score
from bench.runs.record import AVERAGE
from bench.score.encoding import VectorStore
from bench.score.suites import RunPlace, average, suite_names

if TYPE_CHECKING:
    import numpy as np

    from bench.run.plan import PlannedRun
    from bench.runs import RunRecord
    from bench.score.suites import KnownTask, LoadedTask, TaskResult


def dev_scorer(dev: KnownTask) -> Callable[[Method], float]:
    """Spearman x 100 of a method on the selection set; its distinct sentences are encoded once."""

    def score(method: Method) -> float:
        vectors = VectorStore()
        vectors.add(dev.task.sentences, method.encode)
        return float(dev.task.score(vectors).value)

    return score


class RunVectors:
    """The vectors of one run, each sentence encoded once for every prompt. In ``folder``, or in memory.

    ``encoded`` sentences took ``seconds``.
    """

    def __init__(
        self, method: Method, reporter: Reporter, folder: Path | None = None, key: str = "vectors"
    ) -> None:
        self.method, self.reporter, self.folder, self.key = method, reporter, folder, key
        self.stores: dict[str | None, VectorStore] = {}
        self.encoded, self.seconds = 0, 0.0

    def of(self, prompt: str | None, sentences: Sequence[str]) -> VectorStore:
        """The store with these sentences, encoded with a task's prompt, or with the method's own (None).

        Raises RunFailed, with advice where memory was short.
        """
        from bench.training.loop import MEMORY_ERRORS, explain_out_of_memory

        if prompt not in self.stores:
            suffix = "" if prompt is None else sha256(prompt.encode()).hexdigest()[:8]
            self.stores[prompt] = VectorStore(self.folder, self.key + suffix)
        store, began = self.stores[prompt], time.perf_counter()
        if not (missing := len(store.missing(sentences))):
            return store
        self.reporter.phase("encode", missing)
        try:
            self.encoded += store.add(sentences, partial(self.method.encode_with, prompt))
        except ValueError as error:
            raise RunFailed(f"encoding failed: {error}") from None
        except MEMORY_ERRORS as error:
            explain_out_of_memory(error, "encoding", self.method.context.device)
            raise
        self.seconds += time.perf_counter() - began
        return store

    def shape_facts(self) -> dict[str, Any]:
        """ "dimension", and whether all vectors have the length 1 ("normalised"), as some thousand of them show."""
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
    """Encode what the tasks name, all together, then score one after the other.

    A task that cannot be scored gives its error, and the others go on; encoding that fails raises RunFailed.
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
            yield known, score_task(known.task, vectors, prompts[known], place, device)
        except RunFailed as failed:
            yield known, failed
        if not known.task.sentences:  # it has encoded meanwhile
            reporter.phase("score", len(tasks))
        reporter.advance(i, task=known.name)


def score_task(
    task: LoadedTask, vectors: RunVectors, prompt: str | None, place: RunPlace, device: str
) -> TaskResult:
    """Raises RunFailed where the task cannot be scored."""

    def encoded(sentences: Sequence[str]) -> np.ndarray:
        return vectors.of(prompt, sentences)(sentences)

    return task.on(device).score_in(place, encoded)


def merge_scores(scores: tuple[Score, ...], results: list[TaskResult]) -> tuple[Score, ...]:
    """The scores with the new results in the place of older ones of the same cell, and each suite's average made anew."""
    known = suite_names()  # an average of a plugin's suite that is not here now stays as it is
    cells = {score.key: score for score in scores if score.task != AVERAGE}
    for result in results:
        score = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
        cells[score.key] = score
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score in cells.values():
        form = None if score.text and score.text.startswith("other-") else score.text
        if score.suite in known:
            groups.setdefault((score.suite, score.protocol, form), []).append(score)
    others = [score for score in scores if score.task == AVERAGE and score.suite not in known]
    averages = [mean for group in groups.values() if (mean := average(group)) is not None]
    return (*cells.values(), *others, *averages)


def with_overlap(
    record: RunRecord, run: PlannedRun, reporter: Reporter, should_stop: Callable[[], bool]
) -> CorpusUsed:
    """``record.provenance.corpus`` with counts of the sentences of the scored tasks that stand in the corpus.

    What was counted before comes from the cache. A corpus that cannot be read any more leaves the rest as it is, with a note: the
    scores do not depend on it. Tasks of which only mteb knows the sentences have no counts. Raises Interrupted.
    """
    corpus, about = run.corpus, record.provenance.corpus
    scored = [
        ScoredSentences(task.suite, task.name, known.form, sentences)
        for task, known in zip(run.tasks, run.task_data, strict=True)
        if record.score(task.suite, task.name, task.protocol, known.form) is not None
        if (sentences := scored_sentences(known.task))
    ]
    if corpus is None or not scored:
        return about

    def progress(rows: int) -> None:
        if should_stop():
            raise Interrupted(
                "stopped while the corpus was compared with the evaluation data; the same command goes on"
            )
        reporter.advance(rows, total=len(corpus))

    reporter.phase("overlap")
    try:
        overlaps = count_overlaps(corpus, scored, progress=progress)
    except (CorpusError, OSError) as error:
        reporter.note(f"the overlap of corpus and evaluation data was not counted: {error}")
        return about
    return structs.replace(about, overlap=merge_overlaps(overlaps, about.overlap))
