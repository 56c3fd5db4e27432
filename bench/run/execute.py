"""One run in this process: the training and the scoring that are not done yet, and their record.

:func:`execute` leads from a planned run to its record; it reads from top to bottom. The other ranks of a training (``--on torchrun:N``)
are in :func:`follow`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as replace_config
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from bench.backbones.dropout import dropout_in_use, own_dropout
from bench.base import __version__, devices
from bench.base.errors import (
    BenchError,
    CorpusError,
    DeviceLost,
    Interrupted,
    PluginFailed,
    RunFailed,
)
from bench.base.files import folder_sha256
from bench.base.installed_code import BUILT_IN
from bench.base.paths import hide_paths, recorded_path
from bench.base.places import PLACES
from bench.base.same_code import suite_code_of
from bench.base.user_code import located
from bench.data.corpora import Corpus
from bench.data.corpora.token_cache import TokenisedCorpus, as_text, tokenise
from bench.data.overlap import ScoredSentences, count_overlaps, merge_overlaps, scored_sentences
from bench.data.sets.sts import STS_TASKS
from bench.method import Context, Method, Reporter, SilentReporter, TrainReport, task_prompt
from bench.method.checks import check_noise
from bench.records.record import (
    AVERAGE,
    Checkout,
    Code,
    CorpusUsed,
    Cost,
    Facts,
    HowExecuted,
    Provenance,
    RunRecord,
    Score,
    Training,
    dev_test_pairs,
    name_in_suites,
)
from bench.records.sizes import VECTORS
from bench.records.store import (
    CHECKPOINT,
    FAILED_BATCH,
    FOREIGN,
    LOCK,
    RECORD,
    RunsFolder,
    checkpoint_problem,
    data_key,
    prediction_problems,
)
from bench.run import recorded
from bench.run.config import RunConfig
from bench.run.plan import PlannedRun, learns
from bench.score.encoding import VectorStore
from bench.score.suites import (
    KnownTask,
    RunPlace,
    Task,
    TaskResult,
    average,
    built_in_code,
    suite_names,
    suite_plugin,
)

if TYPE_CHECKING:
    from bench.backbones.model import Backbone
    from bench.method.ranks import Ranks


TRACEBACK = "traceback.txt"  # in the run's folder: where a method's code failed


class TasksFailed(RunFailed):
    """Some tasks could not be scored; the run has scores of others."""


def execute(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Ranks | None = None,
) -> tuple[RunRecord, bool]:
    """Train and score one planned run; returns its record and whether there was anything to do.

    Nothing is done twice: a trained checkpoint is loaded, and a task is scored only if its protocol, its data or the checkpoint
    changed, or if its predictions are no longer as recorded. A run that was finished stays finished, with the scores that it had, however
    this ends. Raises RunFailed (recorded as "failed"; a run that has scores stays finished if only other tasks could not be scored),
    Interrupted (recorded, resumable), DeviceLost (recorded as "failed"; this process can do no other run), or another BenchError if
    nothing was started.
    """
    folder = store.folder(run.run_id)
    with store.lock(run.run_id, config.wait_seconds, reporter.note):
        recorded.remember_places(run, store.path)
        if config.fresh and is_finished_at_all(run, store):
            return execute_afresh(run, store, config, reporter, ranks), True
        if config.fresh and folder.exists():
            forget(run, store, reporter)
        record = _record(run, store, config, reporter)
        has_weights = _has_weights(run, record)
        tasks = _unscored(run, record, folder, reporter) if has_weights else run.task_data
        if record.status == "finished" and has_weights and not tasks:
            return record, False
        job = job_here()
        record = with_execution(record, job)
        with (
            _recorded_end(run, store, record),
            # an engine may send a signal more than once
            devices.stop_signals(insistent=ranks is None and not job) as should_stop,
        ):
            reporter.phase("load")
            method = build(run, config, reporter, folder, should_stop, ranks)
            if has_weights:
                method.load(folder / CHECKPOINT)
            else:
                shutil.rmtree(folder / VECTORS, ignore_errors=True)  # never of other weights
                record = (
                    save(method, folder, record)
                    if run.corpus is None
                    else train(method, run, folder, record, ranks)
                )
                store.write(record)
            shutil.rmtree(folder / "state", ignore_errors=True)  # also of one killed right here
            if record.status != "finished":
                record = replace(record, status="interrupted")
            record = score(method, run, store, record, tasks, reporter, should_stop)
            record = replace(record, status="finished", error=None)
            store.write(record)
        (folder / TRACEBACK).unlink(missing_ok=True)
        return record, True


AFRESH = ".afresh"
"""In the runs folder: runs that are made again, each until it is finished and takes the place of the earlier one."""


def is_finished_at_all(run: PlannedRun, store: RunsFolder) -> bool:
    """Has the run a finished record with scores, of whatever suites?"""
    record = store.get(run.run_id, run.fingerprint)
    return record is not None and record.status == "finished" and bool(record.scores)


def execute_afresh(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: Reporter,
    ranks: Ranks | None,
) -> RunRecord:
    """Execute a finished run again, beside its folder: its scores stand until those of the new weights are there. The caller holds its lock.

    A training that was interrupted here goes on if the same command is given again. Raises as :func:`execute` does; then the earlier run is
    as it was.
    """
    aside = RunsFolder(store.path / AFRESH)
    made = aside.folder(run.run_id)
    begun = aside.get(run.run_id, run.fingerprint)
    if begun is None or begun.status != "interrupted" or run.corpus is None:
        shutil.rmtree(made, ignore_errors=True)
    reporter.note("made again; the earlier scores stand until the new ones are there")
    try:
        record, _ = execute(run, aside, replace_config(config, fresh=False), reporter, ranks)
    except RunFailed:
        shutil.rmtree(made, ignore_errors=True)
        raise
    forget(run, store, reporter)
    folder = store.folder(run.run_id)
    for path in sorted(made.iterdir(), key=lambda path: path.name == RECORD):  # the record last
        if path.name != LOCK:
            path.rename(folder / path.name)
    shutil.rmtree(made, ignore_errors=True)
    with suppress(OSError):  # others are made again at the same time
        (aside.path / PLACES).unlink(missing_ok=True)
        aside.path.rmdir()
    return record


def job_here() -> dict[str, str | int]:
    """The engine, job, node and attempt of this worker ($BENCH_JOB); empty without an engine."""
    if "BENCH_JOB" not in os.environ:
        return {}
    name, job, node, attempt = os.environ["BENCH_JOB"].split()
    return {"engine": name, "job": job, "node": node, "attempts": int(attempt)}


@contextmanager
def _recorded_end(run: PlannedRun, store: RunsFolder, record: RunRecord) -> Iterator[None]:
    """Record how a run fails or is interrupted. Whatever a plugin's code raises becomes a RunFailed.

    A run that was finished stays so: the failure is noted beside its scores, and that scoring was stopped is not.
    """
    status, end = "failed", BenchError("")
    try:
        yield
        return
    except Interrupted as error:
        status, end = "interrupted", error
    except RunFailed as error:
        status, end = "finished" if isinstance(error, TasksFailed) else "failed", error
    except BenchError as error:
        end = RunFailed(error.message, error.hint)
    except (Exception, SystemExit) as error:  # a plugin's code
        trace = store.folder(run.run_id) / TRACEBACK
        with suppress(OSError):
            trace.write_text(traceback.format_exc(), encoding="utf-8")
        end = PluginFailed(f"{run.method}: {located(error)}", f"see {trace}")
        # every later call to the GPU fails, as after a failed assertion in a kernel; not so after running out of memory
        if "CUDA error" in str(error) and "out of memory" not in str(error):
            end = DeviceLost(
                f"the GPU cannot be used any more: {end.message}",
                f"the same command goes on; with CUDA_LAUNCH_BLOCKING=1 {trace} names the line",
            )
    now = store.get(run.run_id, run.fingerprint) or record  # a training that is done stays
    message = hide_paths(end.message)
    ended = replace(now, status=status, error=message)
    if now.status == "finished":
        ended = now if status == "interrupted" else replace(now, error=message)
    if ended != now or now is record:
        with suppress(BenchError):  # a full disk must not hide the error
            store.write(ended)
    raise end from None


# --- what is not done again ---


def _record(run: PlannedRun, store: RunsFolder, config: RunConfig, reporter: Reporter) -> RunRecord:
    """The stored record, or a new one, which is written to the disk. A damaged checkpoint that was not trained is removed.

    Raises RunFailed if trained weights are damaged: record and scores stay as they are.
    """
    record = store.get(run.run_id, run.fingerprint)  # a damaged one is made anew
    if (
        record is not None
        and _has_weights(run, record)
        and (problem := checkpoint_problem(record, store.folder(run.run_id)))
    ):
        if record.training is not None:
            raise RunFailed(
                f"{problem}; the recorded scores stay as they are",
                "the same command with --fresh trains it again and scores the new weights",
            )
        reporter.note(f"{problem}: made again, because nothing was trained")
        forget(run, store, reporter)
        record = None
    if record is None:
        record = _new_record(run, config)
    elif recorded_path(run.backbone.title) in ("", record.provenance.backbone.title):
        return record
    record = with_provenance(
        record,
        backbone=replace(record.provenance.backbone, title=recorded_path(run.backbone.title)),
    )
    store.write(record)
    return record


def _has_weights(run: PlannedRun, record: RunRecord) -> bool:
    """Has it been trained, or saved if there is nothing to train?"""
    return record.training is not None or (run.corpus is None and record.checkpoint is not None)


def _unscored(
    run: PlannedRun, record: RunRecord, folder: Path, reporter: Reporter
) -> tuple[KnownTask, ...]:
    """The tasks without a score or with damaged predictions; in the second case the vectors may be damaged, too, and are removed."""
    damaged = prediction_problems(record, folder)
    tasks: list[KnownTask] = []
    for task, known in zip(run.tasks, run.task_data, strict=True):
        problem = damaged.get((task.suite, task.name, task.protocol, known.form))
        if not is_scored(record, task, known):
            tasks.append(known)
        elif problem:
            reporter.note(
                "predictions are made again: "
                f"{data_key(task.name, known.form, task.suite)} ({problem})"
            )
            shutil.rmtree(folder / VECTORS, ignore_errors=True)
            tasks.append(known)
    return tuple(tasks)


def is_finished(run: PlannedRun, store: RunsFolder) -> bool:
    """Is there a finished record with a score for every task?"""
    record = store.get(run.run_id, run.fingerprint)
    return (
        record is not None
        and record.status == "finished"
        and all(map(partial(is_scored, record), run.tasks, run.task_data))
    )


def is_scored(record: RunRecord, task: Task, known: KnownTask) -> bool:
    """Does the record have a score of the task under this protocol, on this data and by this code of its suite?

    Records did not always say by which code a suite of this package scored.
    """
    about, now = record.provenance, code_of_suite(task.suite)
    if record.score(task.suite, task.name, task.protocol, known.form) is None:
        return False
    if about.data.get(data_key(task.name, known.form, task.suite)) != known.sha256:
        return False
    codes = about.execution.suites
    then = codes.get(
        name_in_suites(task.suite, task.name, task.protocol, known.form), codes.get(task.suite)
    )
    if then is None:
        return suite_plugin(task.suite) is None
    return suite_code_of(task.suite, then.sha256) == suite_code_of(task.suite, now.sha256)


def code_of_suite(name: str) -> Code:
    """The code that scores a suite: of a plugin, or of this package."""
    plugin = suite_plugin(name)
    if plugin is not None:
        return recorded.code_of(plugin)
    return Code(package=BUILT_IN, version=__version__, sha256=built_in_code(name))


def forget(run: PlannedRun, store: RunsFolder, reporter: Reporter) -> None:
    """Remove everything that a run has made; the caller holds its lock. New weights invalidate the scores of all suites."""
    old = store.get(run.run_id, run.fingerprint)
    suites = {score.suite for score in old.scores} if old else set()
    if gone := ",".join(sorted(suites - {task.suite for task in run.tasks})):
        reporter.note(f"scores of the old weights were removed: --suite {gone} scores the new ones")
    folder = store.folder(run.run_id)
    for name in ("run.json", "curve.jsonl", TRACEBACK, FAILED_BATCH):
        (folder / name).unlink(missing_ok=True)
    for name in (CHECKPOINT, "state", VECTORS, "predictions", *FOREIGN):
        shutil.rmtree(folder / name, ignore_errors=True)


# --- records ---


def _new_record(run: PlannedRun, config: RunConfig) -> RunRecord:
    custom = run.custom
    return RunRecord(
        run_id=run.run_id,
        fingerprint=run.fingerprint,
        status="interrupted",
        method=run.method,
        variant=run.variant,
        setting=run.setting,
        backbone=recorded_path(run.backbone.name),
        seed=run.seed,
        recipe=recorded.recipe_of(run),
        scores=(),
        cost=Cost(),
        provenance=Provenance(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=recorded.command_of(config),
            bench_version=__version__,
            git=git_state(run.plugin.folder),
            packages=devices.packages(),
            plugin=recorded.code_of(run.plugin),
            platform=devices.platform_facts(config.device),
            data={},
            corpus=recorded.corpus_used(run),
            backbone=recorded.backbone_used(run),
            determines=run.determines,
            execution=HowExecuted(
                recipe_file=tuple(sorted(custom.values)) if custom else (),
                search=dict(custom.search) if custom else {},
            ),
        ),
    )


def git_state(folder: Path) -> Checkout:
    """The commit, and whether the working tree differs from it; neither if ``folder`` is not in a git checkout, or git takes too long."""
    git = ["git", "-c", "core.abbrev=40", "-C", str(folder)]
    call = partial(subprocess.run, capture_output=True, text=True, timeout=10, check=True)
    try:
        call([*git, "ls-files", "--error-unmatch", "."])
        state = call([*git, "describe", "--always", "--exclude", "*", "--dirty"]).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return Checkout()
    return Checkout(commit=state.removesuffix("-dirty"), dirty=state.endswith("-dirty"))


def with_provenance(record: RunRecord, **facts: Any) -> RunRecord:
    return replace(record, provenance=replace(record.provenance, **facts))


def with_execution(record: RunRecord, facts: Facts) -> RunRecord:
    """The record with more facts about how it was executed."""
    return with_provenance(record, execution=replace(record.provenance.execution, **facts))


# --- the method and its weights ---


def build(
    run: PlannedRun,
    config: RunConfig,
    reporter: Reporter,
    folder: Path,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks | None = None,
) -> Method:
    """The method of a run on its backbone, with the initial weights of its seed."""
    from bench.method.torch_method import TorchMethod, build_method

    devices.keep_freed_memory()
    devices.reset_peak_memory(config.device)
    cls = run.plugin.cls
    context = Context(
        device=config.device,
        precision=run.precision,
        seed=run.seed or 0,
        folder=folder,
        dev_score=None if run.dev is None else partial(dev_score, run.dev),
        reporter=reporter,
        should_stop=should_stop,
        offline=config.offline,
        chunk=config.chunk if isinstance(config.chunk, int) else None,
        # else one process fits it
        ranks=ranks if cls.fit is TorchMethod.fit or cls.fitted == "steps" else None,
        auto_batch=config.chunk == "auto",
        compiled=config.compile,
        save_seconds=config.save_seconds,
    )
    method = build_method(cls, run.backbone, run.recipe, context, learns=learns(cls, run.setting))
    if cls.own_backbone is None:
        reporter.note(method.backbone.report())
    return method


def check_measured_noise(method: Any, run: PlannedRun) -> None:
    """Raises BenchError as :func:`check_noise`, if the backbone's config names no dropout: its class may have some all the same."""
    if run.setting not in type(method).by_dropout or own_dropout(run.backbone.config()) is not None:
        return
    try:
        used = dropout_in_use(method.encoder)
    except Exception:  # an encoder that reads no token ids
        return
    noise = max(set[float]().union(*used.values()), default=0.0)
    check_noise(type(method), run.setting, run.recipe, run.backbone.name, dropout=noise)


