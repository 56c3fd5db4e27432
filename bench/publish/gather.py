"""Which runs a version has: those of a runs folder, those that others sent in, those of the last version; and what is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.base.errors import BenchError, RecordDamaged, UnknownName
from bench.board.board import GRADES, PublishedRun
from bench.board.names import search_file
from bench.runs.predictions import Run
from bench.runs.record import RunRecord
from bench.runs.searches import Search, read_search, read_search_file, search_of
from bench.runs.store import RECORD, RunsFolder

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.publish.versions import Version
    from bench.verify.submit import SubmittedRun

T = TypeVar("T")
Made = TypeVar("Made")
_PLACE = re.compile(r"(?:^|[\s='\"])(?:/|~/|[A-Za-z]:[\\/])(?=\w)")
LONGEST = 200  # characters of an error that are told
MOST_BESIDE = 2  # own runs that are left out because all fails with them, although each of them alone does not


@dataclass
class Gathered:
    """Runs of a version, and one line for each that is none."""

    runs: tuple[PublishedRun, ...] = ()
    left_out: list[str] = field(
        default_factory=list
    )  # for the page: runs that failed or cannot be published
    refused: tuple[str, ...] = ()  # for the publisher alone: submissions that were not taken

    @property
    def told_of_here(self) -> tuple[str, ...]:
        """Runs whose command names a folder of the publisher's machine: a record is published as it is."""
        return tuple(
            run.record.run_id
            for run in self.runs
            if _PLACE.search(run.record.provenance.command or "")
        )


def gather(
    runs: Path | None,
    aside: Path,
    *,
    submissions: Path | None = None,
    last: Version | None = None,
    data: DataFolder | None = None,
) -> Gathered:
    """All finished runs in the folder ``runs``, with their grades.

    ``submissions``: also those sent in, whose files are unpacked in ``aside``. ``last``: also the runs of that version that are not
    in the folder. Raises BenchError where there are none at all, or where a folder cannot be read.
    """
    from bench.board.grades import grade_runs

    store, gathered = RunsFolder(runs), Gathered()
    own = _own(store, gathered)
    here = {record.run_id for record, _ in own}
    kept = {
        run.record.run_id: run
        for run in (last.published() if last is not None else ())
        if run.record.run_id not in here
    }
    own += [(run.record, run.folder) for run in kept.values() if run.submitted_by is None]
    taken = None
    if submissions is not None:
        from bench.verify.submit import collect

        taken = collect(submissions, aside, own, data, store.path)
        gathered.refused = taken.refused

    def grade(runs: Sequence[Run | SubmittedRun]) -> tuple[PublishedRun, ...]:
        sent = tuple(run for run in runs if not isinstance(run, tuple))
        return grade_runs(
            [run for run in runs if isinstance(run, tuple)], taken and replace(taken, runs=sent)
        )

    def leave(run: Run | SubmittedRun, error: Exception) -> None:
        record, folder = run if isinstance(run, tuple) else (run.record, run.folder)
        gathered.left_out.append(
            left_out(record.run_id, "cannot be graded", error_words(error), folder)
        )

    every: list[Run | SubmittedRun] = [*own, *(() if taken is None else taken.runs)]
    made = all_but_failing(every, grade, leave, lambda run: not isinstance(run, tuple))
    gathered.runs = tuple(_stronger(run, kept.get(run.record.run_id)) for run in made)
    have = {run.record.run_id for run in made}
    gathered.runs += tuple(run for run_id, run in kept.items() if run_id not in have)
    if not gathered.runs:
        raise BenchError(
            f"no finished run in {store.path}", "bench run ..., or another folder: --runs DIR"
        )
    return gathered


