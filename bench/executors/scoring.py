"""From a method and loaded tasks to scores: for the record, and for choosing a checkpoint while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from bench.encoding import VectorStore
from bench.errors import RunFailed
from bench.method import Method, Reporter
from bench.runs import Cost, Score
from bench.suites import AskingTask, RunPlace

if TYPE_CHECKING:
    import numpy as np

    from bench.suites import LoadedTask, TaskResult


def dev_scorer(dev: LoadedTask) -> Callable[[Method], float]:
    """Spearman x 100 of a method on the selection set; its distinct sentences are encoded once."""

    def score(method: Method) -> float:
        vectors = VectorStore()
        vectors.add(dev.sentences, method.encode)
        return float(dev.score(vectors).value)

    return score


def score_tasks(
    method: Method, tasks: list[LoadedTask], cost: Cost, reporter: Reporter, vectors: VectorStore, place: RunPlace
) -> tuple[list[TaskResult], Cost]:
    """Encode each distinct sentence that ``vectors`` lacks once, score every task; returns the results and the cost with what
    that took. The speed of encoding is of what was encoded here; where nothing was, it stays as it was recorded.

    What the tasks name is encoded first, all together; a task that asks as it goes (AskingTask) gets what it asks for then.
    """
    import torch

    from bench.training.memory import explain_out_of_memory

    began = time.perf_counter()

    encoded, seconds = 0, 0.0

    def encode(sentences: list[str]) -> np.ndarray:
        reporter.phase("encode", len(sentences))
        return method.encode(sentences)

    def add(sentences: Sequence[str]) -> None:
        nonlocal encoded, seconds
        start = time.perf_counter()
        try:
            encoded += vectors.add(sentences, encode)
        except ValueError as error:
            raise RunFailed(f"encoding failed: {error}") from None
        except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
            explain_out_of_memory(error, "encoding", "--device cpu, or free memory on the device")
            raise
        seconds += time.perf_counter() - start

    def asked(sentences: Sequence[str]) -> np.ndarray:
        if vectors.missing(sentences):
            add(sentences)
            reporter.phase("score", len(tasks))
            reporter.advance(len(results))
        return vectors(sentences)

    add([s for task in tasks for s in task.sentences])
    reporter.phase("score", len(tasks))
    results: list[TaskResult] = []
    for i, task in enumerate(tasks, 1):
        results.append(task.score_in(place, asked) if isinstance(task, AskingTask) else task.score(vectors))
        reporter.advance(i)
    cost = replace(cost, eval_seconds=round(time.perf_counter() - began, 2))
    if encoded:
        cost = replace(cost, encode_sentences_per_second=round(encoded / max(seconds, 1e-9), 1))
    return results, cost


def merge_scores(scores: tuple[Score, ...], results: list[TaskResult]) -> tuple[Score, ...]:
    """The scores with the new results in the place of older ones of the same cell, and each suite's average made anew."""
    from bench.suites import average

    cells = {score.key: score for score in scores if score.task != "Avg."}
    for r in results:
        score = Score(**{field.name: getattr(r, field.name) for field in fields(Score)})
        cells[score.key] = score
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score in cells.values():
        form = None if score.text and score.text.startswith("other-") else score.text
        groups.setdefault((score.suite, score.protocol, form), []).append(score)
    averages = [one for group in groups.values() if (one := average(group)) is not None]
    return (*cells.values(), *averages)