def prepared(method: Method, run: PlannedRun) -> Callable[[], TrainReport]:
    """The training of a run, on its corpus as the method reads it: as token ids, or as text. Raises Interrupted."""
    from bench.method.torch_method import TorchMethod
    from bench.training import loop

    assert isinstance(method, TorchMethod) and run.corpus is not None
    context = method.context
    check_measured_noise(method, run)

    progress = partial(
        _advance,
        context.reporter,
        context.should_stop,
        "stopped while tokenising the corpus; the same command starts that again",
    )
    context.reporter.phase("tokenise")
    corpus = (
        as_text(run.corpus, progress=progress)
        if method.trains_on == "text"
        else tokenised(run.corpus, method.backbone, progress)
    )
    return partial(loop.train, method, corpus, context)


def _advance(
    reporter: Reporter,
    should_stop: Callable[[], bool],
    stopped: str,
    rows: int,
    total: int | None = None,
) -> None:
    """Report the rows of a corpus that are done. Raises Interrupted with the message ``stopped``."""
    if should_stop():
        raise Interrupted(stopped)
    reporter.advance(rows, total=total)


def tokenised(
    corpus: Corpus, backbone: Backbone, progress: Callable[..., None] | None = None
) -> TokenisedCorpus:
    """The corpus as token ids, from the cache if it was tokenised before with the same tokenizer."""
    tokenizer = backbone.tokenizer
    description = {
        name: value
        for name, value in json.loads(tokenizer.backend_tokenizer.to_str()).items()
        if name not in ("truncation", "padding")  # settings of each call
    }
    key = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return tokenise(corpus, backbone.ids, key, len(tokenizer), progress=progress)


