"""What is new in a version: runs, methods and scores since the version before, and why a score is another one now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.compare.formatting import list_names, score, setting_words
from bench.compare.statistics.table import AVERAGE, configuration, rows_of
from bench.compare.tables import LIBRARIES
from bench.runs.record import RunRecord, Score
from bench.runs.store import FOREIGN, data_key

MOST = 3  # recipe values that are named
UNSET = "null"  # of a value of the recipe that was left out, or that its record did not have
MOST_LINES = (
    20  # rows, names or other changes that are named in words; ``Changes`` itself has them all
)
Key = tuple[tuple[str, str, str, str], str]
"""Of a row: (method, variant, setting, backbone), and everything else but the seed that decides the result."""
CellKey = tuple[str, str, str, str | None]
"""Of a score: (suite, task, protocol, text)."""


@dataclass(frozen=True, kw_only=True)
class RowTask:
    """One task of one row."""

    method: str  # "promcse+eh"; of a changed verdict also what sets its row apart
    setting: str
    backbone: str
    suite: str
    task: str
    protocol: str
    text: str | None


@dataclass(frozen=True, kw_only=True)
class ChangedScore(RowTask):
    """One task of one row (a method as the table shows it, over its seeds) whose mean is another one now."""

    before: float
    after: float
    why: tuple[
        str, ...
    ]  # "3 seeds, 5 now", "code", "data", ...: whatever the records differ in; never empty

    @property
    def is_seen(self) -> bool:
        """Whether the two means are other numbers as they are printed, too."""
        return score(self.before) != score(self.after)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """From one version to the next. Run ids and methods in alphabetical order."""

    before: str  # "v1"
    new_runs: tuple[str, ...] = ()
    removed_runs: tuple[str, ...] = ()
    new_methods: tuple[str, ...] = ()  # "promcse+eh"
    removed_methods: tuple[str, ...] = ()
    scores: tuple[ChangedScore, ...] = ()
    verdicts: tuple[ChangedVerdict, ...] = ()
    same_verdicts: int = 0  # cells of both versions whose verdict is the same
    errata: tuple[str, ...] = ()  # what was found out about the version before, with the day
    others: tuple[
        str, ...
    ] = ()  # whatever else is new, a sentence each: grades, the title, the note, printed numbers
    lines: tuple[
        str, ...
    ] = ()  # all of it in a few short sentences, for a page: plain text, to be escaped

    @property
    def cells(self) -> tuple[ChangedVerdict | ChangedScore, ...]:
        """All that is listed cell by cell."""
        return (*self.verdicts, *self.scores)


def changes_since(
    before: str,
    old: Sequence[RunRecord],
    new: Sequence[RunRecord],
    others: Sequence[str] = (),
    *,
    judged: tuple[Judgements, Judgements] = ({}, {}),
    statistics: tuple[int, int] = (1, 1),
    errata: Sequence[str] = (),
) -> Changes:
    """What ``new``, the runs of a version, have that ``old``, those of version ``before``, had not, and the other way round.

    ``judged``: what the tables of both say; ``statistics``: the version of the statistics behind each.
    """
    rows_before, rows_now = _rows(old), _rows(new)
    replaced = _replaced(rows_before, rows_now)
    pairs = [
        (earlier, runs)
        for key, runs in rows_now.items()
        if (earlier := rows_before.get(replaced.get(key, key))) is not None
    ]
    verdicts, same = changed_verdicts(*judged, statistics)
    ids_before, ids_now = ({record.run_id for record in records} for records in (old, new))
    names_before, names_now = ({record.method_name for record in records} for records in (old, new))
    made = Changes(
        before=before,
        new_runs=tuple(sorted(ids_now - ids_before)),
        removed_runs=tuple(sorted(ids_before - ids_now)),
        new_methods=tuple(sorted(names_now - names_before)),
        removed_methods=tuple(sorted(names_before - names_now)),
        scores=tuple(change for earlier, runs in pairs for change in _changed(earlier, runs)),
        verdicts=tuple(verdicts),
        same_verdicts=same,
        others=(*others, *_other_suites(pairs)),
        errata=tuple(errata),
    )
    return replace(
        made, lines=tuple(_lines(made, {record.run_id: record for record in (*old, *new)}))
    )


# --- rows of two versions, side by side ---


def _rows(records: Iterable[RunRecord]) -> dict[Key, list[RunRecord]]:
    """Runs that differ in nothing but the seed, the newest of each seed, as the tables show them; in alphabetical order."""
    rows: dict[Key, list[RunRecord]] = {}
    for runs, *_ in rows_of(sorted(records, key=lambda record: record.run_id), []):
        first = runs[0]
        name = (first.method, first.variant, first.setting, first.backbone)
        rows[name, json.dumps(configuration(first), sort_keys=True)] = runs
    return dict(sorted(rows.items()))


def _replaced(before: Mapping[Key, object], now: Mapping[Key, object]) -> dict[Key, Key]:
    """A new row -> the one whose place it takes: of the same name, with another recipe, where there is just one of each."""
    gone, come = before.keys() - now.keys(), now.keys() - before.keys()
    pairs = {}
    for key in come:
        same_gone, same_come = (
            [other for other in keys if other[0] == key[0]] for keys in (gone, come)
        )
        if len(same_gone) == len(same_come) == 1:
            pairs[key] = same_gone[0]
    return pairs


def _cells(runs: Iterable[RunRecord]) -> dict[CellKey, dict[int | None, Score]]:
    """Score key -> seed -> score."""
    cells: dict[CellKey, dict[int | None, Score]] = {}
    for record in runs:
        for cell in record.scores:
            cells.setdefault(cell.key, {})[record.seed] = cell
    return cells


def _changed(before: Sequence[RunRecord], now: Sequence[RunRecord]) -> Iterable[ChangedScore]:
    cells_before, first = _cells(before), now[0]
    for key, new in _cells(now).items():
        if (old := cells_before.get(key)) is None:
            continue
        was, is_now = (sum(cell.value for cell in side.values()) / len(side) for side in (old, new))
        if abs(was - is_now) > NOISE:
            why = (
                *_seeds(old, new),
                *_reasons(_moved(before, old, new), _moved(now, old, new), key),
            )
            yield ChangedScore(
                method=first.method_name,
                setting=first.setting,
                backbone=first.backbone,
                suite=key[0],
                task=key[1],
                protocol=key[2],
                text=key[3],
                before=was,
                after=is_now,
                why=why or ("nothing that the records keep",),
            )


def _moved(
    runs: Iterable[RunRecord], old: Mapping[int | None, Score], new: Mapping[int | None, Score]
) -> list[RunRecord]:
    """The runs whose seeds both have, with other values; all, where the two have no seed in common."""
    both = old.keys() & new.keys()
    return [
        run
        for run in runs
        if not both or (run.seed in both and abs(old[run.seed].value - new[run.seed].value) > NOISE)
    ]


def _seeds(old: Mapping[int | None, Score], new: Mapping[int | None, Score]) -> Iterable[str]:
    if len(old) != len(new):
        yield f"seeds: {len(old)} before, {len(new)} now"
    elif old.keys() != new.keys():
        yield f"seeds: {len(new)} others"


def _reasons(before: Sequence[RunRecord], now: Sequence[RunRecord], key: CellKey) -> Iterable[str]:
    """Whatever these runs' records differ in that a score may depend on."""
    if not before or not now:
        return
    yield from _recipe(configuration(before[0]), configuration(now[0]))
    causes: dict[str, Callable[[RunRecord], object]] = {
        "code: the method's": lambda run: run.provenance.plugin.sha256,
        "data: another text form or version of the set": lambda run: _data(run, key),
    }
    for cause, of in causes.items():
        if _set(before, of) != _set(now, of):
            yield cause
    yield from _versions("bench", before, now, lambda run: run.provenance.bench_version)
    for package in (*LIBRARIES, *((key[0],) if key[0] in FOREIGN else ())):
        yield from _versions(
            f"library: {package}",
            before,
            now,
            lambda run, name=package: run.provenance.packages.get(name),
        )
    yield from _versions("hardware:", before, now, lambda run: run.cost.device)


