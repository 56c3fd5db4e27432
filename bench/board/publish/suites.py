"""Chooses the suites of a run that are handed over, and says which of them are scored on somebody's
own data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.base.errors import UnknownName
from bench.base.text import list_names
from bench.records.names import data_key
from bench.records.record import AVERAGE, RunRecord
from bench.score.suites import suite_names

OWN = "own"
"""The suite of a user's own files."""
NAMED = 6
"""Own files that a line names."""


def check_suite_names(option: str, names: Iterable[str], records: Sequence[RunRecord]) -> None:
    """Raise UnknownName for a name that is no suite of bench and none of these runs."""
    scored = {score.suite for record in records for score in record.scores}
    known = {*scored, *suite_names()}
    for name in names:
        if name not in known:
            suites = ", ".join(sorted(scored))
            raise UnknownName("suite", name, known, hint=f"{option} SUITE: {suites}")


def keep_suites(record: RunRecord, kept: Collection[str]) -> RunRecord:
    """Return the record with only the scores, data and code of these suites."""
    scored = {score.suite for score in record.scores}
    return leave_out_suites(record, scored.difference(kept))


def leave_out_suites(record: RunRecord, left_out: Collection[str]) -> RunRecord:
    """Return the record without the scores of these suites, the hashes of their data and of their
    code.

    Everything else stays as it was: the command, the costs, the fingerprint.
    """
    scores = tuple(score for score in record.scores if score.suite not in left_out)
    if len(scores) == len(record.scores):
        return record
    kept_data = {data_key(score.task, score.protocol, score.suite) for score in scores}
    all_data = {data_key(score.task, score.protocol, score.suite) for score in record.scores}
    known = record.provenance
    data = {}
    for name, sha256 in known.data.items():
        if name in kept_data or name not in all_data:
            data[name] = sha256
    codes = {
        name: code
        for name, code in known.execution.suites.items()
        if name.partition(" ")[0] not in left_out
    }
    execution = replace(known.execution, suites=codes)
    return replace(record, scores=scores, provenance=replace(known, data=data, execution=execution))


def own_data_lines(records: Iterable[RunRecord]) -> list[str]:
    """Say, a line for each, which suites of these runs make somebody's own gold values public."""
    files: dict[str, None] = {}
    coded: dict[str, str] = {}
    for record in records:
        codes = record.provenance.execution.suites
        for score in record.scores:
            if score.suite == OWN and score.task != AVERAGE:
                files[score.task] = None
            package = codes[score.suite].package if score.suite in codes else None
            if package is not None and package.endswith(".py"):
                coded[score.suite] = Path(package).name
    lines = []
    if files:
        lines.append(
            f"own files ({list_names(files, NAMED)}): their gold values and predictions are "
            f"published, their texts never; --leave-out {OWN} leaves them out"
        )
    for suite, file in coded.items():
        lines.append(
            f"suite {suite} ({file}): its gold values and predictions are published; "
            f"--leave-out {suite} leaves them out"
        )
    return lines