def all_but_failing(
    items: Sequence[T],
    make: Callable[[Sequence[T]], Made],
    leave: Callable[[T, Exception], None],
    is_sent: Callable[[T], bool],
) -> Made:
    """``make`` of the items, without those with which it raises anything but a BenchError: a record that somebody made up stops nobody.

    ``leave`` is told of each item that is left out. First those with which alone it fails; where there are none, the one after which all
    before it fail. Raises what ``make`` raised where it fails with each, or beside the others with more than ``MOST_BESIDE`` own ones: then
    it is no item's fault. Of those that others sent (``is_sent``), which come last, any number is left out. A BenchError is raised as it
    is, with what was left out before.
    """
    beside, left = 0, list[Exception]()
    while True:
        try:
            return make(items)
        except BenchError as error:
            if not left:
                raise
            words = "; ".join(dict.fromkeys(map(error_words, left)))
            raise BenchError(
                f"{error.message} ({len(left)} left out before: {words})", error.hint
            ) from None
        except Exception as error:
            failing = {
                i: why
                for i, item in enumerate(items)
                if (why := _failure(make, [item])) is not None
            }
            if len(failing) == len(items):
                raise
            if not failing:
                failing = {(first := _first_failing(items, make)): error}
                beside += not is_sent(items[first])
                if beside > MOST_BESIDE:
                    raise
            for i, why in failing.items():
                leave(items[i], why)
                left.append(why)
            items = [item for i, item in enumerate(items) if i not in failing]


def _failure(make: Callable[[Sequence[T]], object], items: Sequence[T]) -> Exception | None:
    try:
        make(items)
    except BenchError:
        return None
    except Exception as error:
        return error
    return None


def _first_failing(items: Sequence[T], make: Callable[[Sequence[T]], object]) -> int:
    """By halves: the items before it work together, those up to it do not."""
    works, fails = 0, len(items)
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (
            (works, middle) if _failure(make, items[:middle]) is not None else (middle, fails)
        )
    return fails - 1


def error_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def searches(
    runs: Sequence[PublishedRun], store: RunsFolder, last: Version | None
) -> tuple[tuple[Search, ...], tuple[str, ...]]:
    """(the searches that found recipe values of own runs, the names of those that are not there or say otherwise than these runs).

    A search is read from its folder, or from the last version, which may hold it.
    """
    named: dict[str, list[RunRecord]] = {}
    for run in runs:
        name = search_of(run.record).get("name")
        if run.submitted_by is None and isinstance(name, str):
            named.setdefault(name, []).append(run.record)
    found = {name: _search(name, store, last) for name in sorted(named)}
    there = {
        name: search
        for name, search in found.items()
        if search is not None and all(search.of(record) for record in named[name])
    }
    return tuple(there.values()), tuple(name for name in found if name not in there)


def _search(name: str, store: RunsFolder, last: Version | None) -> Search | None:
    if Path(name).name != name or name.startswith("."):  # a record may hold anything
        return None
    try:
        here = read_search(store.path / name)
        return (
            read_search_file(last.folder / search_file(name, "json"))
            if here is None and last is not None
            else here
        )
    except (BenchError, ValueError):  # ValueError: no name of a file
        return None


def _stronger(run: PublishedRun, before: PublishedRun | None) -> PublishedRun:
    """A run that was checked for an earlier version has been checked: what that needed is no part of a version. Another run of its name,
    whoever sent it, has not."""
    same = before is not None and (run.record, run.submitted_by) == (
        before.record,
        before.submitted_by,
    )
    if before is None or not same or GRADES.index(run.grade) > GRADES.index(before.grade):
        return run
    return replace(run, grade=before.grade, reason=before.reason)


def _own(store: RunsFolder, gathered: Gathered) -> list[Run]:
    """The runs of the folder that may be published; the others are told of in ``gathered``."""
    own: list[Run] = []
    for run_id in store.ids():
        try:
            record = store.read(run_id)
        except RecordDamaged as error:
            gathered.left_out.append(
                left_out(run_id, "damaged", error.message, store.folder(run_id))
            )
        except UnknownName:  # removed since it was listed
            continue
        else:
            if record.status == "finished" and record.scores:
                own.append((record, store.folder(run_id)))
            else:
                why = "it has no scores" if record.status == "finished" else record.status
                gathered.left_out.append(
                    left_out(run_id, why, record.error or "", store.folder(run_id))
                )
    return own


def left_out(run_id: str, what: str, why: str, folder: Path) -> str:
    """ "simcse-builtin-s42-1a2b3c4d: failed: out of memory", on one line and without the publisher's own folders."""
    text = " ".join(
        why.replace(f"{folder / RECORD}: ", "")
        .replace(f"{folder}/", "")
        .replace(str(folder), "its folder")
        .split()
    )
    return f"{run_id}: {what}" + (f": {text[:LONGEST]}" if text else "")
