"""Runs in this process, one after the other: train, encode, score, write the record."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bench.base import devices
from bench.base.contract import located
from bench.base.errors import BenchError, Interrupted, PluginFailed, RunFailed
from bench.base.files import folder_sha256
from bench.base.package import __version__
from bench.base.signals import stop_signals
from bench.data.sets.sts import STS_TASKS
from bench.method import Method, Reporter, task_prompt
from bench.run import provenance
from bench.run.config import RunConfig
from bench.run.executors.build import build, training_corpus
from bench.run.executors.scoring import (
    EncodingReporter,
    Stores,
    merge_scores,
    score_tasks,
    with_overlap,
)
from bench.run.jobs import job_here
from bench.run.plan import PlannedRun
from bench.runs import (
    FOREIGN,
    BackboneUsed,
    Code,
    CorpusUsed,
    Cost,
    HowExecuted,
    Provenance,
    RecipeValue,
    RunRecord,
    RunsFolder,
    Score,
    Training,
)
from bench.runs.intact import CHECKPOINT, FAILED_BATCH, checkpoint_problem, prediction_problems
from bench.runs.record import Facts, dev_test_pairs
from bench.runs.store import data_key
from bench.score.suites import AskingTask, RunPlace, suite_plugin

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.method.ranks import Alone
    from bench.score.suites import LoadedTask, Task, TaskResult
    from bench.score.suites.known import KnownTask


TRACEBACK = "traceback.txt"  # in the run's folder: where a method's own code failed


class TasksFailed(RunFailed):
    """Some tasks could not be scored; the run has scores of others."""


def execute(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Alone | None = None,
) -> tuple[RunRecord, bool]:
    """Train and score one planned run; returns its record and whether there was anything left to do.

    What is done and still there is not done again: a trained checkpoint is loaded, a task is scored only where its protocol, its
    data or the checkpoint changed, or where its predictions are no longer as they were recorded. Raises RunFailed (recorded as
    "failed"; a run that has scores stays finished where only other tasks could not be scored), Interrupted (recorded, resumable), or
    another BenchError where nothing was started.
    """
    folder = store.folder(run.run_id)
    with store.lock(run.run_id, config.wait_seconds, reporter.note):
        if config.fresh and folder.exists():
            forget(run, store, reporter)
        record = store.get(run.run_id, run.fingerprint)  # a damaged one is made anew
        if record is not None and (told := with_title_and_file(record, run)) != record:
            record = told
            store.write(record)
        left = left_to_do(run, record, folder, reporter)
        if record is not None and record.status == "finished" and left.nothing:
            return record, False
        if left.no_checkpoint is not None and not can_do_without_model(run, left.tasks, folder):
            raise left.no_checkpoint  # before anything was started: the record and its scores stay as they are
        if record is None:  # from here on it is known, however this process ends
            record = _new_record(run, config)
            store.write(record)
        if job := job_here():
            record = with_execution(record, job)
        try:
            insistent = ranks is None and not job  # an engine may say it more than once
            with stop_signals(insistent=insistent) as should_stop:
                execution = Execution(run, store, config, reporter, should_stop, ranks)
                record = execution.complete(record, left)
        except Interrupted as error:
            _keep(run, record, store, "interrupted", error)
            raise
        except BenchError as error:
            failed = error if isinstance(error, RunFailed) else RunFailed(error.message, error.hint)
            status = "finished" if isinstance(error, TasksFailed) else "failed"
            _keep(run, record, store, status, failed)
            raise failed from None
        except (Exception, SystemExit) as error:  # a plugin's own code
            failed = PluginFailed(f"{run.method}: {located(error)}", f"see {folder / TRACEBACK}")
            with contextlib.suppress(OSError):
                (folder / TRACEBACK).write_text(traceback.format_exc(), encoding="utf-8")
            _keep(run, record, store, "failed", failed)
            raise failed from None
        (folder / TRACEBACK).unlink(missing_ok=True)
        if left.no_checkpoint is not None:
            raise left.no_checkpoint
        return record, True


def forget(run: PlannedRun, store: RunsFolder, reporter: Reporter) -> None:
    """Take away what a run has left; the caller holds its lock."""
    folder = store.folder(run.run_id)
    if (old := store.get(run.run_id, run.fingerprint)) is not None:
        tell_forgotten(run, old, reporter)
    for name in ("run.json", "curve.jsonl", TRACEBACK, FAILED_BATCH):
        (folder / name).unlink(missing_ok=True)
    for name in (CHECKPOINT, "state", "predictions", *FOREIGN, VECTORS):
        shutil.rmtree(folder / name, ignore_errors=True)


def _keep(
    run: PlannedRun, record: RunRecord, store: RunsFolder, status: str, error: BenchError
) -> None:
    """Record how a run ended; what it had already recorded (a training that is done) stays. A full disk hides no error."""
    with contextlib.suppress(BenchError):
        store.write(
            replace(
                store.get(run.run_id, run.fingerprint) or record, status=status, error=error.message
            )
        )


def _of_file(run: PlannedRun) -> Facts:
    """What the record keeps of a file of --recipe: the keys of its values, which no recipe of bench has, and the search that found them."""
    if run.custom is None:
        return {}
    return {
        "recipe_file": tuple(sorted(run.custom.values)),
        **({"search": dict(run.custom.search)} if run.custom.search else {}),
    }


def with_title_and_file(record: RunRecord, run: PlannedRun) -> RunRecord:
    """The record with the backbone's title, and with what a file of --recipe says of the same values; as it is where it says so already."""
    backbone = record.provenance.backbone
    if run.backbone.title not in ("", backbone.title):
        record = replace(
            record,
            provenance=replace(
                record.provenance, backbone=replace(backbone, title=run.backbone.title)
            ),
        )
    of_file = _of_file(run)
    execution = replace(record.provenance.execution, **of_file)
    if execution != record.provenance.execution:
        record = with_execution(replace(record, recipe=_recorded_recipe(run)), of_file)
    return record


