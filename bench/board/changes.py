"""What changed since the version before: one line per row and suite, its average before and now, and what its runs differ in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from bench.base.text import list_names, seed_ranges
from bench.compare.formatting import setting_words
from bench.compare.statistics.table import AVERAGE, configuration, rows_of
from bench.runs.record import RunRecord, ScoreKey
from bench.runs.store import data_key

NOISE = 1e-6  # points; another library of linear algebra adds in another order
UNSET = "not set"
HASHED = ("code", "data")  # of which a reader is told that they differ, not how


class ChangedRow(NamedTuple):
    """One row of one suite: a suite's average or, where it has none, one of its tasks. ``before``, ``now``: None where it was not there."""

    row: str  # "promcse+eh"
    where: str  # "unsupervised, builtin"
    suite: str  # with the task: "sts Avg."
    before: float | None
    now: float | None
    differs: str  # "seeds: 1-3 before, 1-5 now and code"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """From one version to the next."""

    before: str  # "v1"
    rows: tuple[ChangedRow, ...] = ()


def changes_since(before: str, old: Sequence[RunRecord], new: Sequence[RunRecord]) -> Changes:
    """The rows of ``new``, the runs of a version, that are new or have another average than in ``old``, the runs of version ``before``;
    then those that are gone."""
    was, now = _rows(old), _rows(new)
    rows = [row for name in now | was for row in _changed(was.get(name, []), now.get(name, []))]
    return Changes(before=before, rows=tuple(rows))


def _rows(records: Sequence[RunRecord]) -> dict[tuple[object, ...], list[RunRecord]]:
    """Name of a row, with what sets it apart from others of its name -> its runs, in alphabetical order."""
    rows = {
        (runs[0].method_name, runs[0].setting, runs[0].backbone_name, differs): runs
        for runs, differs, _ in rows_of(sorted(records, key=lambda record: record.run_id), [])
    }
    return dict(sorted(rows.items()))


def _changed(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> Iterator[ChangedRow]:
    means_before, means_now, first = _means(old), _means(new), (new or old)[0]
    where = f"{setting_words(first.setting)}, {first.backbone_name}"
    for key in means_now | means_before:
        before, now = means_before.get(key), means_now.get(key)
        if before is None or now is None:
            differs = "new" if before is None else "no longer shown"
        elif abs(before - now) <= NOISE:
            continue
        else:
            differs = list_names(_differences(old, new, key), 6) or "libraries or hardware"
        yield ChangedRow(first.method_name, where, f"{key.suite} {key.task}", before, now, differs)


def _means(runs: Sequence[RunRecord]) -> dict[ScoreKey, float]:
    """The average of each suite over the runs; of a suite without one, that of each task."""
    values: dict[ScoreKey, list[float]] = {}
    for record in runs:
        averaged = {score.suite for score in record.scores if score.task == AVERAGE}
        for score in record.scores:
            if score.task == AVERAGE or score.suite not in averaged:
                values.setdefault(score.key, []).append(score.value)
    return {key: fmean(each) for key, each in values.items()}


def _differences(old: Sequence[RunRecord], new: Sequence[RunRecord], key: ScoreKey) -> list[str]:
    """Seeds, recipe values, code and data, as far as the records differ in them."""
    before, now = _facts(old, key), _facts(new, key)
    pairs = {name: (before.get(name, UNSET), now.get(name, UNSET)) for name in now | before}
    return [
        name if name in HASHED else f"{name}: {then} before, {value} now"
        for name, (then, value) in pairs.items()
        if then != value
    ]


def _facts(runs: Sequence[RunRecord], key: ScoreKey) -> dict[str, str]:
    """What runs of a row had, by name: their seeds, the recipe, and hashes of the method's code and of the scored data."""
    data = {
        run.provenance.data.get(data_key(score.task, key.text, key.suite))
        for run in runs
        for score in run.scores
        if score.key._replace(task=key.task) == key
    }
    return {
        "seeds": seed_ranges(run.seed for run in runs) or "any",
        **{name: value for name, value in configuration(runs[0]).items() if value != "null"},
        "code": str({run.provenance.plugin.sha256 for run in runs}),
        "data": str(sorted(map(str, data))),
    }
