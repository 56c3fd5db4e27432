"""Was a run trained again, and did the same come out? Told from the records alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.runs.record import RunRecord, Score
from bench.statistics.from_counts import half_width, standard_error
from bench.statistics.grouping import AVERAGE

MANY = 6  # seeds that are named one by one


@dataclass(frozen=True, kw_only=True)
class Within:
    """One average of a run, and the interval of other trainings of the same recipe."""

    suite: str
    task: str  # "Avg.", or the only task of its suite
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.value <= self.high

    def words(self) -> str:
        return f"{self.suite} {self.task} {self.value:.2f} lies {'within' if self.holds else 'outside'} {self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A run beside other trainings from its recipe. ``seeds`` of those, in words; ``found`` is never empty."""

    seeds: str
    found: tuple[Within, ...]

    @property
    def within(self) -> bool:
        return all(one.holds for one in self.found)

    def words(self) -> str:
        """What lies outside, or else what lies within."""
        return ", ".join(one.words() for one in self.found if one.holds is self.within)


def same_recipe(record: RunRecord) -> str:
    """A text that two runs share where they are two trainings of one thing: the same but for the seed and the machine.

    The code of the method may have changed between them: a recipe that only one version of the code can follow was not repeated.
    """
    corpus, backbone = record.provenance.corpus or {}, record.provenance.backbone or {}
    determines = record.provenance.determines or {}
    places = determines.get("places")
    contents = places if isinstance(places, dict) else {}
    recipe = {key: one.value for key, one in record.recipe.items() if key not in contents}
    parts = (record.method, record.variant, record.setting, record.backbone, backbone.get("revision"), corpus.get("sha256"), recipe,
             contents, determines.get("precision"), determines.get("ranks"))  # fmt: skip
    return json.dumps(parts, sort_keys=True, default=str)


@dataclass(frozen=True)
class Training:
    """A run's averages, each with half of its 95 % interval over items (None: not known)."""

    seed: int | None
    averages: Mapping[tuple[object, ...], tuple[Score, float | None]]


def training(record: RunRecord) -> Training:
    """The average of each suite, and every task of a suite that has none."""
    averaged = {score.suite for score in record.scores if score.task == AVERAGE}
    heads = [score for score in record.scores if score.task == AVERAGE or score.suite not in averaged]
    return Training(record.seed, {(*score.key, score.metric): (score, _half(record, score)) for score in heads})


def trained_again(run: Training, others: Sequence[Training]) -> Repeated | None:
    """A run beside the mean of ``others``, trainings from its recipe; None where they share no average.

    The interval is that of the others over items (``bench.statistics.from_counts``), however many they are. The same items were scored
    each time, so an honest repetition lies in it more often than 95 times in 100.
    """
    found = tuple(one for key, (score, _) in run.averages.items() if (one := _beside(key, score, others)) is not None)
    if not found:
        return None
    return Repeated(seeds=_seeds([one.seed for one in others]), found=found)


def _seeds(seeds: Sequence[int | None]) -> str:
    """ "seed 1", "seeds 1, 2" or, of many, "12 seeds"."""
    known = sorted({seed for seed in seeds if seed is not None})
    if not known:
        return "no seed"
    return f"seed{'s' * (len(known) > 1)} {', '.join(map(str, known))}" if len(known) <= MANY else f"{len(known)} seeds"


def _beside(key: tuple[object, ...], score: Score, others: Sequence[Training]) -> Within | None:
    having = [one.averages[key] for one in others if key in one.averages]
    halves = [half for _, half in having if half is not None]
    if not halves or len(halves) < len(having):
        return None
    mean = math.fsum(same.value for same, _ in having) / len(having)
    half = max(halves)  # the same items each time: more trainings do not make them more
    return Within(suite=score.suite, task=score.task, value=score.value, low=mean - half, high=mean + half)


def _half(record: RunRecord, score: Score) -> float | None:
    """Half of a score's 95 % interval over items; of an average from those of its tasks."""
    parts = [score]
    if score.task == AVERAGE:
        named = score.detail.get("tasks")
        tasks, mixed = named if isinstance(named, list) else [], (score.text or "").startswith("other-")
        parts = [
            one for one in record.scores
            if one.task in tasks and (one.suite, one.protocol) == (score.suite, score.protocol) and (mixed or one.text == score.text)
        ]  # fmt: skip
    errors = [standard_error(one.metric, one.value, one.n) for one in parts]
    known = [error for error in errors if error is not None]
    return half_width(known) if known and len(known) == len(errors) else None
