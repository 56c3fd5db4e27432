"""How far a run was checked here, and why it has that grade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.publish.board import GRADES, PublishedRun
from bench.publish.repeated import Lent, Repeated, Training, same_recipe, seed_variances, trained_again, training
from bench.runs.predictions import Run
from bench.runs.record import RecipeValue, RunRecord
from bench.statistics.grouping import SENDER
from bench.verify.attest import Attestation, attestation

if TYPE_CHECKING:
    from bench.submit import Submissions, SubmittedRun

WORDS: Mapping[str, str] = {
    "printed": "A number that a paper printed. Nobody computed it here; it is never ranked among runs.",
    "submitted": "Record and predictions are published, and every score follows from the predictions (bench verify). That these "
    "predictions are the model's is its sender's word.",
    "checkpoint": "The predictions were made again here, from the checkpoint: the same came out.",
    "retrained": "The run was trained again here from its recipe, with the same seed or another, and every score of it lies within "
    "what one more training gives, by the variance over seeds: an honest repetition does so 95 times in 100.",
}
"""Every grade from the weakest to the strongest, as pages explain it. Runs have those of ``GRADES``."""


def graded(own: Sequence[Run], submissions: Submissions | None = None) -> tuple[PublishedRun, ...]:
    """The runs of a board with their grades: first the own ones in their order, then those that were submitted.

    Nothing is encoded or trained here: a checkpoint counts where ``bench verify --retrain-free`` left its word beside the run, and
    a retraining where it is among the own runs. Own runs are held to the same rules: their grade says what was done, not who did it.
    """
    trained: dict[str, dict[str, Training]] = {}  # recipe -> run id -> scores
    for record, _ in own:
        if record.training is not None:
            trained.setdefault(same_recipe(record), {})[record.run_id] = training(record)
    again = {one.record.run_id: one for one in submissions.again} if submissions is not None else {}
    lent = seed_variances(list(group.values()) for group in trained.values())
    mine = [_own(run, trained.get(same_recipe(run[0]), {}), again.get(run[0].run_id), lent) for run in own]
    theirs = [
        _submitted(one, trained.get(same_recipe(one.record), {}), lent)
        for one in (submissions.runs if submissions is not None else ())
    ]
    return (*mine, *theirs)


def apart(run: PublishedRun) -> RunRecord:
    """The record as tables group it: one that was submitted never shares a row with the board's own runs, nor with another sender's.

    Otherwise a newer run of the same seed would stand for an own one, and a forged one would move its mean.
    """
    if run.submitted_by is None:
        return run.record
    sender = RecipeValue(value=run.submitted_by, source="the submission's file")
    return replace(run.record, recipe={**run.record.recipe, SENDER: sender})


def weakest(grades: Iterable[str]) -> str:
    """The grade of a row that several runs stand for. Raises ValueError where there is none."""
    return min(grades, key=GRADES.index)


def _own(run: Run, alike: Mapping[str, Training], again: SubmittedRun | None, lent: Lent) -> PublishedRun:
    record, folder = run
    this = training(record)
    if (
        again is not None
        and (theirs := trained_again(training(again.record), list(alike.values()) or [this], lent)) is not None
        and theirs.within
    ):
        why = f"trained here and by {again.sender} from the same recipe: {again.sender}'s {theirs.words()}"
        return PublishedRun(record=record, folder=folder, grade="retrained", reason=why)
    found = trained_again(this, [one for run_id, one in alike.items() if run_id != record.run_id], lent)
    grade, why = _grade(attestation(folder), found, "it was run by whoever publishes this board")
    return PublishedRun(record=record, folder=folder, grade=grade, reason=why)


def _submitted(one: SubmittedRun, alike: Mapping[str, Training], lent: Lent) -> PublishedRun:
    grade, why = _grade(one.attested, trained_again(training(one.record), list(alike.values()), lent), one.words())
    return PublishedRun(record=one.record, folder=one.folder, grade=grade, submitted_by=one.sender, reason=why)


def _grade(attested: Attestation | None, again: Repeated | None, otherwise: str) -> tuple[str, str]:
    """The strongest grade that holds, and why; a retraining that did not agree is told, too."""
    if again is not None and again.within:
        return "retrained", f"trained again here with {again.seeds}: this run's {again.words()}"
    outside = f"; trained again here with {again.seeds}, but this run's {again.words()}" if again is not None else ""
    if attested is not None:
        return "checkpoint", attested.words() + outside
    return "submitted", otherwise + outside
