"""The printed numbers to compare a run with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
    """The printed numbers for this run, the one to compare with first; empty if no table has any.

    ``backbone`` may be a folder or a full name of the hub: its last part counts. ``protocol`` leaves out what was scored by
    another one (without it, the weighted means alone, which are no suite's score); ``recipe`` adds rows whose print names the
    recipe values that the run had. First comes a paper's number of its own method (a mean before a best one, one of a run before
    a rerun by others), or the quotation of it; then reruns by others. Of a checkpoint that authors released and that is scored as
    they do, it is the printed numbers of the model that it is.
    """
    checkpoint = find_checkpoint(backbone)
    candidates = (
        [r for r in results(checkpoint.method, task=task) if released_for(r) == checkpoint]
        if checkpoint is not None and checkpoint.is_scored_by(method, recipe)
        else [
            r
            for r in results(task=task, backbone=Path(backbone).name)
            if _is(r, method, variant, recipe) and (r.setting == setting or setting == "none")
        ]
    )
    printed = [
        r
        for r in candidates
        if SUITES[r.metric] == suite
        and (r.protocol == protocol if protocol else r.protocol != WEIGHTED)
    ]
    return tuple(sorted(printed, key=lambda r: _rank(r, printed)))


def _is(r: ReferenceResult, method: str, variant: str, recipe: Mapping[str, object] | None) -> bool:
    means = meaning(r.method, r.variant, r.setting, r.backbone)
    names = {means.variant, r.variant} if means.holds else {means.variant}
    return (
        (means.method, means.on) == (method, "")
        and variant in names
        and all(
            recipe is not None and key in recipe and _same(recipe[key], value)
            for key, value in {**means.set, **means.holds}.items()
        )
    )


def _same(value: object, text: str) -> bool:
    try:
        return float(str(value)) == float(text)
    except ValueError:
        return str(value).lower() == text.lower()


def _rank(r: ReferenceResult, printed: list[ReferenceResult]) -> tuple[object, ...]:
    """What stands first: what the method's own paper prints, as a mean; among equals, what most papers print."""
    return (
        r.own_result and r.paper != r.method,  # a rerun
        bool(meaning(r.method, r.variant, r.setting).set) or r.variant == "reproduced",
        r.runs.startswith("best"),
        not r.own_result,
        -sum(other.value == r.value for other in printed),
    )