def save(method: Method, folder: Path, record: RunRecord) -> RunRecord:
    """Save what needs no training: the record with ``cost`` and the hashes of the checkpoint."""
    from bench.training.loop import replace_folder

    replace_folder(folder / CHECKPOINT, method.save)
    return replace(
        record,
        cost=_cost(method, folder, trained=False),
        checkpoint=folder_sha256(folder / CHECKPOINT),
    )


def train(
    method: Method, run: PlannedRun, folder: Path, record: RunRecord, ranks: Ranks | None
) -> RunRecord:
    """The record with ``training``, ``cost`` and the hashes of the checkpoint."""
    work = prepared(method, run)
    if ranks is None or method.context.ranks is None:  # a method that no steps train is fitted here
        report = work()
    else:
        ranks.share(str(folder))
        report = settle(work, ranks)
    dev = run.dev
    tested = dev_test_pairs(dev.name, dev.sha256, STS_TASKS) if dev else None
    record = replace(
        record,
        cost=replace(
            _cost(method, folder, trained=True),
            train_seconds=round(report.train_seconds, 2),
            dev_seconds=round(report.dev_seconds, 2),
            train_sentences_per_second=round(report.sentences_per_second, 1),
            train_tokens_per_second=round(report.tokens_per_second, 1) if report.tokens else None,
            peak_memory_bytes=devices.peak_memory_bytes(method.context.device),
            host_memory_bytes=devices.host_memory_bytes(),
        ),
        training=Training(
            steps=report.steps,
            best_step=report.best_step,
            dev_score=report.dev_score,
            sentences=report.sentences,
            tokens=report.tokens or None,
            dev_task=str(run.recipe["select_on"]) if dev else "none",
            dev_pairs=dev.n if dev else None,
            dev_test_pairs=tested[0] if tested else None,
        ),
        checkpoint=folder_sha256(folder / CHECKPOINT),
        scores=(),
    )
    return with_execution(record, report.execution)


