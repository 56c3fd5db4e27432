"""From a method and loaded tasks to scores: for the record, and for choosing a checkpoint while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bench.base.errors import CorpusError, Interrupted, RunFailed
from bench.data.overlap import ScoredSentences, count_overlaps, scored_sentences
from bench.data.overlap_counts import merge_overlaps
from bench.method import Method, Reporter, task_prompt
from bench.runs import CorpusUsed, Score
from bench.runs.record import AVERAGE
from bench.score.encoding import VectorStore
from bench.score.suites import AskingTask, DeviceTask, RunPlace

if TYPE_CHECKING:
    import numpy as np

    from bench.data.corpora import Corpus
    from bench.runs import RunRecord
    from bench.score.suites import LoadedTask, TaskResult
    from bench.score.suites.known import KnownTask


def dev_scorer(dev: KnownTask) -> Callable[[Method], float]:
    """Spearman x 100 of a method on the selection set; its distinct sentences are encoded once."""

    def score(method: Method) -> float:
        vectors = VectorStore()
        vectors.add(dev.task.sentences, method.encode)
        return float(dev.task.score(vectors).value)

    return score


class Stores:
    """The vectors of one run: a sentence has another one where a task has a prompt of its own. In ``folder``, or in memory."""

    def __init__(self, folder: Path | None = None, key: str = "vectors") -> None:
        self._folder, self._key = folder, key
        self._stores: dict[str | None, VectorStore] = {}

    def __call__(self, prompt: str | None = None) -> VectorStore:
        """The store of one task's prompt; None: of the method's own."""
        if prompt not in self._stores:
            own = "" if prompt is None else sha256(prompt.encode()).hexdigest()[:8]
            self._stores[prompt] = VectorStore(self._folder, self._key + own)
        return self._stores[prompt]

    def __len__(self) -> int:
        return sum(map(len, self._stores.values()))

    def shape_facts(self) -> dict[str, Any]:
        """ "dimension", and whether all vectors have the length 1 ("normalised"), as some thousand of them show."""
        vectors = next((store.first(4096) for store in self._stores.values() if len(store)), None)
        if vectors is None:
            return {}
        lengths = (vectors.astype("f8") ** 2).sum(1) ** 0.5
        return {
            "dimension": int(vectors.shape[1]),
            "normalised": bool((abs(lengths - 1) < 1e-3).all()),
        }


@dataclass(frozen=True)
class Scored:
    """What became of one task: its result, or why there is none; and what scoring has cost until then."""

    of: KnownTask
    result: TaskResult | RunFailed
    seconds: float
    sentences_per_second: float | None  # of encoding; None where nothing had to be encoded


def score_tasks(
    method: Method,
    tasks: Sequence[KnownTask],
    reporter: EncodingReporter,
    stores: Stores,
    place: RunPlace,
    device: str,
) -> Iterator[Scored]:
    """Encode each distinct sentence that ``stores`` lack once, then score the tasks one after the other.

    What the tasks name is encoded first, all together; a task that asks as it goes (AskingTask) gets what it asks for then. A
    task that cannot be scored is told of, and the others go on; encoding that fails raises RunFailed.
    """
    began = time.perf_counter()
    encoded, seconds = 0, 0.0

    def add(prompt: str | None, sentences: Sequence[str]) -> None:
        nonlocal encoded, seconds
        start = time.perf_counter()
        encoded += _add(method, prompt, stores(prompt), sentences, reporter)
        seconds += time.perf_counter() - start

    def asked(prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        vectors = stores(prompt)
        if vectors.missing(sentences):
            add(prompt, sentences)
            reporter.phase("score", len(tasks))
        return vectors(sentences)

    recipe = getattr(method, "recipe", {})  # a plugin's own ``build`` may keep none
    prompts = {
        known_task: task_prompt(recipe, known_task.suite, known_task.name) for known_task in tasks
    }
    texts: dict[str | None, list[str]] = {}
    for known_task in tasks:
        texts.setdefault(prompts[known_task], []).extend(known_task.task.sentences)
    for prompt, sentences in texts.items():
        add(prompt, sentences)
    reporter.phase("score", len(tasks))
    for i, known_task in enumerate(tasks, 1):
        result: TaskResult | RunFailed
        prompt = prompts[known_task]
        reporter.advance(i - 1, task=known_task.name)
        try:
            task = (
                known_task.task.on(device)
                if isinstance(known_task.task, DeviceTask)
                else known_task.task
            )
            result = (
                task.score_in(place, partial(asked, prompt))
                if isinstance(task, AskingTask)
                else task.score(stores(prompt))
            )
        except RunFailed as failed:
            result = failed
        reporter.advance(i, task=known_task.name)
        yield Scored(
            known_task,
            result,
            time.perf_counter() - began,
            encoded / max(seconds, 1e-9) if encoded else None,
        )


def _add(
    method: Method,
    prompt: str | None,
    vectors: VectorStore,
    sentences: Sequence[str],
    reporter: EncodingReporter,
) -> int:
    """Encode what is not there yet; returns how many sentences that were. Raises RunFailed, with advice where memory was short."""
    from bench.training.loop import MEMORY_ERRORS, explain_out_of_memory

    def encode(block: list[str]) -> np.ndarray:
        encoded = method.encode_with(prompt, block)
        reporter.before += len(block)
        return encoded

    missing = len(vectors.missing(sentences))
    if not missing:
        return 0
    try:
        with reporter.encoding(missing):
            return vectors.add(sentences, encode)
    except ValueError as error:
        raise RunFailed(f"encoding failed: {error}") from None
    except MEMORY_ERRORS as error:
        explain_out_of_memory(error, "encoding", method.context.device)
        raise


class EncodingReporter:
    """A reporter that adds what a method says of one call of ``encode`` to what was encoded before it."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter, self.before = reporter, 0
        self.fields: dict[str, Any] | None = None  # None: nothing is being encoded

    def phase(self, name: str, total: int | None = None) -> None:
        if self.fields is None:
            self.reporter.phase(name, total)

    def advance(self, done: int, **fields: Any) -> None:
        if self.fields is None:
            self.reporter.advance(done, **fields)
        else:
            self.reporter.advance(self.before + done, **fields | self.fields)

    def note(self, text: str) -> None:
        self.reporter.note(text)

    @contextmanager
    def encoding(self, total: int | None) -> Iterator[None]:
        """While open, ``total`` sentences are encoded in several calls; who makes them counts them in ``before``."""
        self.reporter.phase("encode", total)
        self.fields, self.before = {"total": total}, 0
        try:
            yield
        finally:
            self.fields = None


