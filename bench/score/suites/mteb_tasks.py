"""Scores of our suites as mteb keeps scores of its tasks, for results in mteb's form.

The main score is our own under its own name ("bench_spearman", "bench_accuracy"), on mteb's scale (0 to 1). Importing this
module imports mteb.
"""

from __future__ import annotations

import re
from typing import Any

from mteb.abstasks.task_metadata import TaskMetadata

from bench.score.suites import LoadedTask, Task, TaskResult, suite

TYPES = {
    "sts": "STS",
    "cxc": "STS",
    "clustering": "Clustering",
    "geometry": "STS",
}  # of the others: Classification
HUNDREDTHS = re.compile("spearman|accuracy")  # metrics that the papers print x 100


def scores_of(result: TaskResult) -> dict[str, Any]:
    """A result as mteb keeps scores: "bench_spearman" and so on; of STS also mean and weighted mean over sub-datasets."""
    name, scale = _key(result.metric), 0.01 if HUNDREDTHS.search(result.metric) else 1.0
    scores: dict[str, Any] = {name: scale * result.value}
    if result.std is not None:
        scores[f"{name}_std"] = scale * result.std
    for extra in ("mean", "wmean"):
        if isinstance(value := result.detail.get(extra), float):
            scores[f"{name}_{extra}"] = scale * value
    return {**scores, "bench_protocol": result.protocol, "bench_n": result.n}


def _key(metric: str) -> str:
    return f"bench_{metric.replace('-', '_')}"


def metadata_of(task: Task, loaded: LoadedTask) -> TaskMetadata:
    """The task for mteb. Its name starts with "bench-": mteb's own STS12 is another protocol."""
    form = "" if loaded.form in (None, "tokenised") else f"-{loaded.form}"
    twice = sum(other.name == task.name for other in suite(task.suite).tasks) > 1
    protocol = f"-{task.protocol.partition('/')[0]}" if twice else ""
    return TaskMetadata(
        name=f"bench-{task.name}{protocol}{form}",
        description=f"{task.name} of bench's suite {task.suite}, protocol {task.protocol}, {loaded.form or 'only'} text form.",
        dataset={"path": f"local/{task.suite}", "revision": loaded.sha256},
        type=TYPES.get(task.suite, "Classification"),  # type: ignore[arg-type]
        category="t2t" if TYPES.get(task.suite) == "STS" else "t2c",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=_key(task.metric),
        is_public=False,
    )
