"""The printed numbers to compare a run with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bench.papers.backbones import printed_names
from bench.papers.checkpoints import find_checkpoint, released_for
from bench.papers.mapping import SUITES, meaning
from bench.papers.printed import README, WEIGHTED, PrintedRow, ReferenceResult, results


@dataclass(frozen=True)
class RunTerms:
    """The terms of a run that decide which printed numbers belong to it.

    ``backbone`` may be a folder or a full name of the hub: its last part counts.
    """

    method: str
    setting: str
    backbone: str
    variant: str = ""
    # recipe key -> value; it adds rows that were printed with these values
    recipe: Mapping[str, object] | None = None


def find_printed(
    run: RunTerms, task: str, *, suite: str, protocol: str | None = None
) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers for a run, the one to compare with first; () if there are none.

    ``protocol`` leaves out the scores of any other protocol; without it, only the weighted means
    are left out, which are no suite's score.

    Order: the paper's own number for its method (mean before best), then copies of it, then reruns
    by others. For a released checkpoint that is scored as its authors score it, they are the
    published numbers of that checkpoint.
    """
    checkpoint = find_checkpoint(run.backbone)
    if checkpoint is not None and checkpoint.is_scored_by(run.method, run.recipe):
        candidates = [
            cell
            for cell in results(checkpoint.method, task=task)
            if released_for(cell) == checkpoint
        ]
    else:
        names = printed_names(run.backbone)
        candidates = []
        for cell in results(task=task):
            if cell.backbone in names and _belongs_to(cell, run):
                candidates.append(cell)
    printed = [
        cell
        for cell in candidates
        if SUITES[cell.metric] == suite and _is_scored_so(cell, protocol)
    ]
    return tuple(sorted(printed, key=lambda cell: _rank(cell, printed)))


def rows_of_run(
    printed: Sequence[PrintedRow], run: RunTerms, changed: Collection[str] = ()
) -> tuple[PrintedRow, ...]:
    """Return the rows of a printed table that a run makes again; () if there are none.

    A run on a backbone that the table lacks replaces the first one that the table has. A released
    checkpoint makes its rows again only if it is scored as its authors score it.
    ``changed``: recipe keys with a value of the run's own. Of rows that differ in recipe values,
    those count that name most of them, and fewest others.
    """
    checkpoint = find_checkpoint(run.backbone)
    if checkpoint is not None and not checkpoint.is_scored_by(run.method, run.recipe):
        return ()
    names = printed_names(run.backbone)
    found: list[PrintedRow] = []
    stands_in: list[PrintedRow] = []
    for row in printed:
        first = row.first
        if checkpoint is not None:
            in_readme = first.table.startswith(README) and checkpoint.is_of(first)
            if released_for(first) == checkpoint or in_readme:
                found.append(row)
        elif _belongs_to(first, run):
            (found if first.backbone in names else stands_in).append(row)
    if not found:
        found = [row for row in stands_in if row.first.backbone == stands_in[0].first.backbone]
    fits = [_names_changed(row, changed) for row in found]
    return tuple(row for row, fit in zip(found, fits, strict=True) if fit == max(fits))


def _names_changed(row: PrintedRow, changed: Collection[str]) -> int:
    """Count the changed values that a printed row names, less the others that it names."""
    first = row.first
    named = meaning(first.method, first.variant, first.setting, first.backbone).set
    return sum(1 if key in changed else -1 for key in named)


def _is_scored_so(cell: ReferenceResult, protocol: str | None) -> bool:
    if protocol:
        return cell.protocol == protocol
    return cell.protocol != WEIGHTED


def _belongs_to(cell: ReferenceResult, run: RunTerms) -> bool:
    """Return True if a printed number belongs to a run's method, setting and recipe."""
    if run.setting not in (cell.setting, "none"):
        return False
    means = meaning(cell.method, cell.variant, cell.setting, cell.backbone)
    if means.method != run.method:
        return False
    names = {means.variant}
    if means.holds:
        names.add(cell.variant)
    if run.variant not in names:
        return False
    for key, value in {**means.set, **means.holds}.items():
        if run.recipe is None or key not in run.recipe or not _equals(run.recipe[key], value):
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
