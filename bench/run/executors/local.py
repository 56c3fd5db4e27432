"""Runs in this process, one after the other: train, encode, score, write the record."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
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
from bench.data.sets.manifest import fetch_warning
from bench.data.sets.sts import STS_TASKS
from bench.method import Method, Reporter
from bench.run import provenance
from bench.run.config import RunConfig
from bench.run.executors.build import build, training_corpus
from bench.run.executors.scoring import RunVectors, merge_scores, score_tasks, with_overlap
from bench.run.executors.torchrun import train_on_all
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
    Training,
)
from bench.runs.intact import CHECKPOINT, FAILED_BATCH, checkpoint_problem, prediction_problems
from bench.runs.record import Facts, dev_test_pairs
from bench.runs.store import data_key
from bench.score.suites import RunPlace, suite_plugin

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.method.ranks import Alone
    from bench.score.suites import Task
    from bench.score.suites.known import KnownTask

TRACEBACK = "traceback.txt"  # in the run's folder: where a method's code failed
VECTORS = "vectors"  # of every sentence that was encoded; may be deleted
OF_WEIGHTS = (VECTORS, "predictions", *FOREIGN)
"""What is made with the weights of a run, and worth nothing without them."""


class TasksFailed(RunFailed):
    """Some tasks could not be scored; the run has scores of others."""


def execute(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Alone | None = None,
) -> tuple[RunRecord, bool]:
    """Train and score one planned run; returns its record and whether there was anything to do.

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
        if record is None:
            needs_weights, tasks = True, run.task_data
            record = _new_record(run, config)
            store.write(record)  # from here on it is known, however this process ends
        else:
            backbone = record.provenance.backbone
            if run.backbone.title not in ("", backbone.title):
                titled = replace(backbone, title=run.backbone.title)
                record = with_provenance(record, backbone=titled)
                store.write(record)
            needs_weights = _needs_weights(run, record, folder, reporter)
            tasks = _unscored(run, record, folder, reporter)
            if record.status == "finished" and not tasks and not needs_weights:
                return record, False
        if job := job_here():
            record = with_execution(record, job)
        insistent = ranks is None and not job  # an engine may say it more than once
        with _recorded_end(run, store, record), stop_signals(insistent=insistent) as should_stop:
            reporter.phase("load")
            method = build(run, config, reporter, folder, should_stop, ranks)
            if needs_weights:
                record = _with_weights(method, run, store, record, reporter, ranks)
            else:
                method.load(folder / CHECKPOINT)
            shutil.rmtree(folder / "state", ignore_errors=True)  # also of one killed right here
            tasks = tasks if record.scores else run.task_data
            record = replace(record, status="interrupted")
            record = score(method, run, store, record, tasks, reporter, should_stop)
            record = replace(record, status="finished", error=None)
            store.write(record)
        (folder / TRACEBACK).unlink(missing_ok=True)
        return record, True


@contextmanager
def _recorded_end(run: PlannedRun, store: RunsFolder, record: RunRecord) -> Iterator[None]:
    """Record how a run ends that does not end well. Raises RunFailed also for what a plugin's code raises."""

    def write(status: str, error: BenchError) -> None:
        now = store.get(run.run_id, run.fingerprint) or record  # a training that is done stays
        with suppress(BenchError):  # a full disk hides no error
            store.write(replace(now, status=status, error=error.message))

    try:
        yield
    except Interrupted as error:
        write("interrupted", error)
        raise
    except BenchError as error:
        failed = error if isinstance(error, RunFailed) else RunFailed(error.message, error.hint)
        write("finished" if isinstance(error, TasksFailed) else "failed", failed)
        raise failed from None
    except (Exception, SystemExit) as error:  # a plugin's code
        trace = store.folder(run.run_id) / TRACEBACK
        failed = PluginFailed(f"{run.method}: {located(error)}", f"see {trace}")
        with suppress(OSError):
            trace.write_text(traceback.format_exc(), encoding="utf-8")
        write("failed", failed)
        raise failed from None


# --- what is not done again ---


def _needs_weights(run: PlannedRun, record: RunRecord, folder: Path, reporter: Reporter) -> bool:
    """Is the run to be trained, or saved where nothing is trained? Raises RunFailed where weights that were trained are damaged:
    then record and scores stay as they are."""
    if run.corpus is not None and record.training is None:
        return True
    if (problem := checkpoint_problem(record, folder)) is None:
        return False
    if run.corpus is not None:
        hint = "the same command with --fresh trains it again and scores the new weights"
        raise RunFailed(f"{problem}; the recorded scores stay as they are", hint)
    reporter.note(f"{problem}: made again, for nothing was trained")
    return True