def with_execution(record: RunRecord, facts: Facts) -> RunRecord:
    """The record with more facts about how it was executed."""
    execution = replace(record.provenance.execution, **facts)
    return replace(record, provenance=replace(record.provenance, execution=execution))


def _recorded_recipe(run: PlannedRun) -> dict[str, RecipeValue]:
    return {
        key: RecipeValue(**asdict(value)) for key, value in run.recipe.values_with_source().items()
    }


def _new_record(run: PlannedRun, config: RunConfig) -> RunRecord:
    corpus = run.corpus
    return RunRecord(
        run_id=run.run_id,
        fingerprint=run.fingerprint,
        status="interrupted",
        method=run.method,
        variant=run.variant,
        setting=run.setting,
        backbone=run.backbone.name,
        seed=run.seed,
        recipe=_recorded_recipe(run),
        scores=(),
        cost=Cost(),
        provenance=Provenance(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=config.command or shlex.join(["bench", *sys.argv[1:]]),
            bench_version=__version__,
            git=provenance.git_state(run.plugin.folder),
            packages=devices.packages(),
            plugin=Code(
                package=run.plugin.package, version=run.plugin.version, sha256=run.plugin.sha256
            ),
            platform=devices.platform_facts(config.device),
            data={},
            corpus=CorpusUsed(name=corpus.name, sha256=corpus.sha256, columns=corpus.columns)
            if corpus
            else CorpusUsed(),
            backbone=BackboneUsed(
                name=run.backbone.name, revision=run.backbone.revision, title=run.backbone.title
            ),
            determines=run.determines,
            execution=HowExecuted(**_of_file(run)),
        ),
    )


