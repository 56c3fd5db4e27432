"""The scores of a run: each task is scored and recorded as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from bench.base import devices
from bench.base.errors import CorpusError, Interrupted, RunFailed
from bench.data.overlap import ScoredSentences, count_overlaps, merge_overlaps, scored_sentences
from bench.method import Method
from bench.method.context import Reporter
from bench.method.finished import FinishedEncoder
from bench.method.prompts import Way
from bench.method.smaller import Smaller
from bench.records.names import data_key, protocol_text
from bench.records.record import AVERAGE, CorpusUsed, Cost, RunRecord, Score
from bench.records.store import RunsFolder
from bench.run.done import code_of_suite, has_other_code
from bench.run.planned import PlannedRun
from bench.run.record_of import with_execution, with_provenance
from bench.run.smaller import find_vectors
from bench.run.vectors import RunVectors, score_tasks, tokens_of
from bench.score.suites import KnownTask, RunPlace, TaskResult, average, suite_names

WEIGHTS_IN_WORDS = {"bf16": "bfloat16", "4bit": "4 bits (NF4)"}
"""A value of base_dtype -> its words in records and tables."""


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

    Scores that another code of a plugin's suite gave are left out before anything is scored, so
    that one code computed everything in an average.
    """
    began = time.perf_counter()
    before = record.cost
    device = method.context.device
    folder = store.folder(run.run_id)
    key = run.fingerprint[:16]
    vectors = RunVectors(method, reporter, *find_vectors(run, store))
    place = RunPlace(run.run_id, key, folder, tokens_of(method))
    failed: list[RunFailed] = []
    record = without_scores_of_other_code(record, tasks)
    for done, (known, result) in enumerate(score_tasks(tasks, vectors, place, device), 1):
        if isinstance(result, RunFailed):
            failed.append(result)
            continue

        store.write_predictions(
            record.run_id, result.task, result.protocol, result.predictions, result.suite
        )
        record = with_score(record, known, result)
        seconds = time.perf_counter() - began
        record = replace(record, cost=_cost_of_scoring(before, seconds, vectors, device))

        # the last score is written with the overlap: a run that has every score and is finished is
        # not looked at again
        if should_stop():
            store.write(record)
            raise Interrupted(
                f"stopped after scoring {result.task}; the same command goes on from there"
            )
        if done < len(tasks):
            store.write(record)
    record = with_provenance(record, corpus=with_overlap(record, run, reporter, should_stop))
    record = _with_model_facts(record, run, method, vectors)
    record = _with_weights_format(record, run)
    if failed:
        store.write(record)
        raise _failure(failed, record)
    return record


def _with_weights_format(record: RunRecord, run: PlannedRun) -> RunRecord:
    """Return the record with the format of the weights that were scored, if it is not float32."""
    held_in = run.recipe.get("base_dtype")
    if held_in is None:
        return record
    words = f"float32 on weights in {WEIGHTS_IN_WORDS.get(held_in, held_in)}"
    return with_execution(record, {"scored_in": words})


def without_scores_of_other_code(record: RunRecord, tasks: Sequence[KnownTask]) -> RunRecord:
    """Return the record without its scores on these tasks' suites that other code computed."""
    suites = {known.suite for known in tasks}
    stale = {name for name in suites if has_other_code(record, name)}
    kept = tuple(one for one in record.scores if one.suite not in stale)
    return replace(record, scores=kept)


def _failure(errors: Sequence[RunFailed], record: RunRecord) -> RunFailed:
    """Return one error for all tasks that could not be scored."""
    message = "; and ".join(error.message for error in errors)
    error_class = TasksFailed if record.scores else RunFailed
    return error_class(message, errors[0].hint)