def _unscored(
    run: PlannedRun, record: RunRecord, folder: Path, reporter: Reporter
) -> tuple[KnownTask, ...]:
    """The tasks that have no score, or whose predictions are damaged; then stored vectors may be damaged, too, and are removed."""
    damaged = prediction_problems(record, folder)
    tasks: list[KnownTask] = []
    again: list[str] = []
    for task, known in zip(run.tasks, run.task_data, strict=True):
        problem = damaged.get((task.suite, task.name, task.protocol, known.form))
        if problem and is_scored(record, task, known):
            again.append(f"{data_key(task.name, known.form, task.suite)} ({problem})")
        if problem or not is_scored(record, task, known):
            tasks.append(known)
    if again:
        reporter.note(f"predictions are made again: {', '.join(again)}")
        shutil.rmtree(folder / VECTORS, ignore_errors=True)
    return tuple(tasks)


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
    scored_by = record.provenance.execution.suites.get(task.suite, Code())
    if (plugin := suite_plugin(task.suite)) is not None and plugin.sha256 != scored_by.sha256:
        return False
    return record.provenance.data.get(data_key(task.name, known.form, task.suite)) == known.sha256


def forget(run: PlannedRun, store: RunsFolder, reporter: Reporter) -> None:
    """Remove what a run has made; the caller holds its lock."""
    folder = store.folder(run.run_id)
    if (old := store.get(run.run_id, run.fingerprint)) is not None:
        _note_forgotten(run, old, reporter)
    for name in ("run.json", "curve.jsonl", TRACEBACK, FAILED_BATCH):
        (folder / name).unlink(missing_ok=True)
    for name in (CHECKPOINT, "state", *OF_WEIGHTS):
        shutil.rmtree(folder / name, ignore_errors=True)


def without_scores(
    run: PlannedRun, store: RunsFolder, record: RunRecord, reporter: Reporter
) -> RunRecord:
    """The record, and the run's folder, without anything that belongs to the weights before."""
    _note_forgotten(run, record, reporter)
    if record.scores:  # first: a record never stands beside weights that are not its own
        record = with_provenance(
            replace(record, scores=(), status="interrupted"),
            data={},
            corpus=replace(record.provenance.corpus, overlap={}),
        )
        store.write(record)
    for name in OF_WEIGHTS:
        shutil.rmtree(store.folder(run.run_id) / name, ignore_errors=True)
    return record


def _note_forgotten(run: PlannedRun, record: RunRecord, reporter: Reporter) -> None:
    """New weights make every old score old, also those of suites that are not requested this time."""
    requested = {task.suite for task in run.tasks}
    gone = ",".join(dict.fromkeys(s.suite for s in record.scores if s.suite not in requested))
    if gone:
        reporter.note(f"scores of the old weights are gone: --suite {gone} scores the new ones")


# --- records ---


def _new_record(run: PlannedRun, config: RunConfig) -> RunRecord:
    corpus, custom = run.corpus, run.custom
    return RunRecord(
        run_id=run.run_id,
        fingerprint=run.fingerprint,
        status="interrupted",
        method=run.method,
        variant=run.variant,
        setting=run.setting,
        backbone=run.backbone.name,
        seed=run.seed,
        recipe={
            key: RecipeValue(**asdict(value))
            for key, value in run.recipe.values_with_source().items()
        },
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
            corpus=CorpusUsed(
                name=corpus.name,
                sha256=corpus.sha256,
                columns=corpus.columns,
                warning=fetch_warning(corpus.path),
            )
            if corpus
            else CorpusUsed(),
            backbone=BackboneUsed(
                name=run.backbone.name, revision=run.backbone.revision, title=run.backbone.title
            ),
            determines=run.determines,
            execution=HowExecuted(
                recipe_file=tuple(sorted(custom.values)) if custom else (),
                search=dict(custom.search) if custom else {},
            ),
        ),
    )


def with_provenance(record: RunRecord, **facts: Any) -> RunRecord:
    return replace(record, provenance=replace(record.provenance, **facts))


def with_execution(record: RunRecord, facts: Facts) -> RunRecord:
    """The record with more facts about how it was executed."""
    return with_provenance(record, execution=replace(record.provenance.execution, **facts))


# --- the work ---


def _with_weights(
    method: Method,
    run: PlannedRun,
    store: RunsFolder,
    record: RunRecord,
    reporter: Reporter,
    ranks: Alone | None,
) -> RunRecord:
    """Train, or save what needs no training; scores of other weights are dropped, of a training before its first step."""
    folder, hashes = store.folder(run.run_id), record.checkpoint
    if run.corpus is not None:
        record = without_scores(run, store, record, reporter)
        record = train(method, run, folder, record, ranks)
    else:
        record = save(method, folder, record)
        if hashes not in (None, record.checkpoint):
            record = without_scores(run, store, record, reporter)
    store.write(record)
    return record


def save(method: Method, folder: Path, record: RunRecord) -> RunRecord:
    """Save what needs no training: the record with ``cost`` and the hashes of the checkpoint."""
    from bench.training.state import replace_folder

    replace_folder(folder / CHECKPOINT, method.save)
    cost = _cost(method, folder, trained=False)
    return replace(record, cost=cost, checkpoint=folder_sha256(folder / CHECKPOINT))


