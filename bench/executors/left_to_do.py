"""What is left to do for a run: what its record lacks of what is asked for, and what of it is no longer there as it was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.encoding import VectorStore
from bench.errors import RunFailed
from bench.method import Reporter
from bench.plan import PlannedRun
from bench.runs import RunRecord, Score
from bench.runs.intact import checkpoint_problem, prediction_problems
from bench.runs.store import data_key
from bench.suites import AskingTask

if TYPE_CHECKING:
    from bench.suites import Task
    from bench.suites.known import KnownTask

VECTORS = "vectors"  # in the run's folder: of every sentence that was encoded; may be deleted


@dataclass(frozen=True)
class LeftToDo:
    """``repaired``: of the tasks that are to be scored, the scores whose predictions were lost, as they are recorded."""

    tasks: tuple[KnownTask, ...] = ()
    repaired: tuple[Score, ...] = ()
    weights: bool = False  # to be trained, or only saved where nothing is trained
    lost: RunFailed | None = None  # why a checkpoint that was trained cannot be used: only training makes it again

    @property
    def nothing(self) -> bool:
        return not self.tasks and not self.weights and self.lost is None


def left_to_do(run: PlannedRun, record: RunRecord | None, folder: Path, reporter: Reporter) -> LeftToDo:
    """Compares the record and the run's folder with what is asked for; ``reporter`` is told what was found damaged."""
    if record is None:
        return LeftToDo(run.known, weights=True)
    broken = prediction_problems(record, folder)
    pairs = list(zip(run.tasks, run.known, strict=True))
    asked = {(task.suite, task.name, task.protocol, one.form): one for task, one in pairs}
    scored = {(task.suite, task.name, task.protocol, one.form) for task, one in pairs if is_scored(record, task, one)}
    again_too = [key for key in broken if key in scored]
    if again_too:
        reporter.note(f"predictions are made again: {', '.join(f'{_name(key)} ({broken[key]})' for key in again_too)}")
    others = [key for key in broken if key not in asked]
    if others:
        suites = ",".join(dict.fromkeys(key[0] for key in others))
        reporter.note(f"predictions of what is not asked for now are damaged: {', '.join(map(_name, others))} (--suite {suites})")
    tasks = tuple(one for key, one in asked.items() if key not in scored or key in broken)
    repaired = tuple(score for score in record.scores if score.key in again_too)
    if run.corpus is not None and record.training is None:
        return LeftToDo(tasks, repaired, weights=True)
    problem = checkpoint_problem(record, folder)
    if problem is not None and run.corpus is None:
        reporter.note(f"{problem}: made again, for nothing was trained")
        return LeftToDo(tasks, repaired, weights=True)
    if problem is not None:
        hint = "the same command with --fresh trains it again and scores the new weights"
        kept = "; the recorded scores stay as they are" if record.scores else ""
        return LeftToDo(tasks, repaired, lost=RunFailed(problem + kept, hint))
    return LeftToDo(tasks, repaired)


def is_scored(record: RunRecord, task: Task, known: KnownTask) -> bool:
    """Whether the record has the task's score under this protocol, of this very data."""
    if record.score(task.suite, task.name, task.protocol, known.form) is None:
        return False
    return record.provenance.data.get(data_key(task.name, known.form, task.suite)) == known.sha256


def can_do_without_model(run: PlannedRun, tasks: Sequence[KnownTask], folder: Path) -> bool:
    """Whether there is something to score, and every vector that it needs is stored."""
    if not tasks:
        return False
    vectors = VectorStore(folder / VECTORS, run.fingerprint[:16])
    return not any(isinstance(one.task, AskingTask) or vectors.missing(one.task.sentences) for one in tasks)


def changed(record: RunRecord, before: Sequence[Score]) -> list[tuple[Score, Score]]:
    """(as it is recorded now, as it was) of the scores that are not the same any more."""
    now = {score.key: score for score in record.scores}
    return [(now[was.key], was) for was in before if was.key in now and now[was.key].value != was.value]


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
