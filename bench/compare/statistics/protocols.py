"""Scores of a record that may be compared with each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.compare.statistics.table import AVERAGE

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score


def by_protocol(record: RunRecord) -> dict[tuple[str, str], dict[str, Score]]:
    """Group scores that may be compared: (suite, protocol) -> task -> score."""
    groups: dict[tuple[str, str], dict[str, Score]] = {}
    for score in record.scores:
        groups.setdefault((score.suite, score.protocol), {})[score.task] = score
    return groups


def prediction_hashes(scores: Mapping[str, Score]) -> tuple[tuple[str, str], ...] | None:
    """Return (task, hash of the predictions) of every task; None if one was not recorded."""
    hashes = [
        (task, score.predictions_sha256)
        for task, score in sorted(scores.items())
        if task != AVERAGE
    ]
    known = tuple((task, sha256) for task, sha256 in hashes if sha256 is not None)
    return known if known and len(known) == len(hashes) else None
