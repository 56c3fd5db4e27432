"""The changes from one version to the next: for each row and suite its average then and now, and
the differences between its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.base.text import list_names, seed_ranges, with_variant
from bench.compare.statistics.table import FOR_SCALE
from bench.compare.statistics.terms import CORPUS, configuration
from bench.compare.words.finding import NOT_TESTED
from bench.compare.words.names import place_words, short_text
from bench.papers.names import printed_name
from bench.records.names import data_key
from bench.records.record import AVERAGE, RunRecord, ScoreKey

NOISE = 1e-6
"""Points that are no change: another library of linear algebra adds in another order."""
UNSET = "not set"
HASHED = ("code", "data")
"""Facts that are shown as differing, without their values."""


class ChangedRow(NamedTuple):
    """One row of one suite: the suite's average or, if it has none, one of its tasks."""

    # "PromCSE+EH", "SimCSE (wiki_sentences)"
    row: str
    # "unsupervised, builtin"
    where: str
    # with the task: "sts Avg."
    suite: str
    # None if it was absent
    before: float | None
    # None if it is absent
    now: float | None
    # "seeds: 1-3 before, 1-5 now and code"
    differs: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All changes from one version to the next."""

    # "v1"
    before: str
    rows: tuple[ChangedRow, ...] = ()


class _Key(NamedTuple):
    """The row, the place and the score that a mean belongs to."""

    # "promcse+eh"
    row: str
    # "unsupervised, builtin, 1,000 steps"
    where: str
    score: ScoreKey
    # what sets the row apart from others of its name: "wiki_sentences"
    differs: str


class _Mean(NamedTuple):
    """The mean of one row on one score, and its verdict."""

    value: float
    # against the baseline; "" if it was not tested
    verdict: str
    # number of rows of its table
    rows: int
    # run ids of its row
    runs: Sequence[str]


def changes_since(
    before: str,
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    records: Mapping[str, RunRecord],
) -> Changes:
    """Find the rows that are new or have another average or verdict, then those that are gone.

    A row of the same runs is the same row, whatever sets it apart from the others of its table. One
    more table with a row that was there changes nothing, nor does one table less. ``old``: the
    tables of version ``before``, as in ``tables.json``; ``new``: the tables of the next one;
    ``records``: the records of all their runs.
    """
    now = _means(new)
    was = _named_as(now, _means(old))
    runs_before = _scored_runs(was)
    runs_now = _scored_runs(now)
    protocols = {(key.score.suite, key.score.protocol) for key in now | was}
    suites = Counter(suite for suite, _ in protocols)
    changed = []
    for key in now | was:
        row = _changed(key, was.get(key), now.get(key), records)
        if row is None:
            continue
        if key not in was and runs_before.issuperset(_scored_runs({key: now[key]})):
            continue
        if key not in now and runs_now.issuperset(_scored_runs({key: was[key]})):
            continue
        if suites[key.score.suite] > 1:
            row = row._replace(suite=f"{row.suite}, {key.score.protocol}")
        changed.append(row)
    return Changes(before=before, rows=tuple(changed))


def _named_as(now: Mapping[_Key, _Mean], was: Mapping[_Key, _Mean]) -> dict[_Key, _Mean]:
    """Return ``was`` with the keys of ``now`` for rows of the same runs."""
    of_runs = {}
    for key, mean in now.items():
        of_runs[key._replace(differs=""), frozenset(mean.runs)] = key
    named = {}
    others = {}
    for key, mean in was.items():
        same = of_runs.get((key._replace(differs=""), frozenset(mean.runs)))
        if same is None:
            others[key] = mean
        else:
            named[same] = mean
    for key, mean in others.items():
        # another row may have its name now
        free = key if key not in named else key._replace(differs=f"{key.differs} before".strip())
        named[free] = mean
    return named


def _scored_runs(means: Mapping[_Key, _Mean]) -> set[tuple[ScoreKey, str]]:
    """Return each score of each run that is part of these means."""
    found = set()
    for key, mean in means.items():
        found |= {(key.score, run) for run in mean.runs}
    return found


def _means(tables: Sequence[Mapping[str, Any]]) -> dict[_Key, _Mean]:
    """Return the mean of each row on the average of each suite, or on the tasks of one without.

    A row of several tables has the verdict of the first one: that of the main question. An
    untrained start is left out, because it has the name of the row that it belongs to.
    """
    found: dict[_Key, _Mean] = {}
    for table in tables:
        for row in table["rows"]:
            if row.get("stands") == FOR_SCALE and row["setting"] != "none":
                continue
            name = with_variant(row["method"], row["variant"])
            place = place_words(row["setting"], row["backbone"], table.get("budget") or "")
            columns = [AVERAGE] if AVERAGE in table["columns"] else table["columns"]
            for task in columns:
                cell = row["cells"].get(task)
                if not cell:
                    continue
                score = ScoreKey(table["suite"], task, table["protocol"])
                key = _Key(name, place, score, _details(row["differs"]))
                mean = _Mean(cell["mean"], _verdict(cell), len(table["rows"]), row["runs"])
                found.setdefault(key, mean)
    return {key: found[key] for key in sorted(found, key=str)}


def _details(differs: Mapping[str, str]) -> str:
    """Write what sets a row apart as row names do: "temperature 0.1", "wiki_sentences"."""
    words = []
    for key, value in differs.items():
        words.append(short_text(value) if key == CORPUS else f"{key} {value}")
    return ", ".join(words)


def _verdict(cell: Mapping[str, Any]) -> str:
    """Return the verdict against the baseline; "" if there is none."""
    against = cell.get("against") or {}
    return against.get("verdict") or ""


def _changed(
    key: _Key, before: _Mean | None, now: _Mean | None, records: Mapping[str, RunRecord]
) -> ChangedRow | None:
    """Say how a mean changed; None if it did not."""
    score = key.score
    words: list[str] = []
    if before is None:
        words.append("new")
    elif now is None:
        words.append("no longer shown")
    else:
        if abs(before.value - now.value) > NOISE:
            old = [records[run] for run in before.runs]
            new = [records[run] for run in now.runs]
            words += _differences(old, new, score) or ["libraries or hardware"]
        if before.verdict != now.verdict:
            then = f"{before.verdict or NOT_TESTED} among {before.rows} rows"
            since = f"{now.verdict or NOT_TESTED} among {now.rows} rows"
            words.append(f"verdict: {then} before, {since} now")
    if not words:
        return None
    name = printed_name(*key.row.split("+", 1))
    return ChangedRow(
        row=f"{name} ({key.differs})" if key.differs else name,
        where=key.where,
        suite=f"{score.suite} {score.task}",
        before=None if before is None else before.value,
        now=None if now is None else now.value,
        differs=list_names(words, 6),
    )


def _differences(old: Sequence[RunRecord], new: Sequence[RunRecord], key: ScoreKey) -> list[str]:
    """Name the seeds, recipe values, code and data in which the records differ."""
    before = _facts(old, key)
    now = _facts(new, key)
    words = []
    for name in now | before:
        then = before.get(name, UNSET)
        value = now.get(name, UNSET)
        if then == value:
            continue
        words.append(name if name in HASHED else f"{name}: {then} before, {value} now")
    return words


def _facts(runs: Sequence[RunRecord], key: ScoreKey) -> dict[str, str]:
    """Return the seeds, the recipe, and the method's code, hashes of the scored data, by
    name."""
    facts = {"seeds": seed_ranges(run.seed for run in runs) or "any"}
    for name, value in configuration(runs[0]).items():
        if value != "null":
            facts[name] = value
    facts["code"] = str({run.provenance.plugin.identity for run in runs})
    facts["data"] = str(sorted(_data_hashes(runs, key)))
    return facts


def _data_hashes(runs: Sequence[RunRecord], key: ScoreKey) -> set[str]:
    """Return the hashes of the data of every task in the suite and protocol of ``key``."""
    hashes = set()
    for run in runs:
        for score in run.scores:
            if score.key._replace(task=key.task) == key:
                name = data_key(score.task, key.protocol, key.suite)
                hashes.add(str(run.provenance.data.get(name)))
    return hashes