def _cost(method: Method, folder: Path, *, trained: bool) -> Cost:
    return Cost(
        device=devices.device_name(method.context.device),
        checkpoint_bytes=sum(
            file.stat().st_size for file in (folder / CHECKPOINT).rglob("*") if file.is_file()
        ),
        **parameter_counts(method, trained=trained),
    )


def parameter_counts(method: Method, *, trained: bool) -> dict[str, Any]:
    """Fields of a record's cost, counted after everything is built; empty without torch. A run that trains nothing has no trainable
    parameters.

    A part is an attribute of the method: the first component of a parameter's name. Shared parameters count for the first part.
    """
    if not hasattr(method, "named_parameters"):
        return {}
    parts = Counter[str]()
    for name, parameter in method.named_parameters():
        if trained and parameter.requires_grad:
            parts[name.partition(".")[0]] += parameter.numel()
    return {
        "trainable_parameters": parts.total(),
        "trainable_parts": dict(parts),
        "total_parameters": sum(parameter.numel() for _, parameter in method.named_parameters()),
    }


# --- several processes that train together ---


def settle(work: Callable[[], Any], ranks: Ranks) -> Any:
    """What ``work`` returns or raises, once all ranks have ended it. If one does not get there, ``ranks.broken`` is set."""
    try:
        value = work()
    except (Exception, SystemExit) as error:  # a plugin may call sys.exit
        ranks.settle(error)
        raise
    if not ranks.settle(None):
        raise RunFailed(
            "another rank ended before the training did",
            "the same command goes on from the last saved state",
        )
    return value


