"""Scores of a record that may be compared with each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.compare.statistics.table import AVERAGE
from bench.score.suites.registry import OWN

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score


def by_protocol(record: RunRecord) -> dict[tuple[str, str, str], dict[str, Score]]:
    """Group scores that may be compared: (suite, protocol, text form) -> task -> score.

    Each set of a third tokenisation has a form of its own ("other-" and a hash), and a set in which
    there was nothing to split a known one; they belong together, under the name of their average's
    form. A user's files do not belong together: each is compared by itself, whatever other files a
    run was scored on.
    """
    groups: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in record.scores:
        groups.setdefault((score.suite, score.protocol, score.text or ""), {})[score.task] = score
    for suite, protocol in {key[:2] for key in groups}:
        if suite == OWN:
            continue
        others = [
            key for key in groups if key[:2] == (suite, protocol) and key[2].startswith("other-")
        ]
        if not others:
            continue
        mixed = {task: score for key in others for task, score in groups.pop(key).items()}
        for key in [
            key for key in groups if key[:2] == (suite, protocol) and AVERAGE not in groups[key]
        ]:
            mixed = groups.pop(key) | mixed
        groups[suite, protocol, _common_form(mixed)] = mixed
    return groups


def _common_form(scores: Mapping[str, Score]) -> str:
    """Name the text form of scores that belong together.

    It is the form of their average, else the one that all have, else a hash of all.
    """
    average = scores.get(AVERAGE)
    of_average = average.text if average is not None else None
    if of_average:
        return of_average
    forms = {score.text or "" for score in scores.values()}
    if len(forms) == 1:
        return forms.pop()
    listed = "\n".join(f"{task} {score.text}" for task, score in sorted(scores.items()))
    return f"other-{hashlib.sha256(listed.encode()).hexdigest()[:8]}"


def prediction_hashes(scores: Mapping[str, Score]) -> tuple[tuple[str, str], ...] | None:
    """Return (task, hash of the predictions) of every task; None if one was not recorded."""
    hashes = [
        (task, score.predictions_sha256)
        for task, score in sorted(scores.items())
        if task != AVERAGE
    ]
    known = tuple((task, sha256) for task, sha256 in hashes if sha256 is not None)
    return known if known and len(known) == len(hashes) else None