def _cost_of_scoring(before: Cost, seconds: float, vectors: RunVectors, device: str) -> Cost:
    """Return the cost of a run after ``seconds`` more seconds of scoring.

    Its peak of memory may be that of its training, in an earlier process.
    """
    cost = replace(
        before,
        eval_seconds=round((before.eval_seconds or 0.0) + seconds, 2),
        host_memory_bytes=max(before.host_memory_bytes or 0, devices.host_memory_bytes()),
    )
    if before.device == devices.device_name(device):
        peak = max(before.peak_memory_bytes or 0, devices.peak_memory_bytes(device))
        cost = replace(cost, peak_memory_bytes=peak)
    if vectors.encoded:
        speed = vectors.encoded / max(vectors.seconds, 1e-9)
        cost = replace(cost, encode_sentences_per_second=round(speed, 1))
    return cost


def _with_model_facts(
    record: RunRecord, run: PlannedRun, method: Method, vectors: RunVectors
) -> RunRecord:
    """Return the record with the facts that a ready-made encoder states about itself."""
    about = method.about() if isinstance(method, FinishedEncoder) else {}
    if not about:
        return record
    # from the disk, if a process was killed after the last score
    vectors.of(Way(), ())
    origin = "folder"
    if run.backbone.hub:
        origin = "hub"
    elif run.backbone.beneath is not None and not run.backbone.adapter_values():
        origin = "folder"  # of an adapter that peft saved
    elif run.backbone.trained:
        origin = "run"
    elif run.backbone.name == "builtin":
        origin = "builtin"
    model = {"kind": origin, **vectors.shape_facts(), **about}
    smaller = Smaller.of(run.recipe)
    if smaller is not None:
        model |= smaller.facts(model["dimension"])
    return with_provenance(record, backbone=replace(record.provenance.backbone, model=model))


def with_score(record: RunRecord, known: KnownTask, result: TaskResult) -> RunRecord:
    """Return the record with the score of a task, the hash of its data, and the code of its
    suite.
    """
    name = data_key(result.task, result.protocol, result.suite)
    record = replace(record, scores=merge_scores(record.scores, result))
    record = with_provenance(record, data={**record.provenance.data, name: known.sha256})
    code = code_of_suite(result.suite)
    if code is None:
        return record
    codes = {**record.provenance.execution.suites, result.suite: code}
    return with_execution(record, {"suites": codes})


def merge_scores(scores: tuple[Score, ...], result: TaskResult) -> tuple[Score, ...]:
    """Replace the score of the same cell by a new result, and compute the suites' averages
    again.
    """
    new = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    cells = {score_run.key: score_run for score_run in (*scores, new) if score_run.task != AVERAGE}
    known = suite_names()
    groups: dict[tuple[str, str], list[Score]] = {}
    for score_run in cells.values():
        if score_run.suite in known:
            groups.setdefault((score_run.suite, score_run.protocol), []).append(score_run)
    merged = list(cells.values())
    for score_run in scores:
        # an average of a plugin's suite that is not here now is unchanged
        if score_run.task == AVERAGE and score_run.suite not in known:
            merged.append(score_run)
    for group in groups.values():
        mean = average(group)
        if mean is not None:
            merged.append(mean)
    return tuple(merged)


def with_overlap(
    record: RunRecord, run: PlannedRun, reporter: Reporter, should_stop: Callable[[], bool]
) -> CorpusUsed:
    """Count the sentences of the scored tasks that are in the corpus, as ``provenance.corpus``.

    Earlier counts come from the cache. If the corpus can no longer be read, a note says so and
    nothing else changes: the scores do not depend on it. Tasks with sentences that only mteb knows
    have no counts. Raises Interrupted.
    """
    corpus = run.corpus
    about = record.provenance.corpus
    scored = []
    for task, known in zip(run.tasks, run.task_data, strict=True):
        if record.score(task.suite, task.name, task.protocol) is None:
            continue
        sentences = scored_sentences(known.task)
        if sentences:
            scored.append(
                ScoredSentences(task.suite, task.name, protocol_text(task.protocol), sentences)
            )
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
        counts = count_overlaps(corpus, scored, progress=progress)
        return replace(about, overlap=merge_overlaps(counts, about.overlap))
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
    """Report the rows of a corpus that are done. Raises Interrupted with the message
    ``stopped``.
    """
    if should_stop():
        raise Interrupted(stopped)
    reporter.advance(rows, total=total)
