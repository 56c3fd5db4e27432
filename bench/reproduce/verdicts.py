"""Ours beside the print, cell by cell: mean and interval of our runs, difference, and what that says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import BenchError
from bench.references import ReferenceResult
from bench.references.audit import remarks
from bench.references.ours import SUITES
from bench.references.rows import AVERAGE
from bench.reproduce.wanted import WantedRun
from bench.statistics.table import DECIMALS

if TYPE_CHECKING:
    from bench.runs import RunRecord, Score
    from bench.statistics.intervals import Interval

Run = tuple["RunRecord", Path]
"""A record, and the folder of its run."""

UNKNOWN = "unknown"  # the protocol of a print that nobody published
VERDICTS = {
    "agrees": "the printed value lies in our interval",
    "lower": "our whole interval is below the printed value",
    "higher": "our whole interval is above the printed value",
    "no interval": "scored, but nothing to tell the spread from",
    "not comparable": "other conditions than the paper's",
    "not scored": "no run of ours has this cell",
}


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """One printed cell and what became of it. Differences are ours less the print."""

    printed: ReferenceResult
    mean: float | None = None  # over seeds
    low: float | None = None
    high: float | None = None
    covers: str | None = None  # "items and seeds", "items", "seeds"
    difference: float | None = None
    verdict: str  # a key of VERDICTS
    seeds: tuple[int | None, ...] = ()
    runs: tuple[str, ...] = ()
    protocol: str | None = None  # of ours
    text: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def decimals(self) -> int:
        return DECIMALS.get(self.printed.metric, 2)


def reproduced(run: WantedRun, ours: Sequence[Run], text: str, *, draws: int = 10_000) -> list[Reproduced]:
    """Every printed cell of a run's rows, in their order. ``ours``: its finished runs, one per seed, possibly none."""
    cells = [cell for row in run.rows for cell in row.cells]
    return [_cell(cell, run, ours, text, draws) for cell in cells]


def _cell(cell: ReferenceResult, run: WantedRun, ours: Sequence[Run], text: str, draws: int) -> Reproduced:
    having = [(one, score) for one in ours if (score := score_of(one[0], cell, text)) is not None]
    notes = tuple(remark.text for remark in remarks(cell) if remark.kind not in ("differs", "same", "copied"))
    if not having:
        return Reproduced(printed=cell, verdict="not scored", notes=notes)
    mean = math.fsum(score.value for _, score in having) / len(having)
    found, why = _interval(having, draws)
    places = DECIMALS.get(cell.metric, 2)
    return Reproduced(
        printed=cell, mean=mean, low=found.low if found else None, high=found.high if found else None,
        covers=found.covers if found else None, difference=round(round(mean, places) - cell.value, places),
        verdict=verdict(cell.value, found, run.comparable and cell.protocol != UNKNOWN, places), seeds=tuple(one[0].seed for one, _ in having),
        runs=tuple(one[0].run_id for one, _ in having), protocol=having[0][1].protocol, text=having[0][1].text,
        notes=notes + ((why,) if why else ()),
    )  # fmt: skip


def verdict(value: float, found: Interval | None, comparable: bool, decimals: int = 2) -> str:
    """One of VERDICTS. A printed value stands for everything that is rounded to it."""
    if not comparable:
        return "not comparable"
    if found is None:
        return "no interval"
    half = 0.5 * 10.0**-decimals
    return "lower" if found.high < value - half else "higher" if found.low > value + half else "agrees"


def score_of(record: RunRecord, cell: ReferenceResult, text: str) -> Score | None:
    """Our score of a printed cell: of its protocol (of any, where the paper's is not known), in the text form asked for.

    Where the print depends on no form (``text`` is empty), whatever form was scored.
    """
    protocol = None if cell.protocol == UNKNOWN else cell.protocol
    fitting = [
        s for s in record.scores if (s.suite, s.task) == (SUITES[cell.metric], cell.task) and protocol in (None, s.protocol)
    ]
    of_form = [s for s in fitting if text == "any" or s.text in (text, None)]
    return next(iter(of_form or (fitting if not cell.text else [])), None)


def _interval(having: Sequence[tuple[Run, Score]], draws: int) -> tuple[Interval | None, str]:
    """The 95 % interval of the mean, from the stored predictions; or None, and why."""
    from bench.runs.predictions import predicted
    from bench.statistics.intervals import interval_average, interval_over_seeds

    runs, first = [run for run, _ in having], having[0][1]
    tasks = _parts(first) if first.task == AVERAGE else [first.task]
    try:
        keys = [_key(runs[0][0], first, task) for task in tasks]
        return interval_average([predicted(runs, key) for key in keys]), ""
    except (BenchError, ValueError) as error:
        values = [score.value for _, score in having]
        why = f"no interval from predictions: {error}"
        return (interval_over_seeds(values), why) if len(set(values)) > 1 else (None, why)


def _parts(average: Score) -> list[str]:
    from bench.suites import suite

    named = average.detail.get("tasks")
    return [str(task) for task in named] if isinstance(named, list) else list(suite(average.suite).average or ())


def _key(record: RunRecord, like: Score, task: str) -> tuple[str, str, str, str | None]:
    """The key of a task's score beside another score of the suite: an average's parts may have a text form each."""
    for score in record.scores:
        if (score.suite, score.task, score.protocol) == (like.suite, task, like.protocol) and (
            like.task == AVERAGE or score.text == like.text
        ):
            return score.key
    raise BenchError(f"{record.run_id} has no score of {task}")
