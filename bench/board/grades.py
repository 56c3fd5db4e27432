"""How far a run was checked here, and why it has that grade."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import variance
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bench.board.board import GRADES, OWN, PublishedRun
from bench.compare.statistics.column import quantile_of
from bench.compare.statistics.seed_variance import Lender, lenders
from bench.compare.statistics.table import AVERAGE, DECIMALS, SENDER
from bench.runs.predictions import Run
from bench.runs.record import RecipeValue, RunRecord, Score
from bench.verify.attestation import Attestation, attestation
from bench.verify.scores import close

if TYPE_CHECKING:
    from bench.verify.submit import Submissions, SubmittedRun


WORDS: Mapping[str, str] = {
    "printed": "A number that a paper printed. Nobody computed it here; it is never ranked among runs.",
    "submitted": "Its sender's word. Record and predictions are published, and every score follows from the predictions (bench verify). "
    "Nobody here made the predictions again, so the run stands in a table of its own, where nothing is ranked.",
    "own": "The keeper's word: the run was made by whoever keeps this board. Every score follows from the published predictions.",
    "checkpoint": "The predictions were made again here, from the checkpoint: the same came out.",
    "retrained": "The run was trained again here from its recipe, with the same seed or another, and every score of it lies within "
    "what one more training gives, by the variance over seeds: an honest repetition does so 95 times in 100. Of a run that was sent in, "
    "the predictions were also made again from the checkpoint.",
}
"""Every grade from the weakest to the strongest, as pages explain it: first of all whose word it is. Runs have those of ``GRADES``."""


def grade_runs(
    own: Sequence[Run], submissions: Submissions | None = None
) -> tuple[PublishedRun, ...]:
    """The runs of a board with their grades: first the own ones in their order, then those that were submitted.

    Nothing is encoded or trained here: a checkpoint counts where ``bench verify --retrain-free`` left its word, and a retraining
    where it is among the own runs. No submission raises the grade of another run, neither an own one nor another sender's.
    """
    trained: dict[str, dict[str, Training]] = {}  # recipe -> run id -> scores
    for record, _ in own:
        if record.training is not None:
            trained.setdefault(same_recipe(record), {})[record.run_id] = training(record)
    lent = seed_variances(list(group.values()) for group in trained.values())
    mine = [_own(run, trained.get(same_recipe(run[0]), {}), lent) for run in own]
    sent = submissions.runs if submissions is not None else ()
    return (
        *mine,
        *(_submitted(run, trained.get(same_recipe(run.record), {}), lent) for run in sent),
    )


def separate_record(run: PublishedRun) -> RunRecord:
    """The record as tables group it: one that was submitted never shares a row with the board's own runs, nor with another sender's,
    nor one that was checked here with one that was not.

    Otherwise a newer run of the same seed would stand for an own one, and a forged one would move its mean.
    """
    if run.submitted_by is None:
        return run.record
    words = run.submitted_by if run.checked else f"{run.submitted_by}, not checked here"
    sender = RecipeValue(value=words, source="the submission's file")
    return replace(run.record, recipe={**run.record.recipe, SENDER: sender})


def weakest(grades: Iterable[str]) -> str:
    """The grade of a row that several runs stand for. Raises ValueError where there is none."""
    return min(grades, key=GRADES.index)


def _own(run: Run, alike: Mapping[str, Training], lent: Lent) -> PublishedRun:
    record, folder = run
    again = trained_again(
        training(record),
        [other for run_id, other in alike.items() if run_id != record.run_id],
        lent,
    )
    grade, why = _grade(
        OWN,
        attestation(folder),
        again,
        f"it was run by whoever publishes this board{_unknown_model(record)}",
    )
    return PublishedRun(record=record, folder=folder, grade=grade, reason=why)


def _submitted(run: SubmittedRun, alike: Mapping[str, Training], lent: Lent) -> PublishedRun:
    again = trained_again(training(run.record), list(alike.values()), lent)
    grade, why = _grade("submitted", run.attested, again, run.words() + _unknown_model(run.record))
    return PublishedRun(
        record=run.record, folder=run.folder, grade=grade, submitted_by=run.sender, reason=why
    )


def _unknown_model(record: RunRecord) -> str:
    """What is said of a model that was an object, vectors or a server: nobody can encode again, so that no stronger grade is possible."""
    about = record.provenance.backbone.model
    if about.get("known", True):
        return ""
    what = {"vectors": "vectors that were given", "server": "a server"}.get(
        str(about.get("kind")), "an object of its maker's process"
    )
    return f"; nothing is known of the model, {what}, beyond its predictions"


def _grade(
    least: str, attested: Attestation | None, again: Repeated | None, otherwise: str
) -> tuple[str, str]:
    """The strongest grade that holds, and why; a retraining that raised no grade is told, too.

    A run that was sent in is *retrained* only where it is *checkpoint*: whoever knows our trainings can make up scores that lie
    between them, at the upper end.
    """
    within = again is not None and again.within
    told = (
        []
        if again is None
        else [
            f"trained again here with {again.seeds}{':' if within else ', but'} this run's {again.words()}"
        ]
    )
    encoded = [] if attested is None else [attested.words()]
    if within and (encoded or least == OWN):
        return "retrained", "; ".join(told + encoded)
    return ("checkpoint" if encoded else least), "; ".join((encoded or [otherwise]) + told)


# --- was a run trained again, and did the same come out? Told from the records alone ---
# Every task that was scored is compared, suite by suite, with other trainings of the same recipe: the interval is that of one more
# training, from the variance over seeds that all recipes of the board lend each other (``bench.compare.statistics.seed_variance``). Items are
# fixed: each training was asked the same. Of 100 honest repetitions 95 at least hold: the averages of the suites share an error of 4 in
# 100, the single tasks 1 in 100, by Bonferroni.

MANY = 6  # seeds that are named one by one
HEADS, SINGLE = (
    0.04,
    0.01,
)  # how often an honest repetition may fail by an average; by a single task
MOST = (
    3.0  # points: where half of every average's interval is wider, nothing is said of a repetition
)
LEAST = 5  # units of the last printed place by which a value may always differ: other hardware rounds otherwise
CONTINUOUS = (
    "spearman",
    "spearman-bootstrap",
)  # of cosines, which two trainings never have in common to the last digit
Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Within:
    """One score of a run, and the interval of one more training of the same recipe; None where nobody else has that score."""

    suite: str
    task: str  # "Avg.", or a task
    value: float
    low: float | None
    high: float | None
    decimals: int = 2

    @property
    def holds(self) -> bool:
        return (
            self.low is not None and self.high is not None and self.low <= self.value <= self.high
        )

    def words(self) -> str:
        d = self.decimals
        what = f"{self.suite} {self.task} {self.value:.{d}f}"
        if self.low is None or self.high is None:
            return f"{what} was not scored again"
        return f"{what} lies {'within' if self.holds else 'outside'} {self.low:.{d}f} to {self.high:.{d}f}"


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A run beside other trainings from its recipe. ``seeds`` of those, in words; ``found`` is never empty: averages first."""

    seeds: str
    found: tuple[Within, ...]
    unknown: str = ""  # why these trainings cannot tell

    @property
    def within(self) -> bool:
        return not self.unknown and all(score.holds for score in self.found)

    def words(self) -> str:
        """What lies outside; or else the averages, which lie within."""
        if self.unknown:
            return self.unknown
        outside = [score for score in self.found if not score.holds]
        shown = (
            outside[:MANY]
            or [score for score in self.found if score.task == AVERAGE]
            or self.found[:1]
        )
        more = f" and {len(outside) - MANY} more" if len(outside) > MANY else ""
        rest = (
            f"; all {len(self.found)} scores do"
            if not outside and len(self.found) > len(shown)
            else ""
        )
        return ", ".join(score.words() for score in shown) + more + rest