def _set(runs: Iterable[RunRecord], of: Callable[[RunRecord], object]) -> set[str]:
    return {str(of(run)) for run in runs}


def _versions(
    what: str, before: Sequence[RunRecord], now: Sequence[RunRecord], of: Callable[..., object]
) -> Iterable[str]:
    old, new = _set(before, of) - {"None"}, _set(now, of) - {"None"}
    if old and new and old != new:
        yield f"{what} {' and '.join(sorted(old))} before, {' and '.join(sorted(new))} now"


def _recipe(before: Mapping[str, str], now: Mapping[str, str]) -> Iterable[str]:
    changed = sorted(
        key for key in {*before, *now} if before.get(key, UNSET) != now.get(key, UNSET)
    )
    for key in changed[:MOST]:
        was, is_now = (
            "not set" if value == UNSET else value
            for value in (before.get(key, UNSET), now.get(key, UNSET))
        )
        yield f"recipe: {key} {was} before, {is_now} now"
    if len(changed) > MOST:
        yield f"recipe: {len(changed) - MOST} more values"


def _data(run: RunRecord, key: CellKey) -> str:
    """Hash of the set; of an average, of all its sets."""
    suite, task, protocol, text = key
    tasks = [task]
    if task == AVERAGE:
        tasks = [
            cell.task
            for cell in run.scores
            if (cell.suite, cell.protocol, cell.text) == (suite, protocol, text)
            and cell.task != AVERAGE
        ]
    return json.dumps([str(run.provenance.data.get(data_key(name, text, suite))) for name in tasks])


