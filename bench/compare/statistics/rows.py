"""Rows: runs that differ in nothing but the seed, and one code of their method.

Two runs differ if the fingerprint says so (:func:`bench.run.planned.determinants`): in a recipe
value, in the content behind a file that a recipe names, in the training text, the backbone's
revision, the precision, the set that chooses checkpoints, or the number of processes if
that matters. Only the code of the method may differ within a row's name: one code is shown, and a
note has the commands that show the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.base.text import list_names
from bench.compare.statistics.terms import DEV_SET, SELECT_ON, Term, terms_of

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score


SENDER = "submitted by"
"""What sets rows apart that others sent in, named even if nothing else has their name."""

CODE = "code of the method"

BEFORE_TRAINING = 0
"""Steps of a start: a run of a method that trains, which ended before the first one."""

Differs = tuple[tuple[str, str], ...]
"""What sets a row apart from rows of the same name: (recipe key or other term, value)."""


@dataclass(frozen=True)
class RowRuns:
    """The runs of one row, by seed."""

    runs: list[RunRecord]
    differs: Differs
    other_code: str = ""
    """The commands that show runs of other code of the method; "" if there is one code only."""
    older: tuple[str, ...] = ()
    """Ids of runs that are left out, because newer ones have their seeds."""


def by_protocol(record: RunRecord) -> dict[tuple[str, str], dict[str, Score]]:
    """Group scores that may be compared: (suite, protocol) -> task -> score."""
    groups: dict[tuple[str, str], dict[str, Score]] = {}
    for score in record.scores:
        groups.setdefault((score.suite, score.protocol), {})[score.task] = score
    return groups


def is_start(record: RunRecord) -> bool:
    """Say if a run of a method that trains ended before its first step."""
    done = record.training
    return record.setting != "none" and done is not None and done.steps == BEFORE_TRAINING


def was_trained(record: RunRecord) -> bool:
    """Say if the run of a method that trains has taken a step, or may have."""
    return record.setting != "none" and not is_start(record)


def group_rows(records: Sequence[RunRecord]) -> list[RowRuns]:
    """Group these runs into rows."""
    named: dict[tuple[str, ...], dict[tuple[tuple[str, str], ...], list[RunRecord]]] = {}
    terms: dict[str, dict[str, Term]] = {}
    for record in records:
        decides = terms[record.run_id] = terms_of(record)
        known = record.provenance.backbone.revision  # the same weights may be in several folders
        backbone = record.backbone_name if known else record.backbone
        name = (record.method, record.variant, record.setting, backbone, str(is_start(record)))
        exact = tuple(sorted((key, term.exact) for key, term in decides.items()))
        named.setdefault(name, {}).setdefault(exact, []).append(record)
    rows = []
    for alike in named.values():
        firsts = [terms[runs[0].run_id] for runs in alike.values()]
        keys = _telling_keys(firsts)
        for runs, first in zip(alike.values(), firsts, strict=True):
            differs = tuple(
                (key, _printed(key, first[key], firsts)) for key in keys if key in first
            )
            rows.append(_choose_code(runs, differs))
    return rows


def values_apart(records: Sequence[RunRecord]) -> dict[str, str]:
    """Return id -> what sets a run apart from others of its method, variant and backbone, apart
    from the seed: "temperature=0.05", "supervised"; no runs without such a thing.
    """
    settings: dict[tuple[str, str, str], set[str]] = {}
    for record in records:
        name = (record.method, record.variant, record.backbone)
        settings.setdefault(name, set()).add(record.setting)
    apart = {}
    for row in group_rows(records):
        first = row.runs[0]
        parts = [f"{key}={value}" for key, value in row.differs if key != SENDER]
        if len(settings[first.method, first.variant, first.backbone]) > 1:
            parts.insert(0, first.setting)
        for run in row.runs if parts else ():
            apart[run.run_id] = list_names(parts, 3)
    return apart


def _telling_keys(firsts: Sequence[Mapping[str, Term]]) -> list[str]:
    """Return the keys that set these rows of one name apart, in alphabetical order."""
    keys = []
    for key in sorted(set().union(*firsts)):
        values = {first[key].exact if key in first else None for first in firsts}
        if key == SENDER or len(values) > 1:
            keys.append(key)
    if DEV_SET in keys and SELECT_ON in keys and not _dev_sets_differ(firsts):
        keys.remove(DEV_SET)  # its name says it already
    return keys


def _dev_sets_differ(firsts: Sequence[Mapping[str, Term]]) -> bool:
    """Return True if one name of a dev set has several contents."""
    contents: dict[str | None, set[str | None]] = {}
    for first in firsts:
        name = first[SELECT_ON].exact if SELECT_ON in first else None
        content = first[DEV_SET].exact if DEV_SET in first else None
        contents.setdefault(name, set()).add(content)
    return any(len(found) > 1 for found in contents.values())


def _printed(key: str, term: Term, firsts: Sequence[Mapping[str, Term]]) -> str:
    for other in firsts:
        if key in other and other[key].shown == term.shown and other[key].exact != term.exact:
            return term.unlike
    return term.shown


def _choose_code(runs: Sequence[RunRecord], differs: Differs) -> RowRuns:
    """Choose one run per seed, all with the newest run's code of the method."""
    newest_first = sorted(runs, key=lambda run: (run.provenance.created, run.run_id), reverse=True)
    by_code: dict[str, list[RunRecord]] = {}
    for run in newest_first:
        by_code.setdefault(run.provenance.plugin.identity, []).append(run)
    shown = newest_first[0].provenance.plugin.identity
    chosen: dict[int | None, RunRecord] = {}
    left_out = []
    for run in by_code.pop(shown):
        if run.seed in chosen:
            left_out.append(run.run_id)
        else:
            chosen[run.seed] = run
    commands = []
    for others in by_code.values():
        commands.append(" ".join(["bench compare", *sorted(run.run_id for run in others)]))
    by_seed = sorted(chosen.values(), key=lambda run: -1 if run.seed is None else run.seed)
    return RowRuns(
        by_seed,
        differs,
        other_code="; ".join(commands),
        older=tuple(sorted(left_out)),
    )
