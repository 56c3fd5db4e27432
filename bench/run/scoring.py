"""The scores of a run: each task is scored and recorded as soon as it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from bench.base import devices
from bench.base.errors import CorpusError, Interrupted, RunFailed
from bench.data.overlap import ScoredSentences, count_overlaps, merge_overlaps, scored_sentences
from bench.method import Method, Reporter
from bench.records.names import data_key
from bench.records.record import AVERAGE, Code, CorpusUsed, RunRecord, Score, name_in_suites
from bench.records.sizes import VECTORS
from bench.records.store import RunsFolder
from bench.run.done import code_of_suite
from bench.run.planned import PlannedRun
from bench.run.record_of import with_execution, with_provenance
from bench.run.vectors import RunVectors, score_tasks
from bench.score.suites import KnownTask, RunPlace, TaskResult, average, suite_names, suite_plugin


class TasksFailed(RunFailed):
    """Some tasks could not be scored; the run has scores of others."""


def score_run(
    method: Method,
    run: PlannedRun,
    store: RunsFolder,
    record: RunRecord,
    tasks: Sequence[KnownTask],
    reporter: Reporter,
    should_stop: Callable[[], bool],
) -> RunRecord:
    """Score the tasks; each is recorded as soon as it is done.

    Raises RunFailed at the end if one could not be scored.

    Scores that another code of their suite gave are replaced together, once all tasks of the suite
    are scored, so that an average is of one code.
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
        # the last score is written with the overlap: a run that has every score and is finished is
        # not looked at again
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
    here = {score_run.suite for score_run in record.scores}
    names = []
    for name in dict.fromkeys(known.suite for known in tasks):
        then = record.provenance.execution.suites.get(name)
        if name not in here or (then is None and suite_plugin(name) is None):
            continue
        if then is None or then.sha256 != code_of_suite(name).sha256:
            names.append(name)
    return names


def with_earlier_code(record: RunRecord, name: str) -> RunRecord:
    """The record in which each score of a suite names its code, before some of them are replaced by
    scores of other code.
    """
    codes = dict(record.provenance.execution.suites)
    then = codes.get(name, Code())
    for score_run in record.scores:
        if score_run.suite == name and score_run.task != AVERAGE:
            codes.setdefault(name_in_suites(*score_run.key), then)
    return with_execution(record, {"suites": codes})


def with_score(record: RunRecord, known: KnownTask, result: TaskResult) -> RunRecord:
    """The record with the score of a task, the hash of its data, and the code of its suite."""
    name = data_key(result.task, result.text, result.suite)
    record = replace(record, scores=merge_scores(record.scores, result))
    record = with_provenance(record, data={**record.provenance.data, name: known.sha256})
    codes = {**record.provenance.execution.suites, result.suite: code_of_suite(result.suite)}
    codes.pop(name_in_suites(result.suite, result.task, result.protocol, result.text), None)
    return with_execution(record, {"suites": codes})


def merge_scores(scores: tuple[Score, ...], result: TaskResult) -> tuple[Score, ...]:
    """The scores, in which a new result replaces an older one of the same cell, with the average of
    each suite computed again.
    """
    known = suite_names()  # an average of a plugin's suite that is not here now stays as it is
    new = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    cells = {score_run.key: score_run for score_run in (*scores, new) if score_run.task != AVERAGE}
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score_run in cells.values():
        form = None if score_run.text and score_run.text.startswith("other-") else score_run.text
        if score_run.suite in known:
            groups.setdefault((score_run.suite, score_run.protocol, form), []).append(score_run)
    return (
        *cells.values(),
        *(
            score_run
            for score_run in scores
            if score_run.task == AVERAGE and score_run.suite not in known
        ),
        *filter(None, map(average, groups.values())),
    )


def with_overlap(
    record: RunRecord, run: PlannedRun, reporter: Reporter, should_stop: Callable[[], bool]
) -> CorpusUsed:
    """``record.provenance.corpus`` with counts of the sentences of the scored tasks that are in the
    corpus.

    Earlier counts come from the cache. If the corpus can no longer be read, a note says so and
    nothing else changes: the scores do not depend on it. Tasks whose sentences only mteb knows have
    no counts. Raises Interrupted.
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
        advance_rows,
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


def advance_rows(
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
