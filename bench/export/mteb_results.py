"""A run's scores as mteb result files, laid out as mteb keeps them: ``mteb.ResultCache(DIR).load_results(include_remote=False)``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bench.base.errors import DataMissing
from bench.runs.intact import again

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta
    from mteb.results import TaskResult

    from bench.runs import RunRecord, Score

THEIRS = "mteb"  # the suite whose files mteb wrote itself


def write(record: RunRecord, run_folder: Path, to: Path) -> list[Path]:
    """Write ``to/results/<model>/<revision>/<task>.json`` and return these files, in the order of the record's scores.

    Tasks of the suite mteb are the files that mteb wrote when it scored them. Tasks of our own suites have the names and
    metrics that they have as mteb tasks (``bench.score.suites.mteb_tasks``: "bench-STS12", "bench_spearman"), for mteb's own STS12
    is another protocol. Averages are left out: they are no tasks. Raises DataMissing where a file that mteb wrote is gone.
    """
    import mteb

    from bench.score.suites.mteb_data import quiet

    with quiet():
        meta = model_meta(record)
        cache = mteb.ResultCache(to)
        written = []
        for score in record.scores:
            if score.task == "Avg.":
                continue
            if score.suite == THEIRS:
                written.append(_theirs(record, score, run_folder, to))
                continue
            for result in _ours(record, score):
                cache.save_to_cache(result, meta)
                written.append(cache.get_task_result_path(result.task_name, meta))
    return written


def model_meta(record: RunRecord) -> ModelMeta:
    """What mteb is told of the model; the same as when it scored tasks of its own."""
    from bench.score.suites.mteb_encoder import MtebEncoder

    def nothing(sentences: Any) -> Any:
        raise NotImplementedError

    meta: ModelMeta = MtebEncoder(f"bench/{record.run_id}", record.fingerprint[:16], vectors=nothing).mteb_model_meta
    return meta


def _theirs(record: RunRecord, score: Score, run_folder: Path, to: Path) -> Path:
    """Copy the file that mteb wrote, and what lies beside it about the model."""
    named = [run_folder / name for name in score.detail.get("results", ())]
    file = next((one for one in named if one.name == f"{score.task}.json" and one.is_file()), None)
    if file is None:
        raise DataMissing(f"{record.run_id}: the file that mteb wrote of {score.task} is not in {run_folder}",
                          again(record, run_folder))  # fmt: skip
    target = to / file.relative_to(run_folder / "mteb")
    target.parent.mkdir(parents=True, exist_ok=True)
    for one in (file, file.with_name("model_meta.json")):
        if one.is_file():
            shutil.copyfile(one, target.with_name(one.name))
    _add_settings(file, target, score.task)
    return target


def _add_settings(file: Path, target: Path, task: str) -> None:
    """The lines of run_settings.jsonl about this task: how mteb was called."""
    import json

    source = file.with_name("run_settings.jsonl")
    if source.is_file():
        lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
        settings = target.with_name(source.name)
        there = settings.read_text(encoding="utf-8").splitlines() if settings.exists() else []
        mine = [line for line in lines if json.loads(line).get("task") == task and line not in there]
        settings.write_text("".join(f"{line}\n" for line in (*there, *mine)), encoding="utf-8")


def _ours(record: RunRecord, score: Score) -> Iterator[TaskResult]:
    """One result; none for a task or protocol that there is no more."""
    from mteb.results import TaskResult

    from bench.score.suites import suite
    from bench.score.suites.mteb_tasks import metadata_of, scores_of

    task = next((one for one in suite(score.suite).tasks if (one.name, one.protocol) == (score.task, score.protocol)), None)
    if task is None:
        return
    form = score.text if score.text not in (None, "tokenised") else None
    revision = record.provenance.data.get(f"{score.task}@{form}" if form else score.task, "unknown")
    metadata = metadata_of(task, SimpleNamespace(form=score.text, sha256=revision))  # type: ignore[arg-type]
    scores: Any = {**scores_of(score), "hf_subset": "default", "languages": list(metadata.eval_langs)}  # type: ignore[arg-type]
    scores["main_score"] = scores[metadata.main_score]
    import mteb

    yield TaskResult(
        dataset_revision=str(revision), task_name=metadata.name, mteb_version=mteb.__version__, scores={"test": [scores]},
        evaluation_time=None, date=datetime.fromisoformat(record.provenance.created),
    )  # fmt: skip
