"""What changed since the version before: one line per row and suite, its average before and now, and what its runs differ in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.compare.formatting import setting_words
from bench.compare.statistics.table import AVERAGE, configuration, rows_of
from bench.runs.record import RunRecord, Score, ScoreKey
from bench.runs.store import data_key

NOISE = 1e-6  # points; another library of linear algebra adds in another order
MOST = 3  # recipe values that are named
UNSET = "null"  # a recipe value that was left out
Key = tuple[str, ...]
"""Of a row: method, variant, setting, backbone, and as JSON everything else but the seed that decides the result."""


@dataclass(frozen=True, kw_only=True)
class ChangedRow:
    """One row of one suite: a suite's average or, where it has none, one of its tasks. ``before``, ``now``: None where it was not there."""

    method: str  # "promcse+eh"
    setting: str
    backbone: str
    suite: str
    task: str
    protocol: str
    text: str | None
    before: float | None
    now: float | None
    differs: str  # "seeds: 3 before, 5 now; code"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """From one version to the next."""

    before: str  # "v1"
    rows: tuple[ChangedRow, ...] = ()


def changes_since(before: str, old: Sequence[RunRecord], new: Sequence[RunRecord]) -> Changes:
    """The rows of ``new``, the runs of a version, that are new or have another average than in ``old``, the runs of version ``before``;
    then those that are gone."""
    rows_before, rows_now = _rows(old), _rows(new)
    replaced = _replaced(rows_before, rows_now)
    gone = [key for key in rows_before if key not in rows_now and key not in replaced.values()]
    changed = [
        row
        for key, runs in rows_now.items()
        for row in _changed(rows_before.get(replaced.get(key, key), ()), runs)
    ]
    changed += [row for key in gone for row in _changed(rows_before[key], ())]
    return Changes(before=before, rows=tuple(changed))


def _rows(records: Iterable[RunRecord]) -> dict[Key, list[RunRecord]]:
    """Runs that differ in nothing but the seed, the newest of each seed, as the tables show them; in alphabetical order."""
    rows: dict[Key, list[RunRecord]] = {}
    for runs, *_ in rows_of(sorted(records, key=lambda record: record.run_id), []):
        first = runs[0]
        name = (first.method, first.variant, first.setting, first.backbone)
        rows[*name, json.dumps(configuration(first), sort_keys=True)] = runs
    return dict(sorted(rows.items()))


def _replaced(before: Mapping[Key, object], now: Mapping[Key, object]) -> dict[Key, Key]:
    """New row -> the row that it replaces: the same name with another recipe, where there is just one of each."""
    gone, come = before.keys() - now.keys(), now.keys() - before.keys()
    pairs = {}
    for key in come:
        same = [[other for other in keys if other[:4] == key[:4]] for keys in (gone, come)]
        if len(same[0]) == len(same[1]) == 1:
            pairs[key] = same[0][0]
    return pairs


def _changed(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> Iterator[ChangedRow]:
    cells_before, cells_now = _heads(old), _heads(new)
    first = (new or old)[0]
    for key in dict.fromkeys((*cells_now, *cells_before)):
        was, now = (_mean(cells.get(key)) for cells in (cells_before, cells_now))
        if was is not None and now is not None and abs(was - now) <= NOISE:
            continue
        if was is None or now is None:
            differs = "new" if was is None else "no longer shown"
        else:
            differs = "; ".join(_reasons(old, new, key)) or "libraries or hardware"
        yield ChangedRow(
            method=first.method_name,
            setting=setting_words(first.setting),
            backbone=first.backbone_name,
            suite=key.suite,
            task=key.task,
            protocol=key.protocol,
            text=key.text,
            before=was,
            now=now,
            differs=differs,
        )


def _heads(runs: Iterable[RunRecord]) -> dict[ScoreKey, list[Score]]:
    """The scores of each suite's average over the runs; of a suite without one, those of each task."""
    heads: dict[ScoreKey, list[Score]] = {}
    for record in runs:
        averaged = {score.suite for score in record.scores if score.task == AVERAGE}
        for score in record.scores:
            if score.task == AVERAGE or score.suite not in averaged:
                heads.setdefault(score.key, []).append(score)
    return heads


def _mean(scores: Sequence[Score] | None) -> float | None:
    return sum(score.value for score in scores) / len(scores) if scores else None


def _reasons(before: Sequence[RunRecord], now: Sequence[RunRecord], key: ScoreKey) -> Iterator[str]:
    """Seeds, recipe, code and data, as far as the records differ in them."""
    seeds = [{run.seed for run in runs} for runs in (before, now)]
    if seeds[0] != seeds[1]:
        same = len(seeds[0]) == len(seeds[1])
        yield "other seeds" if same else f"seeds: {len(seeds[0])} before, {len(seeds[1])} now"
    yield from _recipe(configuration(before[0]), configuration(now[0]))
    causes: dict[str, Callable[[RunRecord], object]] = {
        "code": lambda run: run.provenance.plugin.sha256,
        "data": lambda run: [
            run.provenance.data.get(data_key(score.task, key.text, key.suite))
            for score in run.scores
            if (score.suite, score.protocol, score.text) == (key.suite, key.protocol, key.text)
        ],
    }
    for cause, of in causes.items():
        if {str(of(run)) for run in before} != {str(of(run)) for run in now}:
            yield cause


def _recipe(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    keys = sorted(key for key in {*before, *now} if before.get(key, UNSET) != now.get(key, UNSET))
    for key in keys[:MOST]:
        was, is_now = (side.get(key, UNSET).replace(UNSET, "not set") for side in (before, now))
        yield f"recipe: {key} {was} before, {is_now} now"
    if len(keys) > MOST:
        yield f"recipe: {len(keys) - MOST} more values"