def _other_suites(
    pairs: Iterable[tuple[Sequence[RunRecord], Sequence[RunRecord]]],
) -> Iterable[str]:
    """Suites that rows have now and had not, then the other way round; rows with the same suites in one sentence."""
    more: dict[str, list[str]] = {}
    fewer: dict[str, list[str]] = {}
    for before, now in pairs:
        old, new = ({key[0] for key in _cells(runs)} for runs in (before, now))
        for rows, suites in ((more, new - old), (fewer, old - new)):
            if suites:
                rows.setdefault(", ".join(sorted(suites)), []).append(
                    _row_words(now[0].method_name, now[0].setting, now[0].backbone)
                )
    yield from (f"Scored on {suites} as well: {_list(rows)}." for suites, rows in more.items())
    yield from (f"No scores on {suites} any more: {_list(rows)}." for suites, rows in fewer.items())


# --- in words ---


def _lines(changes: Changes, records: Mapping[str, RunRecord]) -> Iterable[str]:
    yield from changes.errata
    if changes.verdicts:
        n, of = len(changes.verdicts), len(changes.verdicts) + changes.same_verdicts
        by = Counter(verdict.why for verdict in changes.verdicts)
        reasons = "; ".join(
            f"{count} because of {' and '.join(why)}"
            for why, count in sorted(by.items(), key=lambda item: (-item[1], item[0]))
        )
        yield f"{n:,} of {of:,} verdicts changed ({reasons}): tables/changes.csv has each."
    if changes.new_runs:
        yield f"{_count(len(changes.new_runs), 'new run')}: {_by_name(changes.new_runs, records)}."
    if changes.new_methods:
        yield f"New methods: {_list(changes.new_methods)}."
    if changes.removed_runs:
        yield f"{_count(len(changes.removed_runs), 'run')} no longer shown: {_by_name(changes.removed_runs, records)}."
    if changes.removed_methods:
        yield f"Methods no longer shown: {_list(changes.removed_methods)}."
    yield from _score_lines(changes.scores)
    yield from changes.others[:MOST_LINES]
    if len(changes.others) > MOST_LINES:
        yield f"And {len(changes.others) - MOST_LINES} changes more."


def _score_lines(scores: Sequence[ChangedScore]) -> Iterable[str]:
    """A sentence a row and suite with the reasons of its own, after one with those that all have. What moved by less than is printed
    is counted."""
    seen, unseen = (
        [change for change in scores if change.is_seen is is_seen] for is_seen in (True, False)
    )
    rows: dict[tuple[str, str, tuple[str, ...]], list[ChangedScore]] = {}
    for change in seen:
        rows.setdefault(
            (_row_words(change.method, change.setting, change.backbone), change.suite, change.why),
            [],
        ).append(change)
    every = (
        [why for why in scores[0].why if all(why in change.why for change in scores)]
        if len(rows) > 1
        else []
    )
    if every:
        yield f"Every row whose scores changed differs in: {'; '.join(every)}."
    for i, ((row, suite, why), those) in enumerate(rows.items()):
        if i == MOST_LINES:
            yield f"Scores of {_count(len(rows) - i, 'more row')} changed."
            break
        head = next(
            (change for change in those if change.task == AVERAGE),
            max(those, key=lambda one: abs(one.after - one.before)),
        )
        more = f" (and {len(those) - 1} more)" if len(those) > 1 else ""
        own = "; ".join(["", *(reason for reason in why if reason not in every)])
        yield f"{row}: {suite} {head.task}{more} {score(head.before)} before, {score(head.after)} now{own}."
    if unseen:
        names = list(
            dict.fromkeys(
                _row_words(change.method, change.setting, change.backbone) for change in unseen
            )
        )
        yield f"{_count(len(unseen), 'score')} moved by less than 0.01: {_list(names)}."


