"""From a method and loaded tasks to scores: for the record, and for choosing a checkpoint while training."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from bench.encoding import VectorStore
from bench.errors import RunFailed
from bench.method import Method, Reporter
from bench.runs import Cost, Score

if TYPE_CHECKING:
    from bench.suites import LoadedTask, TaskResult


def dev_scorer(dev: LoadedTask) -> Callable[[Method], float]:
    """Spearman x 100 of a method on the selection set; its distinct sentences are encoded once."""

    def score(method: Method) -> float:
        vectors = VectorStore()
        vectors.add(dev.sentences, method.encode)
        return float(dev.score(vectors).value)

    return score


def score_tasks(method: Method, tasks: list[LoadedTask], cost: Cost, reporter: Reporter) -> tuple[list[TaskResult], Cost]:
    """Encode each distinct sentence once, score every task; returns the results and the cost with what that took."""
    import torch

    from bench.training.memory import explain_out_of_memory

    vectors = VectorStore()
    began = time.perf_counter()
    sentences = list(dict.fromkeys(s for task in tasks for s in task.sentences))
    reporter.phase("encode", len(sentences))
    try:
        vectors.add(sentences, method.encode)
    except ValueError as error:
        raise RunFailed(f"encoding failed: {error}") from None
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        explain_out_of_memory(error, "encoding", "--device cpu, or free memory on the device")
        raise
    encoded = time.perf_counter()
    reporter.phase("score", len(tasks))
    results = [task.score(vectors) for task in tasks]
    seconds = time.perf_counter() - began
    return results, replace(
        cost, eval_seconds=round(seconds, 2), encode_sentences_per_second=round(len(sentences) / max(encoded - began, 1e-9), 1)
    )


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
