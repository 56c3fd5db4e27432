"""The scores of a run: each task is scored and recorded as soon as it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from bench.base import devices
from bench.base.errors import CorpusError, Interrupted, RunFailed
from bench.base.same_code import suite_code_of
from bench.data.overlap import ScoredSentences, count_overlaps, merge_overlaps, scored_sentences
from bench.method import Method, Reporter
from bench.records.names import data_key
from bench.records.record import AVERAGE, Code, CorpusUsed, Cost, RunRecord, Score, name_in_suites
from bench.records.sizes import VECTORS
from bench.records.store import RunsFolder
from bench.run.done import code_of_suite
from bench.run.planned import PlannedRun
from bench.run.record_of import with_execution, with_provenance
from bench.run.vectors import RunVectors, score_tasks
from bench.score.suites import KnownTask, RunPlace, TaskResult, average, suite_names, suite_plugin

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

    Scores that another code of their suite gave are replaced together, once all tasks of the suite
    are scored, so that one code computed everything in an average.
    """
    began = time.perf_counter()
    before = record.cost
    device = method.context.device
    folder = store.folder(run.run_id)
    key = run.fingerprint[:16]
    vectors = RunVectors(method, reporter, folder / VECTORS, key)
    place = RunPlace(run.run_id, key, folder)
    failed: list[RunFailed] = []
    waiting = WaitingScores(record, tasks)
    for done, (known, result) in enumerate(score_tasks(tasks, vectors, place, device), 1):
        if isinstance(result, RunFailed):
            failed.append(result)
            continue

        # a score that waits for the others of its suite is recorded with them
        ready = [(known, result)]
        if known.suite in waiting.suites:
            ready = waiting.add(known, result)
            if ready:
                record = with_earlier_code(record, known.suite)
        record = _with_scores(record, ready, store)
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
    for name in waiting.suites:
        reporter.note(f"the scores of {name} stay those of its earlier code")
    record = with_provenance(record, corpus=with_overlap(record, run, reporter, should_stop))
    record = _with_model_facts(record, run, method, vectors)
    record = _with_weights_format(record, run)
    if failed:
        store.write(record)
        raise _failure(failed, record)
    return record


class WaitingScores:
    """New scores of suites that the record has scores of by other code.

    They wait until all tasks of their suite are scored.
    """

    def __init__(self, record: RunRecord, tasks: Sequence[KnownTask]) -> None:
        # suite -> the new scores so far; a suite that is whole is no longer here
        self.suites: dict[str, list[Scored]] = {name: [] for name in renewed_suites(record, tasks)}
        self.tasks_of = Counter(known.suite for known in tasks)

    def add(self, known: KnownTask, result: TaskResult) -> list[Scored]:
        """Add a score; return all of its suite if they are now complete, else none."""
        scored = self.suites[known.suite]
        scored.append((known, result))
        if len(scored) < self.tasks_of[known.suite]:
            return []
        return self.suites.pop(known.suite)


def _with_weights_format(record: RunRecord, run: PlannedRun) -> RunRecord:
    """Return the record with the format of the weights that were scored, if it is not float32."""
    held_in = run.recipe.get("base_dtype")
    if held_in is None:
        return record
    words = f"float32 on weights in {WEIGHTS_IN_WORDS.get(held_in, held_in)}"
    return with_execution(record, {"scored_in": words})


def _with_scores(record: RunRecord, scored: Sequence[Scored], store: RunsFolder) -> RunRecord:
    """Write the predictions of these scores, and return the record with the scores."""
    for known, result in scored:
        store.write_predictions(
            record.run_id, result.task, result.text, result.predictions, result.suite
        )
        record = with_score(record, known, result)
    return record


def _failure(errors: Sequence[RunFailed], record: RunRecord) -> RunFailed:
    """Return one error for all tasks that could not be scored."""
    message = "; and ".join(error.message for error in errors)
    error_class = TasksFailed if record.scores else RunFailed
    return error_class(message, errors[0].hint)


def _cost_of_scoring(before: Cost, seconds: float, vectors: RunVectors, device: str) -> Cost:
    """Return the cost of a run after ``seconds`` more seconds of scoring."""
    cost = replace(
        before,
        eval_seconds=round((before.eval_seconds or 0.0) + seconds, 2),
        peak_memory_bytes=devices.peak_memory_bytes(device),
        host_memory_bytes=devices.host_memory_bytes(),
    )
    if vectors.encoded:
        speed = vectors.encoded / max(vectors.seconds, 1e-9)
        cost = replace(cost, encode_sentences_per_second=round(speed, 1))
    return cost


def _with_model_facts(
    record: RunRecord, run: PlannedRun, method: Method, vectors: RunVectors
) -> RunRecord:
    """Return the record with the facts that a finished encoder states about itself."""
    about = method.about()
    if not about:
        return record
    # from the disk, if a process was killed after the last score
    vectors.of(None, ())
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
    return with_provenance(record, backbone=replace(record.provenance.backbone, model=model))


Scored = tuple[KnownTask, TaskResult]
"""A task's data, and its result."""


def renewed_suites(record: RunRecord, tasks: Sequence[KnownTask]) -> list[str]:
    """Return the suites of these tasks if the record has scores of them that another code gave."""
    recorded = {score_run.suite for score_run in record.scores}
    names = []
    for name in dict.fromkeys(known.suite for known in tasks):
        then = record.provenance.execution.suites.get(name)
        if name not in recorded or (then is None and suite_plugin(name) is None):
            continue
        now = code_of_suite(name).sha256
        if then is None or suite_code_of(name, then.sha256) != suite_code_of(name, now):
            names.append(name)
    return names


def with_earlier_code(record: RunRecord, name: str) -> RunRecord:
    """Return the record, with the code of each suite's scores.

    It is needed before some of the scores are replaced by scores of other code.
    """
    codes = dict(record.provenance.execution.suites)
    then = codes.get(name, Code())
    for score_run in record.scores:
        if score_run.suite == name and score_run.task != AVERAGE:
            codes.setdefault(name_in_suites(*score_run.key), then)
    return with_execution(record, {"suites": codes})


def with_score(record: RunRecord, known: KnownTask, result: TaskResult) -> RunRecord:
    """Return the record with the score of a task, the hash of its data, and the code of its
    suite.
    """
    name = data_key(result.task, result.text, result.suite)
    record = replace(record, scores=merge_scores(record.scores, result))
    record = with_provenance(record, data={**record.provenance.data, name: known.sha256})
    codes = {**record.provenance.execution.suites, result.suite: code_of_suite(result.suite)}
    codes.pop(name_in_suites(result.suite, result.task, result.protocol, result.text), None)
    return with_execution(record, {"suites": codes})


def merge_scores(scores: tuple[Score, ...], result: TaskResult) -> tuple[Score, ...]:
    """Replace the score of the same cell by a new result, and compute the suites' averages
    again.
    """
    new = Score(**{name: getattr(result, name) for name in Score.__struct_fields__})
    cells = {score_run.key: score_run for score_run in (*scores, new) if score_run.task != AVERAGE}
    known = suite_names()
    groups: dict[tuple[str, str, str | None], list[Score]] = {}
    for score_run in cells.values():
        form = score_run.text
        if form and form.startswith("other-"):
            form = None
        if score_run.suite in known:
            groups.setdefault((score_run.suite, score_run.protocol, form), []).append(score_run)
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
        if record.score(task.suite, task.name, task.protocol, known.form) is None:
            continue
        sentences = scored_sentences(known.task)
        if sentences:
            scored.append(ScoredSentences(task.suite, task.name, known.form, sentences))
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