def _cost(method: Method, folder: Path, *, trained: bool) -> Cost:
    return Cost(
        device=devices.device_name(method.context.device),
        checkpoint_bytes=provenance.folder_bytes(folder / CHECKPOINT),
        **provenance.parameter_counts(method, trained=trained),
    )


def train(
    method: Method, run: PlannedRun, folder: Path, record: RunRecord, ranks: Alone | None
) -> RunRecord:
    """The record with ``training``, ``cost`` and the hashes of the checkpoint."""
    from bench.method.torch_method import TorchMethod

    assert isinstance(method, TorchMethod) and run.corpus is not None
    report = train_on_all(method, training_corpus(run.corpus, method), run, ranks)
    cost = replace(
        _cost(method, folder, trained=True),
        train_seconds=round(report.train_seconds, 2),
        dev_seconds=round(report.dev_seconds, 2),
        train_sentences_per_second=round(report.sentences_per_second, 1),
        train_tokens_per_second=round(report.tokens_per_second, 1) if report.tokens else None,
        peak_memory_bytes=devices.peak_memory_bytes(method.context.device),
        host_memory_bytes=devices.host_memory_bytes(),
    )
    training = Training(
        steps=report.steps,
        best_step=report.best_step,
        dev_score=report.dev_score,
        sentences=report.sentences,
        tokens=report.tokens or None,
        **_dev_set(run),
    )
    hashes = folder_sha256(folder / CHECKPOINT)
    record = replace(record, cost=cost, training=training, checkpoint=hashes)
    return with_execution(record, report.execution)


def _dev_set(run: PlannedRun) -> dict[str, Any]:
    """What the checkpoint is chosen on, how many pairs that has, and how many of them the suite sts tests."""
    if run.dev is None:
        return {"dev_task": "none"}
    tested = dev_test_pairs(run.dev.name, run.dev.sha256, STS_TASKS)
    return {
        "dev_task": str(run.recipe["select_on"]),
        "dev_pairs": run.dev.n,
        "dev_test_pairs": None if tested is None else tested[0],
    }


def score(
    method: Method,
    run: PlannedRun,
    store: RunsFolder,
    record: RunRecord,
    tasks: Sequence[KnownTask],
    reporter: Reporter,
    should_stop: Callable[[], bool],
) -> RunRecord:
    """Score the tasks, each recorded as soon as it is done. Raises RunFailed when all were tried and one could not be scored."""
    began, before, device = time.perf_counter(), record.cost, method.context.device
    failed: list[RunFailed] = []
    scored: set[KnownTask] = set()
    folder, key = store.folder(run.run_id), run.fingerprint[:16]
    vectors = RunVectors(method, reporter, folder / VECTORS, key)
    place = RunPlace(run.run_id, key, folder)
    for known, result in score_tasks(tasks, vectors, place, device):
        if isinstance(result, RunFailed):
            failed.append(result)
            continue
        scored.add(known)
        store.write_predictions(
            run.run_id, result.task, result.text, result.predictions, result.suite
        )
        speed = before.encode_sentences_per_second
        if vectors.encoded:
            speed = round(vectors.encoded / max(vectors.seconds, 1e-9), 1)
        cost = replace(
            before,
            eval_seconds=round((before.eval_seconds or 0.0) + time.perf_counter() - began, 2),
            encode_sentences_per_second=speed,
            peak_memory_bytes=devices.peak_memory_bytes(device),
            host_memory_bytes=devices.host_memory_bytes(),
        )
        record = replace(record, scores=merge_scores(record.scores, [result]), cost=cost)
        data = {data_key(result.task, result.text, result.suite): known.sha256}
        record = with_provenance(record, data={**record.provenance.data, **data})
        if (plugin := suite_plugin(result.suite)) is not None:
            code = Code(package=plugin.package, version=plugin.version, sha256=plugin.sha256)
            suites = {**record.provenance.execution.suites, result.suite: code}
            record = with_execution(record, {"suites": suites})
        store.write(record)
        if should_stop():
            raise Interrupted(
                f"stopped after scoring {result.task}; the same command goes on from there"
            )
    record = with_provenance(
        record, corpus=with_overlap(record, run, scored, reporter, should_stop)
    )
    if about := method.about():
        vectors.of(None, ())  # from the disk, where a process was killed after the last score
        model = {"kind": _kind_of(run.backbone), **vectors.shape_facts(), **about}
        record = with_provenance(record, backbone=replace(record.provenance.backbone, model=model))
    if failed:
        store.write(record)
        kind = TasksFailed if record.scores else RunFailed
        raise kind("; and ".join(error.message for error in failed), failed[0].hint)
    return record


def _kind_of(backbone: Reference) -> str:
    """What a finished encoder was loaded from: the hub, a run, a folder, or this package."""
    if backbone.hub:
        return "hub"
    if backbone.trained:
        return "run"
    return "builtin" if backbone.name == "builtin" else "folder"