class Execution:
    """Of one run, from where its record and its folder are to a finished record; each step is recorded when it is done."""

    def __init__(
        self,
        run: PlannedRun,
        store: RunsFolder,
        config: RunConfig,
        reporter: Reporter,
        should_stop: Callable[[], bool],
        ranks: Alone | None,
    ) -> None:
        self.run, self.store, self.config, self.should_stop = run, store, config, should_stop
        self.ranks = ranks
        self.reporter, self.folder = EncodingReporter(reporter), store.folder(run.run_id)

    def complete(self, record: RunRecord, left: LeftToDo) -> RunRecord:
        """Train or load, then score what is left."""
        run, tasks = self.run, left.tasks
        self.reporter.phase("load")
        method = build(run, self.config, self.reporter, self.folder, self.should_stop, self.ranks)
        if left.makes_weights:
            before = record
            if (
                run.corpus is not None
            ):  # what was scored is of other weights, from the first step on
                record = self.without_scores(record)
            record = self.train(method, record)
            if run.corpus is None and before.checkpoint not in (None, record.checkpoint):
                record = self.without_scores(record)
            if not record.scores:
                tasks = run.task_data
            self.store.write(record)
        elif left.no_checkpoint is None:
            method.load(self.folder / CHECKPOINT)
        shutil.rmtree(
            self.folder / "state", ignore_errors=True
        )  # also what a process left that was killed at this very place
        if (
            tasks or record.status != "finished"
        ):  # killed after the last score: what follows from all of them is missing
            record = replace(record, status="interrupted")
            record = self.score(method, record, tasks)
            if (
                changed_scores(record, left.lost_scores)
                and left.no_checkpoint is None
                and (self.folder / VECTORS).exists()
            ):
                shutil.rmtree(
                    self.folder / VECTORS, ignore_errors=True
                )  # they may be damaged, too; the checkpoint is not
                record = self.score(method, record, tasks)
            for now, was in changed_scores(record, left.lost_scores):
                self.reporter.note(
                    f"{now.task}: {now.value:.4f}, where {was.value:.4f} was recorded (encoded again, here)"
                )
        record = replace(record, status="finished", error=None)
        self.store.write(record)
        return record

    def without_scores(self, record: RunRecord) -> RunRecord:
        """The record, and the run's folder, without anything that belongs to the weights that were."""
        tell_forgotten(self.run, record, self.reporter)
        if record.scores:  # first: a record never stands beside weights that are not its own
            corpus = replace(record.provenance.corpus, overlap={})
            provenance = replace(record.provenance, data={}, corpus=corpus)
            record = replace(record, scores=(), status="interrupted", provenance=provenance)
            self.store.write(record)
        for name in (VECTORS, "predictions", *FOREIGN):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return record

    def train(self, method: Method, record: RunRecord) -> RunRecord:
        """Train, or save what needs no training: the record with ``training``, ``cost`` and the hashes of the checkpoint."""
        run, checkpoint = self.run, self.folder / CHECKPOINT
        counts = provenance.parameter_counts(method, trained=run.corpus is not None)
        cost = replace(Cost(device=devices.device_name(self.config.device)), **counts)
        if run.corpus is None:
            from bench.training.state import replace_folder

            replace_folder(checkpoint, method.save)
            cost = replace(cost, checkpoint_bytes=provenance.folder_bytes(checkpoint))
            return replace(record, cost=cost, checkpoint=folder_sha256(checkpoint))
        from bench.method.torch_method import TorchMethod
        from bench.run.executors.multi_rank import train_on_all

        assert isinstance(method, TorchMethod)
        report = train_on_all(method, training_corpus(run.corpus, method), run, self.ranks)
        cost = replace(
            cost,
            checkpoint_bytes=provenance.folder_bytes(checkpoint),
            train_seconds=round(report.train_seconds, 2),
            dev_seconds=round(report.dev_seconds, 2),
            train_sentences_per_second=round(report.sentences_per_second, 1),
            train_tokens_per_second=round(report.tokens_per_second, 1) if report.tokens else None,
            peak_memory_bytes=devices.peak_memory_bytes(self.config.device),
            host_memory_bytes=devices.host_memory_bytes(),
        )
        training = Training(
            steps=report.steps,
            best_step=report.best_step,
            dev_score=report.dev_score,
            sentences=report.sentences,
            tokens=report.tokens or None,
            **dev_set(run),
        )
        record = replace(record, cost=cost, training=training, checkpoint=folder_sha256(checkpoint))
        return with_execution(record, report.execution)

    def score(self, method: Method, record: RunRecord, tasks: Sequence[KnownTask]) -> RunRecord:
        """Score the tasks, each recorded as soon as it is done. Raises RunFailed when all were tried and one could not be scored."""
        run, store, device, before = self.run, self.store, self.config.device, record.cost
        failed: list[RunFailed] = []
        done: list[tuple[TaskResult, LoadedTask]] = []
        place = RunPlace(run.run_id, run.fingerprint[:16], self.folder)
        stores = Stores(self.folder / VECTORS, run.fingerprint[:16])
        for scored in score_tasks(method, tasks, self.reporter, stores, place, device):
            result = scored.result
            if isinstance(result, RunFailed):
                failed.append(result)
                continue
            done.append((result, scored.of.task))
            store.write_predictions(
                run.run_id, result.task, result.text, result.predictions, result.suite
            )
            speed = scored.sentences_per_second
            cost = replace(
                before,
                eval_seconds=round((before.eval_seconds or 0.0) + scored.seconds, 2),
                encode_sentences_per_second=before.encode_sentences_per_second
                if speed is None
                else round(speed, 1),
                peak_memory_bytes=devices.peak_memory_bytes(device),
                host_memory_bytes=devices.host_memory_bytes(),
            )
            data = {
                **record.provenance.data,
                data_key(result.task, result.text, result.suite): scored.of.sha256,
            }
            record = replace(
                record,
                scores=merge_scores(record.scores, [result]),
                provenance=replace(record.provenance, data=data),
                cost=cost,
            )
            record = with_source(record, result.suite)
            store.write(record)
            if self.should_stop():
                raise Interrupted(
                    f"stopped after scoring {result.task}; the same command goes on from there"
                )
        corpus = with_overlap(
            record,
            run.corpus,
            [*self.uncounted(record, done), *done],
            self.reporter,
            self.should_stop,
        )
        backbone = record.provenance.backbone
        if about := method.about():
            model = {"kind": kind_of(run.backbone), **stores.shape_facts(), **about}
            backbone = replace(backbone, model=model)
        record = replace(
            record, provenance=replace(record.provenance, corpus=corpus, backbone=backbone)
        )
        store.write(record)
        if failed:
            others = (
                f"; and {len(failed) - 1} more: {'; '.join(failure.message for failure in failed[1:])}"
                if failed[1:]
                else ""
            )
            kind = TasksFailed if record.scores else RunFailed
            raise kind(failed[0].message + others, failed[0].hint)
        return record

    def uncounted(
        self, record: RunRecord, done: Sequence[tuple[TaskResult, LoadedTask]]
    ) -> list[tuple[Score, LoadedTask]]:
        """What a process scored that was killed before it counted the overlap of its sentences with the corpus."""
        if self.run.corpus is None:
            return []
        overlap = record.provenance.corpus.overlap
        known = {
            (entry["suite"], entry["task"], entry["text"]) for entry in overlap.get("tasks", ())
        }
        known |= {(result.suite, result.task, result.text) for result, _ in done}
        left: list[tuple[Score, LoadedTask]] = []
        for task, known_task in zip(self.run.tasks, self.run.task_data, strict=True):
            score = record.score(task.suite, task.name, task.protocol, known_task.form)
            if score is not None and (score.suite, score.task, score.text) not in known:
                left.append((score, known_task.task))
        return left


