"""The runs that ``bench compare`` compares: those named, or all of a folder, that match filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from bench.base.errors import BenchError, RecordDamaged
from bench.base.terminal import warn
from bench.base.text import comma_list, list_names
from bench.cli.options import check_known_names
from bench.compare.senders import with_senders
from bench.records.copies import distinct_runs
from bench.records.record import Score, read_record
from bench.records.run import Run
from bench.records.store import RunsFolder, runs_of_version
from bench.score.suites import OWN, Task, split_suites, suite

FIELDS = {
    "backbone": ("backbone", "backbone_name"),
    "method": ("method", "method_name", "label"),
    "suite": ("suite", "protocol"),
}
"""Filter -> attributes of a record or a score that it compares; other filters are attributes
themselves.
"""


def select_runs(
    references: Sequence[str], runs: Path | None, filters: Mapping[str, str | None]
) -> list[Run]:
    """Return the finished runs among those named (all, if none is) that match the filters.

    A warning names the runs that are left out. Raises BenchError if none is left, or if two
    different runs have one id.
    """
    store = RunsFolder(runs)
    fitting = _named_runs(references, store) if references else _all_runs(store)
    for key, text in filters.items():
        fitting = _with_names(fitting, key, comma_list(text))
    finished = [run for run in fitting if run.record.status == "finished"]
    unfinished = [run.record.run_id for run in fitting if run.record.status != "finished"]
    if unfinished:
        warn(f"left out, not finished: {list_names(dict.fromkeys(unfinished), 5)}")
    if not finished:
        where = "among those named" if references else f"in {store.path}"
        other = runs_of_version(store.path) or "--runs DIR"
        hint = "bench runs" if fitting else f"bench run ..., or another folder: {other}"
        raise BenchError(f"no finished run {where}", hint)
    return with_senders(distinct_runs(finished))


def _with_names(runs: list[Run], key: str, names: Sequence[str]) -> list[Run]:
    """Return the runs that have one of ``names``; all, if no name is given.

    Raises UnknownName for a name that no run has.
    """
    if not names or not runs:
        return runs
    known: set[str] = set()
    chosen = []
    for run in runs:
        own = {getattr(run.record, field) or "none" for field in FIELDS.get(key, (key,))}
        known |= own
        if not own.isdisjoint(names):
            chosen.append(run)
    check_known_names(key, names, known, "among these runs", "bench runs")
    return chosen


def _all_runs(store: RunsFolder) -> list[Run]:
    records, damaged = store.records()
    _warn_of_damaged(damaged)
    return [Run(record, store.folder(record.run_id)) for record in records]


def _named_runs(references: Sequence[str], store: RunsFolder) -> list[Run]:
    runs = []
    damaged: list[BenchError] = []
    for name in references:
        for file in store.record_files(name):
            try:
                runs.append(Run(read_record(file), file.parent))
            except RecordDamaged as error:
                damaged.append(error)
    _warn_of_damaged(damaged)
    return runs


def _warn_of_damaged(problems: Sequence[BenchError]) -> None:
    for problem in problems:
        warn(f"left out, damaged: {problem.message}")


def select_scores(runs: list[Run], filters: Mapping[str, str | None]) -> list[Run]:
    """Return the runs with the scores of these suites, protocols and tasks only.

    Runs without any are left out. Raises UnknownName for a name that no score has.
    """
    if not any(filters.values()):
        return runs
    for key, text in filters.items():
        names = comma_list(text)
        if not names:
            continue
        known: set[str] = set()
        for run in runs:
            for score in run.record.scores:
                known.update(_names_of(score, key))
        check_known_names(key, names, known, "among the scores of these runs", "bench runs")
        runs = [_with_scores_of(run, key, names) for run in runs]
    return [run for run in runs if run.record.scores]


def name_files_by_protocol(
    text: str | None, runs: Sequence[Run]
) -> tuple[str | None, dict[str, Task]]:
    """Return a filter of suites with protocols instead of files, and the tasks of the files by
    protocol.

    A protocol has the hash of a file's content: only scores of the same content fit. Raises
    BenchError if a file cannot be read, or if no run has a score of it.
    """
    if not text:
        return text, {}
    known = {score.protocol for run in runs for score in run.record.scores}
    names: list[str] = []
    tasks: dict[str, Task] = {}
    for part in split_suites(text):
        if not part.startswith(f"{OWN}:"):
            names.append(part)
            continue
        for task in suite(part).tasks:
            if task.protocol not in known:
                raise BenchError(
                    f"no score of these runs is of {part.removeprefix(f'{OWN}:')} as it is now",
                    "the file that was scored, with the same kind and columns; bench runs RUN "
                    "prints the scores of a run",
                )
            tasks[task.protocol] = task
            names.append(task.protocol)
    return ",".join(names), tasks


def _with_scores_of(run: Run, key: str, names: Sequence[str]) -> Run:
    wanted = set(names)
    scores = [score for score in run.record.scores if wanted & _names_of(score, key)]
    return Run(structs.replace(run.record, scores=tuple(scores)), run.folder)


def _names_of(score: Score, key: str) -> set[str]:
    return {getattr(score, field) for field in FIELDS.get(key, (key,))}