def _row_words(name: str, setting: str, backbone: str) -> str:
    """ "simcse (unsupervised, builtin)" """
    return f"{name} ({setting_words(setting)}, {backbone})"


def _by_name(run_ids: Iterable[str], records: Mapping[str, RunRecord]) -> str:
    """ "simcse (3), promcse+eh (1)" """
    counts = Counter(records[run_id].method_name for run_id in run_ids)
    return _list([f"{name} ({counts[name]})" for name in sorted(counts)])


def _list(names: Iterable[str]) -> str:
    return list_names(names, MOST_LINES)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


# --- which cells of two versions have another verdict, and whether the scores, the table or the statistics did it ---

NOISE = 1e-6  # points: other libraries of linear algebra add in another order, which is no change


@dataclass(frozen=True, kw_only=True)
class ChangedVerdict(RowTask):
    """One cell of two versions whose verdict against the same baseline is another one now."""

    baseline: str
    before: str  # "better", "worse", "equivalent", "unknown", "not tested"
    after: str
    why: tuple[str, ...]  # never empty


@dataclass(frozen=True)
class Judgement:
    """What a table says of one cell. ``verdict``: None where it was not tested; ``runs``: of its row and of the baseline's."""

    mean: float
    verdict: str | None
    runs: tuple[str, ...]


Judgements = Mapping[tuple[str | None, ...], Judgement]
"""By (setting, backbone, suite, protocol, text, baseline, method as its row is called, task)."""


def judgements(tables: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, ...], Judgement]:
    """Of tables as ``tables.json`` has them, of any version of bench. Raises KeyError, TypeError, AttributeError for anything else."""
    found: dict[tuple[str | None, ...], Judgement] = {}
    for entry in tables:
        table = entry["table"]
        where = tuple(
            table[key] for key in ("setting", "backbone", "suite", "protocol", "text", "baseline")
        )
        base = next(
            (tuple(row["runs"]) for row in table["rows"] if _row_name(row) == table["baseline"]), ()
        )
        for row in table["rows"]:
            for task, cell in row["cells"].items():
                against = (cell or {}).get("against")
                if cell is not None and against is not None:
                    called = " ".join(
                        [
                            _row_name(row),
                            *(f"{key}={value}" for key, value in row["differs"].items()),
                        ]
                    )
                    runs = (*sorted(row["runs"]), *sorted(base))
                    found[*where, called, task] = Judgement(
                        cell["mean"], against.get("verdict"), runs
                    )
    return found


def _row_name(row: Mapping[str, Any]) -> str:
    return f"{row['method']}+{row['variant']}" if row["variant"] else str(row["method"])


def changed_verdicts(
    before: Judgements, now: Judgements, statistics: tuple[int, int]
) -> tuple[list[ChangedVerdict], int]:
    """The cells whose verdict is another one, and how many have the same."""
    changed, same = [], 0
    for key, new in now.items():
        old = before.get(key)
        if old is None:
            continue
        if old.verdict == new.verdict:
            same += 1
            continue
        why = (
            [f"statistics: version {statistics[0]} before, {statistics[1]} now"]
            if statistics[0] != statistics[1]
            else []
        )
        if abs(old.mean - new.mean) > NOISE or old.runs != new.runs:
            why.append("scores: of other runs" if old.runs != new.runs else "scores")
        setting, backbone, suite, protocol, text, baseline, method, task = key
        changed.append(
            ChangedVerdict(
                method=str(method),
                setting=setting or "several",
                backbone=backbone or "several",
                suite=str(suite),
                task=str(task),
                protocol=str(protocol),
                text=text,
                baseline=str(baseline),
                before=old.verdict or "not tested",
                after=new.verdict or "not tested",
                why=tuple(why) or ("other rows of the table, with which it was adjusted",),
            )
        )
    return changed, same
