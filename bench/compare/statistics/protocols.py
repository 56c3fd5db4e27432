"""Scores of a record that may be compared with each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.compare.statistics.table import AVERAGE

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score


def by_protocol(record: RunRecord) -> dict[tuple[str, str, str], dict[str, Score]]:
    """Group scores that may be compared: (suite, protocol, text form) -> task -> score.

    Each set in a third tokenisation has its own form ("other-" and a hash), and a set with nothing
    to split has a known one; they belong together, under the name of their average's form.
    """
    groups: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in record.scores:
        groups.setdefault((score.suite, score.protocol, score.text or ""), {})[score.task] = score
    for suite, protocol in {key[:2] for key in groups}:
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
        forms = "\n".join(f"{task} {score.text}" for task, score in sorted(mixed.items()))
        name = mixed[AVERAGE].text if AVERAGE in mixed else None
        groups[
            suite, protocol, name or f"other-{hashlib.sha256(forms.encode()).hexdigest()[:8]}"
        ] = mixed
    return groups


def prediction_hashes(scores: Mapping[str, Score]) -> tuple[tuple[str, str], ...] | None:
    """(task, hash of the predictions) of every task; None if one was not recorded."""
    hashes = [
        (task, score.predictions_sha256)
        for task, score in sorted(scores.items())
        if task != AVERAGE
    ]
    known = tuple((task, sha256) for task, sha256 in hashes if sha256 is not None)
    return known if known and len(known) == len(hashes) else None