def same_recipe(record: RunRecord) -> str:
    """A text that two runs share where they are two trainings of one thing: the same but for the seed and the machine.

    The code of the method may have changed between them: a recipe that only one version of the code can follow was not repeated.
    """
    determines = record.provenance.determines or {}
    places = determines.get("places")
    contents = places if isinstance(places, dict) else {}
    recipe = {key: value.value for key, value in record.recipe.items() if key not in contents}
    parts = (
        record.method,
        record.variant,
        record.setting,
        record.backbone,
        record.provenance.backbone.revision,
        record.provenance.corpus.sha256,
        recipe,
        contents,
        determines.get("precision"),
        determines.get("ranks"),
    )
    return json.dumps(parts, sort_keys=True, default=str)


@dataclass(frozen=True)
class Training:
    """What one training scored."""

    seed: int | None
    scores: Mapping[Key, Score]

    def is_copy_of(self, other: Training) -> bool:
        """Whether it is no training of its own: two trainings never give the same cosines, nor rank all pairs alike.

        Equal scores count like equal predictions: a forger leaves out the hashes, or stretches the cosines.
        """
        both = [
            key
            for key, score in self.scores.items()
            if key in other.scores and score.task != AVERAGE
        ]
        same = [key for key in both if _same(self.scores[key], other.scores[key])]
        return any(self.scores[key].metric in CONTINUOUS for key in same) or (
            bool(both) and len(same) == len(both)
        )


