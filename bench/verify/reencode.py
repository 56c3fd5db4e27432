"""Encoding again from a checkpoint, without training: do the same predictions come out?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.base.errors import BenchError, DataMissing, one_line
from bench.data.sets.folder import DataFolder
from bench.run.plugins import Plugin, Registry
from bench.run.trained_run import not_kept
from bench.runs.record import AVERAGE, RunRecord, Score, ScoreKey
from bench.runs.run import Run
from bench.score.suites import (
    AskingTask,
    DeviceTask,
    LoadedTask,
    RunPlace,
    TaskResult,
    suite,
    suite_names,
)
from bench.verify.findings import DIFFERS, UNCHECKED, Finding, NotChecked, cell, check

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.run.plan import PlannedRun

POINTS, ITEMS = 0.05, 3
"""A score that moves by less is the same score: another device or library rounds otherwise, and some classes of a few items flip."""
COSINE = 1e-4
"""The same for one prediction that is a cosine or a distance."""


@dataclass(frozen=True)
class Encoder:
    """Builds methods from records and scores them again. ``data``: the sets that are encoded."""

    registry: Registry
    data: DataFolder
    device: str
    offline: bool = True

    def compare(self, run: Run) -> Iterator[Finding]:
        """One finding of kind encoding per task. Raises nothing for what a checkpoint or a plugin does."""
        try:
            planned = self._planned(run)
        except (BenchError, NotChecked) as error:
            hint = getattr(error, "hint", None)
            why = f"{error} (try: {hint})" if hint else str(error)
            yield Finding("encoding", "checkpoint", UNCHECKED, why)
            return
        tasks: dict[ScoreKey, LoadedTask] = {}
        missing: dict[ScoreKey, str] = {}
        try:
            for score in run.scores:
                if score.task != AVERAGE:
                    try:
                        tasks[score.key] = self._load(score)
                    except DataMissing as error:
                        missing[score.key] = error.message
            results = self._results(run, planned, tasks) if tasks else {}
        except Exception as error:  # a method's own code may raise anything
            what = error.message if isinstance(error, BenchError) else one_line(error)
            why = f"it cannot be encoded again: {what}"
            yield Finding("encoding", "checkpoint", DIFFERS, why)
            return
        same_code = planned.plugin.sha256 == run.record.provenance.plugin.sha256
        changed = "" if same_code else "; the method's code has changed since"
        for score in run.scores:
            if score.key in results:
                arguments = (score, results[score.key], run, changed)
                yield check("encoding", cell(score), _difference, *arguments)
            elif score.key in missing:
                yield Finding("encoding", cell(score), UNCHECKED, missing[score.key])

    def _planned(self, run: Run) -> PlannedRun:
        """The run as its record says it was, to be built and not trained. Raises NotChecked, BenchError where nothing can be said of
        its checkpoint."""
        from bench.method import Recipe, Value
        from bench.run.plan import PlannedRun

        record = run.record
        if not run.checkpoint.is_dir():
            raise NotChecked("there is no checkpoint here")
        if (error := not_kept(record)) is not None:
            raise NotChecked(error.message)
        plugin = self.registry.of_run(record.run_id, record.method, record.provenance.plugin)
        values = {
            key: Value(value.value, value.source, value.note)
            for key, value in record.recipe.items()
        }
        return PlannedRun(
            plugin=plugin,
            variant=record.variant,
            setting=record.setting,
            backbone=_backbone(record, plugin, self.offline),
            seed=record.seed,
            recipe=Recipe(values),
            fingerprint=record.fingerprint,
        )

    def _load(self, score: Score) -> LoadedTask:
        """The task with its data. Raises DataMissing."""
        if score.suite not in suite_names():
            raise DataMissing(f"the suite {score.suite} is not here: --plugin FILE gives it")
        name = f"mteb:{score.task}" if score.suite == "mteb" else score.suite
        of = suite(name)
        for task in of.tasks:
            if (task.name, task.protocol) == (score.task, score.protocol):
                loaded = task.load(self.data, score.text or "tokenised")
                if loaded.form != score.text:
                    raise DataMissing(f"the text here has the form {loaded.form}")
                return loaded.on(self.device) if isinstance(loaded, DeviceTask) else loaded
        if score.protocol in of.earlier:
            why = f"this version no longer has the data of {score.protocol}"
            raise DataMissing(f"{why}; bench run --suite {name} scores other data")
        raise DataMissing(f"{score.suite} has no task {score.task} under {score.protocol}")

    def _results(
        self, run: Run, planned: PlannedRun, tasks: Mapping[ScoreKey, LoadedTask]
    ) -> dict[ScoreKey, TaskResult]:
        from bench.method import SilentReporter, task_prompt
        from bench.run.config import RunConfig
        from bench.run.executors.local import build
        from bench.run.executors.scoring import RunVectors

        options = RunConfig(device=self.device, offline=self.offline)
        with tempfile.TemporaryDirectory() as folder:  # nothing is written in the run's own folder
            method = build(planned, options, SilentReporter(), Path(folder))
            method.load(run.checkpoint)
            stores = RunVectors(method, SilentReporter())

            def encode(prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
                return stores.of(prompt, sentences)(sentences)

            by_prompt: dict[str | None, list[ScoreKey]] = {}
            for key in tasks:
                prompt = task_prompt(planned.recipe, key.suite, key.task)
                by_prompt.setdefault(prompt, []).append(key)
            place = RunPlace(run.record.run_id, run.record.fingerprint[:16], Path(folder))
            results = {}
            for prompt, keys in by_prompt.items():
                vectors = partial(encode, prompt)
                vectors([sentence for key in keys for sentence in tasks[key].sentences])
                for key in keys:
                    task = tasks[key]
                    if isinstance(task, AskingTask):
                        results[key] = task.score_in(place, vectors)
                    else:
                        results[key] = task.score(vectors)
        return results


def _backbone(record: RunRecord, plugin: Plugin, offline: bool) -> Reference:
    """The backbone that the record names. Raises BenchError where it is not here, or is another now."""
    from bench.backbones import Reference, fetch, resolve_recorded

    revision, own = str(record.provenance.backbone.revision), plugin.cls.own_backbone
    if own:
        return Reference(own, revision, None)
    backbone = fetch(resolve_recorded(record.backbone, revision), offline=offline)
    if backbone.revision != revision:
        here = f"revision {backbone.revision[:12]} here, {revision[:12]} was trained"
        raise BenchError(f"the backbone {record.backbone} is {here}")
    return backbone


def _difference(score: Score, again: TaskResult, run: Run, changed: str) -> str:
    """The stored predictions of one task against the new ones. ``changed`` is added to what differs."""
    why = []
    allowed = POINTS if score.metric != "accuracy" else max(POINTS, 100 * ITEMS / max(score.n, 1))
    if abs(again.value - score.value) > allowed:
        why.append(f"{score.value:.2f} is recorded, {again.value:.2f} comes out")
    before, now = run.predictions(score.key).get("prediction"), again.predictions.get("prediction")
    if before is None or now is None or before.shape != now.shape:
        if before is not now:
            why.append("predictions of another shape come out")
    elif now.dtype.kind == before.dtype.kind == "f":  # classes may be named otherwise
        distance = float(np.abs(before.astype(float) - now).max(initial=0.0))
        if not distance <= COSINE:
            why.append(f"predictions move by up to {distance:.2g}")
    return ", ".join(why) + changed if why else ""
