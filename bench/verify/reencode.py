"""Encoding again from a checkpoint, without training: do the same predictions come out?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.base.errors import BenchError, DataMissing
from bench.data.sets.folder import DataFolder
from bench.run.models import not_kept
from bench.run.plugins import Plugin, Registry
from bench.runs.record import AVERAGE, RunRecord, Score
from bench.runs.store import RunsFolder
from bench.score.suites import (
    AskingTask,
    DeviceTask,
    LoadedTask,
    RunPlace,
    TaskResult,
    suite,
    suite_names,
)
from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding, cell

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

    def compare(self, record: RunRecord, folder: Path) -> Iterator[Finding]:
        """One finding of kind encoding per task. Raises nothing for what a checkpoint or a plugin does."""
        if not (folder / "checkpoint").is_dir():
            yield Finding("encoding", "checkpoint", UNCHECKED, "there is no checkpoint here")
            return
        if (gone := not_kept(record)) is not None:
            yield Finding("encoding", "checkpoint", UNCHECKED, gone.message)
            return
        try:
            plugin = self.registry.of_run(record.run_id, record.method, record.provenance.plugin)
            backbone = _backbone(record, plugin, self.offline)
        except BenchError as error:
            yield Finding(
                "encoding",
                "checkpoint",
                UNCHECKED,
                error.message + (f" (try: {error.hint})" if error.hint else ""),
            )
            return
        try:
            results, missing = self._results(record, folder, plugin, backbone)
        except Exception as error:  # a method's own code may raise anything
            what = (
                error.message
                if isinstance(error, BenchError)
                else f"{type(error).__name__}: {error}"
            )
            yield Finding(
                "encoding",
                "checkpoint",
                DIFFERS,
                f"it cannot be encoded again: {' '.join(what.split())}",
            )
            return
        same = plugin.sha256 == record.provenance.plugin.sha256
        changed = "" if same else "; the method's code has changed since"
        store = RunsFolder(folder.parent)
        for score in record.scores:
            if score.key in results:
                yield _compared(score, results[score.key], store, folder.name, changed)
            elif score.task != AVERAGE:
                yield Finding(
                    "encoding",
                    cell(score),
                    UNCHECKED,
                    missing.get(score.key, "its task is not known here"),
                )

    def _results(
        self, record: RunRecord, folder: Path, plugin: Plugin, backbone: Reference
    ) -> tuple[dict[tuple[str, str, str, str | None], TaskResult], dict[object, str]]:
        """Results by cell, and why a cell has none."""
        from bench.method import SilentReporter, task_prompt
        from bench.run.config import RunConfig
        from bench.run.executors.build import build
        from bench.run.executors.scoring import Stores

        loaded: list[LoadedTask] = []
        scores: list[Score] = []
        missing: dict[object, str] = {}
        for score in record.scores:
            if score.task == AVERAGE:
                continue
            try:
                task = self._task(score)
                loaded.append(task.on(self.device) if isinstance(task, DeviceTask) else task)
                scores.append(score)
            except DataMissing as error:
                missing[score.key] = error.message
        if not loaded:
            return {}, missing
        with tempfile.TemporaryDirectory() as aside:  # nothing is written in the run's own folder
            run = _planned(record, plugin, backbone)
            method = build(
                run,
                RunConfig(device=self.device, offline=self.offline),
                SilentReporter(),
                Path(aside),
            )
            method.load(folder / "checkpoint")
            stores = Stores()

            def asked(prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
                stores(prompt).add(sentences, partial(method.encode_with, prompt))
                return stores(prompt)(sentences)

            prompts = [task_prompt(run.recipe, score.suite, score.task) for score in scores]
            for prompt in dict.fromkeys(prompts):
                asked(
                    prompt,
                    [
                        s
                        for task, own in zip(loaded, prompts, strict=True)
                        if own == prompt
                        for s in task.sentences
                    ],
                )
            place = RunPlace(record.run_id, record.fingerprint[:16], Path(aside))
            results = []
            for task, prompt in zip(loaded, prompts, strict=True):
                of_task = partial(asked, prompt)
                results.append(
                    task.score_in(place, of_task)
                    if isinstance(task, AskingTask)
                    else task.score(of_task)
                )
        return (
            {
                (result.suite, result.task, result.protocol, result.text): result
                for result in results
            },
            missing,
        )

    def _task(self, score: Score) -> LoadedTask:
        if score.suite not in suite_names():
            raise DataMissing(f"the suite {score.suite} is not here: --plugin FILE gives it")
        name = f"mteb:{score.task}" if score.suite == "mteb" else score.suite
        found = suite(name)
        for task in found.tasks:
            if (task.name, task.protocol) == (score.task, score.protocol):
                return task.load(self.data, score.text or "tokenised")
        if score.protocol in found.earlier:
            raise DataMissing(
                f"this version no longer has the data of {score.protocol}; bench run --suite {name} scores other data"
            )
        raise DataMissing(f"{score.suite} has no task {score.task} under {score.protocol}")


def _revision(record: RunRecord) -> str:
    return str(record.provenance.backbone.revision)


def _backbone(record: RunRecord, plugin: Plugin, offline: bool) -> Reference:
    """The backbone that the record names. Raises BenchError where it is not here: then nothing can be said of the checkpoint."""
    from bench.backbones import Reference, fetch, resolve_recorded

    recorded, own = _revision(record), plugin.cls.own_backbone
    return (
        Reference(own, recorded, None)
        if own
        else fetch(resolve_recorded(record.backbone, recorded), offline=offline)
    )


def _planned(record: RunRecord, plugin: Plugin, backbone: Reference) -> PlannedRun:
    """The run as its record says it was, to be built and not trained. Raises BenchError where its backbone is another now."""
    from bench.method import Recipe, Value
    from bench.run.plan import PlannedRun

    recorded = _revision(record)
    if backbone.revision != recorded:
        raise BenchError(
            f"the backbone {record.backbone} is revision {backbone.revision[:12]} here, {recorded[:12]} was trained"
        )
    recipe = Recipe(
        {key: Value(value.value, value.source, value.note) for key, value in record.recipe.items()}
    )
    return PlannedRun(
        plugin=plugin,
        variant=record.variant,
        setting=record.setting,
        backbone=backbone,
        seed=record.seed,
        recipe=recipe,
        fingerprint=record.fingerprint,
    )


def _compared(
    score: Score, again: TaskResult, store: RunsFolder, run_id: str, changed: str
) -> Finding:
    """The stored predictions of one task against the new ones."""
    what, moved = cell(score), abs(again.value - score.value)
    try:
        stored = store.read_predictions(run_id, score.task, score.text, score.suite)
    except BenchError as error:
        return Finding("encoding", what, DIFFERS, error.message)
    before, now = stored.get("prediction"), again.predictions.get("prediction")
    why = ""  # classes and clusters may be named otherwise; the score says it
    if before is None or now is None or before.shape != now.shape:
        if before is not now:
            why = "predictions of another shape come out"
    elif now.dtype.kind == before.dtype.kind == "f":
        apart = float(np.abs(before.astype(float) - now).max(initial=0.0))
        if not apart <= COSINE:
            why = f"predictions move by up to {apart:.2g}"
    allowed = POINTS if score.metric != "accuracy" else max(POINTS, 100 * ITEMS / max(score.n, 1))
    if moved > allowed:
        why = ", ".join(
            filter(None, (f"{score.value:.2f} is recorded, {again.value:.2f} comes out", why))
        )
    return (
        Finding("encoding", what, DIFFERS, why + changed)
        if why
        else Finding("encoding", what, AGREES)
    )
