"""A printed table with our runs beside it, as ``bench compare --paper`` shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError
from bench.base.text import list_names, seed_ranges
from bench.compare.printed import Beside, Reproduced, changed_by_hand, judge_rows
from bench.papers import (
    PaperPart,
    PrintedRow,
    RunTerms,
    find_checkpoint,
    printed_names,
    results,
    rows,
    rows_of_run,
)
from bench.records.record import RunRecord, is_given_by_user
from bench.records.run import Run


@dataclass(frozen=True)
class RowBeside:
    """A printed row, and our runs that make it again; () if there are none."""

    row: PrintedRow
    cells: Sequence[Reproduced]
    records: Sequence[RunRecord]
    # why our runs are not meant to give its values; "" if they are
    why_not: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether our runs have a score for any of its values."""
        return any(cell.mean is not None for cell in self.cells)

    @property
    def ours(self) -> str:
        """Our runs in words: "promcse on builtin, seeds 42-44"; "" without any."""
        if not self.records:
            return ""
        first = self.records[0]
        seeds = seed_ranges(one.seed for one in self.records if one.seed is not None)
        text = f"{first.method_name} on {first.backbone_name}"
        return f"{text}, seeds {seeds}" if seeds else text


def rows_beside(part: PaperPart, runs: Sequence[Run]) -> list[RowBeside]:
    """Return each row of a printed table with our finished runs of it.

    Of several recipes the one with most seeds counts. Raises BenchError if the part prints no
    scores, or if no run makes a row of it again.
    """
    printed = rows(results(paper=part.paper, table=part.short))
    if not printed:
        raise BenchError(
            f"--paper {part.name}: it shows {part.shows}, and has no score",
            f"bench papers {part.name}",
        )
    beside = beside_rows(printed, _by_recipe(runs))
    if not any(row.is_scored for row in beside):
        methods = list_names(dict.fromkeys(run.record.method for run in runs), most=10)
        raise BenchError(
            f"--paper {part.name}: none of these runs has a score for a row of it; they are of "
            f"{methods}",
            f"bench run --paper {part.name} --dry-run",
        )
    return beside


def beside_rows(
    printed: Sequence[PrintedRow], groups: Iterable[Sequence[RunRecord]]
) -> list[RowBeside]:
    """Return each printed row with our runs of it. ``groups``: runs that differ only in the seed;
    of several groups the one of most seeds counts, and the first of equals."""
    ours: dict[PrintedRow, Sequence[RunRecord]] = {}
    for records in groups:
        first = records[0]
        recipe = {key: value.value for key, value in first.recipe.items()}
        terms = RunTerms(first.method, first.setting, first.backbone, first.variant, recipe)
        changed = {key for key, value in first.recipe.items() if is_given_by_user(value.source)}
        for row in rows_of_run(printed, terms, changed):
            if len(records) > len(ours.get(row, ())):
                ours[row] = records
    pairs = []
    for row in printed:
        records = ours.get(row, ())
        pairs.append(Beside(row.cells, records, _not_meant(records[0], row) if records else ""))
    return [
        RowBeside(row, cells, pair.records, pair.why_not)
        for row, cells, pair in zip(printed, judge_rows(pairs), pairs, strict=True)
    ]


def _by_recipe(runs: Sequence[Run]) -> list[list[RunRecord]]:
    """Return the records of finished runs, those together that differ only in the seed."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        if run.record.status == "finished":
            groups.setdefault(_recipe_key(run.record), []).append(run.record)
    return list(groups.values())


def _recipe_key(record: RunRecord) -> str:
    """Return what runs that differ only in the seed share."""
    values = {key: value.value for key, value in record.recipe.items()}
    place = (record.method, record.variant, record.setting, record.backbone)
    return json.dumps([place, values], sort_keys=True, default=str)


def _not_meant(record: RunRecord, row: PrintedRow) -> str:
    """Say why our run is not meant to give a printed row; "" if it is."""
    first = row.first
    if find_checkpoint(record.backbone) is not None:
        return "" if first.repeats == 1 else f"one released checkpoint; published is {first.runs}"
    if first.backbone not in printed_names(record.backbone):
        return f"{record.backbone_name} stands in for {first.backbone}"
    return changed_by_hand(record, first)