def _same(score: Score, other: Score) -> bool:
    hashes = score.predictions_sha256, other.predictions_sha256
    return (None not in hashes and hashes[0] == hashes[1]) or close(score.value, other.value)


def training(record: RunRecord) -> Training:
    return Training(record.seed, {(*score.key, score.metric): score for score in record.scores})


Lent = Mapping[Key, Lender]


def seed_variances(groups: Iterable[Sequence[Training]]) -> Lent:
    """What the recipes of a board say together of the variance over seeds. ``groups``: the trainings of each recipe."""
    spreads: dict[
        object, dict[Key, list[tuple[float, int]]]
    ] = {}  # suite -> score -> (variance, degrees of freedom) of each recipe
    for group in groups:
        values: dict[Key, list[float]] = {}
        for run in group:
            for key, score in run.scores.items():
                values.setdefault(key, []).append(score.value)
        for key, of_seeds in values.items():
            if len(of_seeds) > 1:
                spreads.setdefault(key[0], {}).setdefault(key, []).append(
                    (variance(of_seeds), len(of_seeds) - 1)
                )
    lent: dict[Key, Lender] = {}
    for of_suite in (
        spreads.values()
    ):  # how alike recipes are is another thing for correlations than for clusters
        lent |= lenders(of_suite)
    return lent


def trained_again(run: Training, others: Sequence[Training], lent: Lent) -> Repeated | None:
    """A run beside ``others``, trainings from its recipe; None where there are none, or none but copies of it, or nothing is scored.

    ``others`` do not hold the run itself. A score that no other has speaks against a repetition: nobody made it again.
    """
    others = [other for other in others if not run.is_copy_of(other)]
    if (
        not others
        or not run.scores
        or not any(key in other.scores for other in others for key in run.scores)
    ):
        return None
    averaged = {score.suite for score in run.scores.values() if score.task == AVERAGE}
    heads = {
        key
        for key, score in run.scores.items()
        if score.task == AVERAGE or score.suite not in averaged
    }
    found, narrowest = [], math.inf
    for key, score in sorted(run.scores.items(), key=lambda item: item[0] not in heads):
        alpha = HEADS / len(heads) if key in heads else SINGLE / (len(run.scores) - len(heads))
        values = [other.scores[key].value for other in others if key in other.scores]
        half = _half(values, lent.get(key), alpha) if values else None
        decimals = DECIMALS.get(score.metric, 2)
        if key in heads and half is not None:
            narrowest = min(half * 10.0 ** (decimals - 2), narrowest)
        low = high = None
        if values:
            mean, room = math.fsum(values) / len(values), (half or 0.0) + LEAST * 10.0**-decimals
            low, high = mean - room, mean + room
        found.append(
            Within(
                suite=score.suite,
                task=score.task,
                value=score.value,
                low=low,
                high=high,
                decimals=decimals,
            )
        )
    return Repeated(
        seeds=_seeds([other.seed for other in others]),
        found=tuple(found),
        unknown=_unknown(narrowest),
    )


def _unknown(narrowest: float) -> str:
    if math.isinf(narrowest):
        return "scores cannot be judged: no recipe here was trained with two seeds, so nothing says how far seeds vary"
    if narrowest > MOST:
        return f"scores cannot be judged: what is known of seeds leaves ±{narrowest:.1f} points; more seeds tell"
    return ""


def _half(values: Sequence[float], lender: Lender | None, alpha: float) -> float | None:
    """Half of the interval of one more training beside these; None where nothing is known of seeds."""
    own = len(values) - 1
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / own if own else 0.0
    spread, freedom = lender.posterior(spread, own) if lender is not None else (spread, float(own))
    if not freedom:
        return None
    return quantile_of(1 - alpha / 2, freedom) * math.sqrt(spread * (1 + 1 / len(values)))


def _seeds(seeds: Sequence[int | None]) -> str:
    """ "seed 1", "seeds 1, 2" or, of many, "12 seeds"."""
    known = sorted({seed for seed in seeds if seed is not None})
    if not known:
        return "no seed"
    if len(known) > MANY:
        return f"{len(known)} seeds"
    return f"seed{'s' * (len(known) > 1)} {', '.join(map(str, known))}"