def follow(planned: Sequence[PlannedRun], config: RunConfig, ranks: Ranks) -> None:
    """What all ranks except the first do: train the runs whose folders rank 0 names, until it names none.

    Rank 0 reports a failure of all ranks. A failure of this rank alone is raised, because the process has to end.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # rank 0 gets them, too, and decides
        signal.signal(number, signal.SIG_IGN)
    runs = {run.run_id: run for run in planned}
    while (place := ranks.share(None)) is not None:
        folder = Path(place)
        try:
            settle(partial(_train_rank, runs[folder.name], folder, config, ranks), ranks)
        except (Exception, SystemExit):
            if ranks.broken:
                raise


def _train_rank(run: PlannedRun, folder: Path, config: RunConfig, ranks: Ranks) -> None:
    with devices.stop_signals(insistent=False) as should_stop:
        method = build(run, config, SilentReporter(), folder, should_stop, ranks)
        prepared(method, run)()


# --- scores ---


def score(
    method: Method,
    run: PlannedRun,
    store: RunsFolder,
    record: RunRecord,
    tasks: Sequence[KnownTask],
    reporter: Reporter,
    should_stop: Callable[[], bool],
) -> RunRecord:
    """Score the tasks; each is recorded as soon as it is done. Raises RunFailed at the end if one could not be scored.

    Scores that another code of their suite gave are replaced together, once all tasks of the suite are scored, so that an average is of one
    code.
    """
    began, before, device = time.perf_counter(), record.cost, method.context.device
    failed: list[RunFailed] = []
    folder, key = store.folder(run.run_id), run.fingerprint[:16]
    vectors = RunVectors(method, reporter, folder / VECTORS, key)
    place = RunPlace(run.run_id, key, folder)
    waiting: dict[str, list[Scored]] = {name: [] for name in renewed_suites(record, tasks)}
    to_score = Counter(known.suite for known in tasks)
    for done, (known, result) in enumerate(score_tasks(tasks, vectors, place, device), 1):
        if isinstance(result, RunFailed):
            failed.append(result)
            continue
        ready = [(known, result)]
        if known.suite in waiting:
            waiting[known.suite] += ready
            ready = []
            if len(waiting[known.suite]) == to_score[known.suite]:
                ready = waiting.pop(known.suite)
                record = with_earlier_code(record, known.suite)
        for its_data, scored in ready:
            store.write_predictions(
                run.run_id, scored.task, scored.text, scored.predictions, scored.suite
            )
            record = with_score(record, its_data, scored)
        cost = replace(
            before,
            eval_seconds=round((before.eval_seconds or 0.0) + time.perf_counter() - began, 2),
            peak_memory_bytes=devices.peak_memory_bytes(device),
            host_memory_bytes=devices.host_memory_bytes(),
        )
        if vectors.encoded:
            speed = vectors.encoded / max(vectors.seconds, 1e-9)
            cost = replace(cost, encode_sentences_per_second=round(speed, 1))
        record = replace(record, cost=cost)
        # the last score is written with the overlap: a run that has every score and is finished is not looked at again
        if should_stop():
            store.write(record)
            raise Interrupted(
                f"stopped after scoring {result.task}; the same command goes on from there"
            )
        if done < len(tasks):
            store.write(record)
    for name in waiting:
        reporter.note(f"the scores of {name} stay those of its earlier code")
    record = with_provenance(record, corpus=with_overlap(record, run, reporter, should_stop))
    if about := method.about():
        vectors.of(None, ())  # from the disk, where a process was killed after the last score
        origin = "builtin" if run.backbone.name == "builtin" else "folder"
        if run.backbone.trained:
            origin = "run"
        if run.backbone.hub:
            origin = "hub"
        record = with_provenance(
            record,
            backbone=replace(
                record.provenance.backbone,
                model={"kind": origin, **vectors.shape_facts(), **about},
            ),
        )
    if failed:
        store.write(record)
        raise (TasksFailed if record.scores else RunFailed)(
            "; and ".join(error.message for error in failed), failed[0].hint
        )
    return record


Scored = tuple[KnownTask, TaskResult]
"""A task's data, and its result."""


