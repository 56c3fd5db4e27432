"""The tasks that runs are scored on, with their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.errors import DataMissing
from bench.data.sets import DataFolder, NotFetchedYet
from bench.score.suites import KnownTask, Task, expand_suites, suite, survey


@dataclass(frozen=True)
class ScoredTasks:
    """The tasks that score the runs of a config.

    Tasks with data that is fetched later come last and are not in ``data``.
    """

    tasks: tuple[Task, ...]
    data: tuple[KnownTask, ...]
    missing: tuple[DataMissing, ...]


def find_scored_tasks(suites: Sequence[str], data: DataFolder) -> ScoredTasks:
    """Return every task of these suites with its data, and the sets that are missing.

    A plan that is only shown has its tasks in any case. Raises DataMissing if no set is here.
    """
    there: list[tuple[Task, KnownTask]] = []
    later: list[Task] = []
    lost: list[Task] = []
    missing: dict[str, DataMissing] = {}  # by message: two tasks may have one set
    for task in (task for name in expand_suites(suites) for task in suite(name).tasks):
        try:
            there.append((task, survey(task, data)))
        except DataMissing as error:
            missing[error.message] = error
            lost.append(task)
        except NotFetchedYet:
            later.append(task)
    if not there and not later:
        if not data.only_looks:
            raise _all_missing(list(missing.values()))
        later = lost
    return ScoredTasks(
        (*(task for task, _ in there), *later),
        tuple(known for _, known in there),
        tuple(missing.values()),
    )


def scored_sentences_of(suites: Sequence[str], data: DataFolder) -> list[str]:
    """Return the distinct sentences that scoring these suites encodes.

    Raises DataMissing if a set is not here.
    """
    scored = find_scored_tasks(suites, data)
    if scored.missing:
        raise _all_missing(scored.missing)
    return list(dict.fromkeys(sentence for task in scored.data for sentence in task.task.sentences))


def _all_missing(missing: Sequence[DataMissing]) -> DataMissing:
    """Return one line for all of them, with the command that fetches them, if there is one."""
    first, others = missing[0], len(missing) - 1
    names = " ".join(dict.fromkeys(error.name for error in missing if error.name))
    more = ""
    if others == 1:
        more = "; nor is one other set"
    elif others:
        more = f"; nor are {others} other sets"
    return DataMissing(
        first.message + more,
        (first.hint or "").replace(f"data fetch {first.name}", f"data fetch {names}"),
    )
