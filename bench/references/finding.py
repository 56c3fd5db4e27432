"""The printed numbers to compare a run with."""

from __future__ import annotations

from collections.abc import Mapping

from bench.references.backbones import printed_names
from bench.references.checkpoints import find_checkpoint, released_for
from bench.references.mapping import SUITES, meaning
from bench.references.printed import WEIGHTED, ReferenceResult, results


def find_printed(
    method: str,
    task: str,
    *,
    suite: str,
    setting: str,
    backbone: str,
    variant: str = "",
    protocol: str | None = None,
    recipe: Mapping[str, object] | None = None,
) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers for a run, the one to compare with first; () if there are none.

    ``backbone`` may be a folder or a full name of the hub: its last part counts. ``protocol``
    leaves out what was scored by another one (without it, only the weighted means, which are no
    suite's score); ``recipe`` adds rows that were printed with the recipe values of the run.

    Order: the paper's own number for its method (mean before best), then copies of it, then reruns
    by others. For a released checkpoint that is scored as its authors score it, they are the
    published numbers of that checkpoint.
    """
    names = printed_names(backbone)
    checkpoint = find_checkpoint(backbone)
    if checkpoint is not None and checkpoint.is_scored_by(method, recipe):
        candidates = [
            cell
            for cell in results(checkpoint.method, task=task)
            if released_for(cell) == checkpoint
        ]
    else:
        candidates = [
            cell
            for cell in results(task=task)
            if cell.backbone in names
            and setting in (cell.setting, "none")
            and _means(cell, method, variant, recipe)
        ]
    printed = [
        cell
        for cell in candidates
        if SUITES[cell.metric] == suite and _is_scored_so(cell, protocol)
    ]
    return tuple(sorted(printed, key=lambda cell: _rank(cell, printed)))


def _is_scored_so(cell: ReferenceResult, protocol: str | None) -> bool:
    if protocol:
        return cell.protocol == protocol
    return cell.protocol != WEIGHTED


def _means(
    cell: ReferenceResult, method: str, variant: str, recipe: Mapping[str, object] | None
) -> bool:
    """Return True if a printed number belongs to this method, with these values in its recipe."""
    means = meaning(cell.method, cell.variant, cell.setting, cell.backbone)
    if means.method != method or means.on:
        return False
    names = {means.variant}
    if means.holds:
        names.add(cell.variant)
    if variant not in names:
        return False
    for key, value in {**means.set, **means.holds}.items():
        if recipe is None or key not in recipe or not _equals(recipe[key], value):
            return False
    return True


def _equals(value: object, text: str) -> bool:
    try:
        return float(str(value)) == float(text)
    except ValueError:
        return str(value).lower() == text.lower()


def _rank(cell: ReferenceResult, printed: list[ReferenceResult]) -> tuple[object, ...]:
    """Return the key to sort by: the method's own paper first, means first.

    Ties go to the number that most papers report.
    """
    is_rerun = cell.own_result and cell.paper != cell.method
    is_changed = bool(meaning(cell.method, cell.variant, cell.setting).set)
    is_best = cell.runs.startswith("best")
    same = [other for other in printed if other.value == cell.value]
    return (
        is_rerun,
        is_changed or cell.variant == "reproduced",
        is_best,
        not cell.own_result,
        -len(same),
    )