def renewed_suites(record: RunRecord, tasks: Sequence[KnownTask]) -> list[str]:
    """The suites among those of the tasks of which the record has scores that another code gave."""
    here = {score.suite for score in record.scores}
    names = []
    for name in dict.fromkeys(known.suite for known in tasks):
        then = record.provenance.execution.suites.get(name)
        if name not in here or (then is None and suite_plugin(name) is None):
            continue
        now = code_of_suite(name).sha256
        if then is None or suite_code_of(name, then.sha256) != suite_code_of(name, now):
            names.append(name)
    return names


def with_earlier_code(record: RunRecord, name: str) -> RunRecord:
    """The record in which each score of a suite names its code, before some of them are replaced by scores of other code."""
    codes = dict(record.provenance.execution.suites)
    then = codes.get(name, Code())
    for score in record.scores:
        if score.suite == name and score.task != AVERAGE:
            codes.setdefault(name_in_suites(*score.key), then)
    return with_execution(record, {"suites": codes})


def with_score(record: RunRecord, known: KnownTask, result: TaskResult) -> RunRecord:
    """The record with the score of a task, the hash of its data, and the code of its suite."""
    name = data_key(result.task, result.text, result.suite)
    record = replace(record, scores=merge_scores(record.scores, result))
    record = with_provenance(record, data={**record.provenance.data, name: known.sha256})
    codes = {**record.provenance.execution.suites, result.suite: code_of_suite(result.suite)}
    codes.pop(name_in_suites(result.suite, result.task, result.protocol, result.text), None)
    return with_execution(record, {"suites": codes})


