"""Times and memory of a table: of one kind of hardware and one version of the harness, never of two in one column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.compare.statistics.table import Row, Table
from bench.runs.record import RunRecord

UNKNOWN = "not recorded"
SHOWN = 4  # names of rows that a sentence lists


@dataclass(frozen=True, kw_only=True, order=True)
class CostOf:
    """Hardware and harness that the times and memory of a table are of."""

    device: str  # "cpu: Intel(R) Xeon(R) Processor, 2 cores"
    bench_version: str


@dataclass(frozen=True, kw_only=True)
class Costs:
    """A table whose times and memory may stand side by side, and what is to be said of them."""

    table: Table
    of: CostOf | None  # None: no row recorded any
    comparable: bool  # False: some rows have none here because theirs are of something else
    note: str


def comparable(table: Table, records: Mapping[str, RunRecord]) -> Costs:
    """``table`` with the times and memory of those rows alone that ran where most of them did.

    Trained parameters depend on no machine and stay. Costs of a row whose runs were made in different places are left out.
    """
    made = [_made_in([records[run] for run in row.runs]) for row in table.rows]
    timed = [_is_timed(row) for row in table.rows]
    counts = Counter(place for place, is_timed in zip(made, timed, strict=True) if place is not None and is_timed)
    if not counts:
        return Costs(table=_without(table, timed), of=None, comparable=not any(timed), note=_note(None, _names(table, timed)))
    usual = min(counts, key=lambda place: (-counts[place], place))
    elsewhere = [is_timed and place != usual for place, is_timed in zip(made, timed, strict=True)]
    return Costs(table=_without(table, elsewhere), of=usual, comparable=not any(elsewhere), note=_note(usual, _names(table, elsewhere)))


def made_in(record: RunRecord) -> CostOf:
    """Where a run was made, as far as it was recorded."""
    device = record.cost.device or record.provenance.platform.get("device")
    return CostOf(device=str(device or UNKNOWN), bench_version=record.provenance.bench_version or UNKNOWN)


def _made_in(runs: Sequence[RunRecord]) -> CostOf | None:
    """The one place of all runs of a row; None where there are several, or where one is not known."""
    places = {made_in(run) for run in runs}
    place = next(iter(places))
    return place if len(places) == 1 and UNKNOWN not in (place.device, place.bench_version) else None


def _is_timed(row: Row) -> bool:
    return row.cost is not None and (row.cost.train_seconds is not None or row.cost.peak_memory_bytes is not None)


def _without(table: Table, rows: Sequence[bool]) -> Table:
    made = (
        replace(row, cost=replace(row.cost, train_seconds=None, peak_memory_bytes=None)) if out and row.cost is not None else row
        for row, out in zip(table.rows, rows, strict=True)
    )
    return replace(table, rows=tuple(made))


def _names(table: Table, rows: Sequence[bool]) -> list[str]:
    return list(dict.fromkeys(row.name for row, is_noted in zip(table.rows, rows, strict=True) if is_noted))


def _note(of: CostOf | None, elsewhere: Sequence[str]) -> str:
    listed = ", ".join(elsewhere[:SHOWN]) + (f" and {len(elsewhere) - SHOWN} more" if len(elsewhere) > SHOWN else "")
    if of is None:
        return f"Time and memory are not shown: no record says on what hardware and with which version ({listed})." if elsewhere else ""
    said = f"Time and memory are those of {of.device}, bench {of.bench_version}."
    return said + (f" Not shown, because made elsewhere or with another version: {listed}." if elsewhere else "")