def kind_of(backbone: Reference) -> str:
    """What a finished encoder was loaded from: the hub, a run, a folder, or this package."""
    if backbone.hub:
        return "hub"
    if backbone.trained:
        return "run"
    return "builtin" if backbone.name == "builtin" else "folder"


def dev_set(run: PlannedRun) -> dict[str, Any]:
    """What the checkpoint is chosen on, how many pairs that has, and how many of them the suite sts tests."""
    if run.dev is None:
        return {"dev_task": "none"}
    tested = dev_test_pairs(run.dev.name, run.dev.sha256, STS_TASKS)
    return {
        "dev_task": str(run.recipe["select_on"]),
        "dev_pairs": run.dev.n,
        "dev_test_pairs": None if tested is None else tested[0],
    }


# --- what is left to do for a run: what its record lacks of what is asked for, and what of it is no longer there as it was recorded ---

VECTORS = "vectors"  # in the run's folder: of every sentence that was encoded; may be deleted


@dataclass(frozen=True)
class LeftToDo:
    """``lost_scores``: of the tasks that are to be scored, the scores whose predictions were lost, as they are recorded."""

    tasks: tuple[KnownTask, ...] = ()
    lost_scores: tuple[Score, ...] = ()
    makes_weights: bool = False  # to be trained, or only saved where nothing is trained
    no_checkpoint: RunFailed | None = (
        None  # why a checkpoint that was trained cannot be used: only training makes it again
    )

    @property
    def nothing(self) -> bool:
        return not self.tasks and not self.makes_weights and self.no_checkpoint is None