def dev_score(dev: KnownTask, method: Method) -> float:
    """Spearman x 100 of a method on the selection set, whose distinct sentences are encoded once."""
    vectors = VectorStore()
    vectors.add(dev.task.sentences, method.encode)
    return float(dev.task.score(vectors).value)


class RunVectors:
    """The vectors of one run, in ``folder`` or in memory; each sentence is encoded once for every prompt.

    ``encoded`` sentences took ``seconds``.
    """

    def __init__(
        self, method: Method, reporter: Reporter, folder: Path | None = None, key: str = "vectors"
    ) -> None:
        self.method, self.reporter, self.folder, self.key = method, reporter, folder, key
        self.stores: dict[str | None, VectorStore] = {}
        self.encoded, self.seconds = 0, 0.0

    def of(self, prompt: str | None, sentences: Sequence[str]) -> VectorStore:
        """The store with these sentences, encoded with a task's prompt, or with the method's (None).

        Raises RunFailed, with advice if memory ran out.
        """
        from bench.training.loop import MEMORY_ERRORS, explain_out_of_memory

        if prompt not in self.stores:
            suffix = "" if prompt is None else hashlib.sha256(prompt.encode()).hexdigest()[:8]
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

    def array(self, prompt: str | None, sentences: Sequence[str]) -> np.ndarray:
        """One row for each sentence."""
        return self.of(prompt, sentences)(sentences)

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
    """Encode the sentences of all tasks together, then score one task after the other.

    A task that cannot be scored yields its error, and the others go on; a failure of the encoding raises RunFailed.
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
            yield (
                known,
                known.task.on(device).score_in(place, partial(vectors.array, prompts[known])),
            )
        except RunFailed as failed:
            yield known, failed
        if not known.task.sentences:  # it has encoded meanwhile
            reporter.phase("score", len(tasks))
        reporter.advance(i, task=known.name)


def merge_scores(scores: tuple[Score, ...], result: TaskResult) -> tuple[Score, ...]:
    """The scores, in which a new result replaces an older one of the same cell, with the average of each suite computed again."""
    known = suite_names()  # an average of a plugin's suite that is not here now stays as it is
    new = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    cells = {score.key: score for score in (*scores, new) if score.task != AVERAGE}
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score in cells.values():
        form = None if score.text and score.text.startswith("other-") else score.text
        if score.suite in known:
            groups.setdefault((score.suite, score.protocol, form), []).append(score)
    return (
        *cells.values(),
        *(score for score in scores if score.task == AVERAGE and score.suite not in known),
        *filter(None, map(average, groups.values())),
    )


def with_overlap(
    record: RunRecord, run: PlannedRun, reporter: Reporter, should_stop: Callable[[], bool]
) -> CorpusUsed:
    """``record.provenance.corpus`` with counts of the sentences of the scored tasks that are in the corpus.

    Earlier counts come from the cache. If the corpus can no longer be read, a note says so and nothing else changes: the scores do not
    depend on it. Tasks whose sentences only mteb knows have no counts. Raises Interrupted.
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

    progress = partial(
        _advance,
        reporter,
        should_stop,
        "stopped while the corpus was compared with the evaluation data; the same command goes on",
        total=len(corpus),
    )
    reporter.phase("overlap")
    try:
        return replace(
            about,
            overlap=merge_overlaps(
                count_overlaps(corpus, scored, progress=progress), about.overlap
            ),
        )
    except (CorpusError, OSError) as error:
        why = error.message if isinstance(error, CorpusError) else str(error)
        reporter.note(f"the overlap of corpus and evaluation data was not counted: {why}")
        return about