def merge_scores(scores: tuple[Score, ...], results: list[TaskResult]) -> tuple[Score, ...]:
    """The scores with the new results in the place of older ones of the same cell, and each suite's average made anew."""
    from bench.score.suites import average, suite_names

    known = (
        suite_names()
    )  # of a plugin's suite that is not here now, the average stays as it is recorded
    cells = {score.key: score for score in scores if score.task != AVERAGE}
    for result in results:
        score = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
        cells[score.key] = score
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score in cells.values():
        form = None if score.text and score.text.startswith("other-") else score.text
        if score.suite in known:
            groups.setdefault((score.suite, score.protocol, form), []).append(score)
    kept = [score for score in scores if score.task == AVERAGE and score.suite not in known]
    averages = [own_score for group in groups.values() if (own_score := average(group)) is not None]
    return (*cells.values(), *kept, *averages)


# --- what of the scored sentences stands in the corpus of a run, counted for its record ---


def with_overlap(
    record: RunRecord,
    corpus: Corpus | None,
    scored: Sequence[tuple[TaskResult | Score, LoadedTask]],
    reporter: Reporter,
    should_stop: Callable[[], bool],
) -> CorpusUsed:
    """``record.provenance.corpus`` with the overlap of what was scored just now in the place of older counts of the same tasks.

    A corpus that cannot be read any more leaves the rest as it is, with a note: the scores do not depend on it. Tasks of which
    only mteb knows the sentences have no counts. Raises Interrupted.
    """
    about = record.provenance.corpus
    if corpus is None:
        return about
    wanted = {
        (r.suite, r.task, r.text): ScoredSentences(r.suite, r.task, r.text, scored_sentences(task))
        for r, task in scored
    }
    known = [sentences for sentences in wanted.values() if sentences.sentences]
    if not known:
        return about

    def progress(rows: int) -> None:
        if should_stop():
            raise Interrupted(
                "stopped while the corpus was compared with the evaluation data; the same command goes on"
            )
        reporter.advance(rows, total=len(corpus))

    reporter.phase("overlap")
    try:
        counted = count_overlaps(corpus, known, progress=progress)
    except (CorpusError, OSError) as error:
        reporter.note(f"the overlap of corpus and evaluation data was not counted: {error}")
        return about
    return structs.replace(about, overlap=merge_overlaps(counted, about.overlap))