def left_to_do(
    run: PlannedRun, record: RunRecord | None, folder: Path, reporter: Reporter
) -> LeftToDo:
    """Compares the record and the run's folder with what is asked for; ``reporter`` is told what was found damaged."""
    if record is None:
        return LeftToDo(run.task_data, makes_weights=True)
    broken = prediction_problems(record, folder)
    pairs = list(zip(run.tasks, run.task_data, strict=True))
    asked = {
        (task.suite, task.name, task.protocol, known_task.form): known_task
        for task, known_task in pairs
    }
    scored = {
        (task.suite, task.name, task.protocol, known_task.form)
        for task, known_task in pairs
        if is_scored(record, task, known_task)
    }
    again_too = [key for key in broken if key in scored]
    if again_too:
        reporter.note(
            f"predictions are made again: {', '.join(f'{_name(key)} ({broken[key]})' for key in again_too)}"
        )
    others = [key for key in broken if key not in asked]
    if others:
        suites = ",".join(dict.fromkeys(key[0] for key in others))
        reporter.note(
            f"predictions of what is not asked for now are damaged: {', '.join(map(_name, others))} (--suite {suites})"
        )
    tasks = tuple(
        known_task for key, known_task in asked.items() if key not in scored or key in broken
    )
    lost_scores = tuple(score for score in record.scores if score.key in again_too)
    if run.corpus is not None and record.training is None:
        return LeftToDo(tasks, lost_scores, makes_weights=True)
    problem = checkpoint_problem(record, folder)
    if problem is not None and run.corpus is None:
        reporter.note(f"{problem}: made again, for nothing was trained")
        return LeftToDo(tasks, lost_scores, makes_weights=True)
    if problem is not None:
        hint = "the same command with --fresh trains it again and scores the new weights"
        kept = "; the recorded scores stay as they are" if record.scores else ""
        return LeftToDo(tasks, lost_scores, no_checkpoint=RunFailed(problem + kept, hint))
    return LeftToDo(tasks, lost_scores)


def is_finished(run: PlannedRun, store: RunsFolder) -> bool:
    """Is there a finished record with a score of every task?"""
    record = store.get(run.run_id, run.fingerprint)
    scored = zip(run.tasks, run.task_data, strict=True)
    return (
        record is not None
        and record.status == "finished"
        and all(is_scored(record, task, known) for task, known in scored)
    )


def is_scored(record: RunRecord, task: Task, known: KnownTask) -> bool:
    """Whether the record has the task's score under this protocol, of this very data; of a plugin's suite also by this very code."""
    if record.score(task.suite, task.name, task.protocol, known.form) is None:
        return False
    if (plugin := suite_plugin(task.suite)) is not None and plugin.sha256 != scored_by(
        record, task.suite
    ).sha256:
        return False
    return record.provenance.data.get(data_key(task.name, known.form, task.suite)) == known.sha256


def scored_by(record: RunRecord, suite: str) -> Code:
    """The code of the plugin's suite that made a record's scores; nothing for a suite of this package."""
    return record.provenance.execution.suites.get(suite, Code())


def with_source(record: RunRecord, suite: str) -> RunRecord:
    """The record with the place of that suite's code in its provenance, where the suite is a plugin's."""
    plugin = suite_plugin(suite)
    if plugin is None:
        return record
    own = Code(package=plugin.package, version=plugin.version, sha256=plugin.sha256)
    suites = record.provenance.execution.suites
    return with_execution(record, {"suites": {**suites, suite: own}})


def can_do_without_model(run: PlannedRun, tasks: Sequence[KnownTask], folder: Path) -> bool:
    """Whether there is something to score, and every vector that it needs is stored."""
    if not tasks:
        return False
    stores = Stores(folder / VECTORS, run.fingerprint[:16])
    return not any(
        isinstance(task.task, AskingTask)
        or stores(task_prompt(run.recipe, task.suite, task.name)).missing(task.task.sentences)
        for task in tasks
    )


def changed_scores(record: RunRecord, before: Sequence[Score]) -> list[tuple[Score, Score]]:
    """(as it is recorded now, as it was) of the scores that are not the same any more."""
    now = {score.key: score for score in record.scores}
    return [
        (now[was.key], was) for was in before if was.key in now and now[was.key].value != was.value
    ]


def tell_forgotten(run: PlannedRun, record: RunRecord, reporter: Reporter) -> None:
    """New weights make every old score old, also those of suites that are not asked for this time."""
    asked = {task.suite for task in run.tasks}
    gone = list(dict.fromkeys(score.suite for score in record.scores if score.suite not in asked))
    if gone:
        reporter.note(
            f"the scores of {', '.join(gone)} were of the old weights and are gone: --suite {','.join(gone)} scores the new ones"
        )


def _name(key: tuple[str, str, str, str | None]) -> str:
    return data_key(key[1], key[3], key[0])
