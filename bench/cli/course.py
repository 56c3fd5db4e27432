"""How far the runs of one command are, and what is left of them as far as what was measured tells."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Work:
    """What a planned run would do. ``steps`` of the optimiser, None where a clock or tokens end it; ``size``: how much a step is, in
    rows times columns; ``scores`` on the dev set while it trains."""

    steps: int | None = 0
    size: int = 1
    scores: int = 0


class Course:
    """Told of what happens by a reporter. All times in seconds."""

    def __init__(self) -> None:
        self.works: Sequence[Work] = ()
        self.number = 0  # of the run, from 1
        self.began = self.mark = time.monotonic()  # of the command; of the stretch of time that is not counted yet
        self.train_seconds, self.train_size = 0.0, 0  # of all runs, for the pace
        self.dev_seconds, self.dev_count = 0.0, 0
        self.others: list[float] = []  # what else a run took that is done: loading, encoding, scoring
        self._new_run()

    def _new_run(self) -> None:
        self.name, self.done = "", 0  # of the phase
        self.total: int | None = None
        self.in_dev, self.dev_done = False, 0
        self.dev_total: int | None = None
        self.first: tuple[float, int] | None = None  # when the phase's first advance came, and how far it was
        self.fields: dict[str, Any] = {}
        self.scores_done = 0  # dev scores of this run
        self.other_seconds, self.worked = 0.0, False  # loading, encoding, scoring; was anything to do

    # what happens

    def start(self, number: int | None) -> None:
        self._count()
        self._new_run()
        self.number = self.number if number is None else number

    def phase(self, name: str, total: int | None) -> None:
        self._count()
        self.worked = True
        if name == "dev":
            self.in_dev, self.dev_done, self.dev_total = True, 0, None
        elif self.in_dev and name == self.name:  # back from the dev score to the training
            self.in_dev, self.total = False, total or self.total
            self.dev_count, self.scores_done = self.dev_count + 1, self.scores_done + 1
        else:
            self.name, self.done, self.total, self.in_dev, self.first = name, 0, total, False, None
            self.fields = {key: value for key, value in self.fields.items() if key in ("best", "best_step")}

    def advance(self, done: int, fields: dict[str, Any]) -> None:
        if self.in_dev:
            self.dev_done, self.dev_total = done, fields.get("total", self.dev_total)
            return
        now = self._count(counts=self.first is not None)
        if self.first is None:
            self.first = (now, done)
        elif self.name == "train":
            self.train_size += max(0, done - self.done) * self.work().size
        self.done, self.total = done, fields.get("total") or self.total
        self.fields |= {key: value for key, value in fields.items() if key != "total"}

    def finish(self) -> None:
        self._count()
        if self.worked:
            self.others.append(self.other_seconds)
        self.worked = False

    def _count(self, counts: bool = True) -> float:
        """The time since the last event, for what was going on; a training's first step counts as no pace."""
        now = time.monotonic()
        spent, self.mark = now - self.mark, now
        if self.in_dev:
            self.dev_seconds += spent
        elif self.name == "train" and counts:
            self.train_seconds += spent
        else:
            self.other_seconds += spent
        return now

    def work(self) -> Work:
        return self.works[self.number - 1] if 0 < self.number <= len(self.works) else Work()

    # what is left

    def phase_left(self) -> float | None:
        """Of the phase, at its own pace; of a training with the dev scores that are due. None where that is not known."""
        done, total = self.done, self.total
        if not total or done >= total:
            return None
        if self.name == "train":
            return self._training(self.work(), total - done, self.scores_done)
        pace = self.pace()
        return None if pace is None else (total - done) * pace

    def pace(self) -> float | None:
        """Seconds for one of what the phase counts, since its first advance. None where that tells nothing yet."""
        first, last, done = self.first, self.mark, self.done
        return (last - first[0]) / (done - first[1]) if first is not None and done > first[1] and last > first[0] else None

    def _training(self, work: Work, steps: int, scored: int) -> float | None:
        if not self.train_size:
            return None
        due = max(0, work.scores - scored)
        each = self.dev_seconds / self.dev_count if self.dev_count else 0.0
        return steps * work.size * self.train_seconds / self.train_size + due * each

    def plan_left(self) -> tuple[float, bool] | None:
        """Of all runs, and whether that is all: until a first run is done, nobody knows what scoring takes. None: not known."""
        if not self.works or not self.number:
            return None
        here: float | None = 0.0
        if self.name == "train":
            here = self.phase_left() if self.total and self.done < self.total else 0.0
        elif self.name in ("", "load", "tokenise") and self.work().steps != 0:
            steps = self.work().steps
            here = None if steps is None else self._training(self.work(), steps, 0)
        elif not self.others:
            here = self.phase_left()
        left = [here]
        for work in self.works[self.number :]:
            left.append(None if work.steps is None else self._training(work, work.steps, 0) if work.steps else 0.0)
        if any(one is None for one in left):
            return None
        usual = sum(self.others) / len(self.others) if self.others else 0.0
        rest = max(0.0, usual - self.other_seconds) + usual * len(self.works[self.number :])
        return sum(one for one in left if one is not None) + rest, bool(self.others)


def duration(seconds: float) -> str:
    """ "40 s", "16 min", "2.5 h" """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
