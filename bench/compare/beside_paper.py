"""A printed table with our runs beside it, as ``bench compare --paper`` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError
from bench.base.text import list_names, seed_ranges
from bench.compare.printed import Beside, Reproduced, changed_by_hand, judge_rows
from bench.compare.statistics.rows import group_rows, is_start
from bench.compare.statistics.table import FEWEST_SEEDS
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

    @property
    def is_scored(self) -> bool:
        """Say if our runs have a score for any of its values."""
        return any(cell.mean is not None for cell in self.cells)

    @property
    def ours(self) -> str:
        """Return "promcse on builtin, 1,000 steps, seeds 42-44"; "" without any run."""
        if not self.records:
            return ""
        first = self.records[0]
        seeds = seed_ranges(one.seed for one in self.records if one.seed is not None)
        text = f"{first.method_name} on {first.backbone_name}"
        if _steps(first):
            text += f", {_steps(first):,} steps"
        return f"{text}, seeds {seeds}" if seeds else text


def rows_beside(part: PaperPart, runs: Sequence[Run]) -> list[RowBeside]:
    """Return each row of a printed table with our finished runs of it.

    Of several recipes one counts, see :func:`beside_rows`. Raises BenchError if the part prints no
    scores, or if no run makes a row of it again.
    """
    printed = rows(results(paper=part.paper, table=part.short))
    if not printed:
        raise BenchError(
            f"--paper {part.name}: it shows {part.shows}, and has no score",
            f"bench papers {part.name}",
        )
    finished = [run.record for run in runs if run.record.status == "finished"]
    beside = beside_rows(printed, [row.runs for row in group_rows(finished)])
    if not any(row.is_scored for row in beside):
        methods = list_names(dict.fromkeys(run.record.method for run in runs), most=10)
        raise BenchError(
            f"--paper {part.name}: none of these runs has a score for a row of it; they are of "
            f"{methods}",
            f"{part.command} --dry-run" if part.command else f"bench papers {part.name}",
        )
    return beside


def beside_rows(
    printed: Sequence[PrintedRow], groups: Iterable[Sequence[RunRecord]]
) -> list[RowBeside]:
    """Return each printed row with our runs of it. ``groups``: runs that differ only in the seed.

    Of several groups the longest training counts that has enough seeds for a test, or else of any;
    of equally long ones that of most seeds. An untrained start is no run of a printed row.
    """
    ours: dict[PrintedRow, Sequence[RunRecord]] = {}
    for records in groups:
        first = records[0]
        if is_start(first):
            continue
        recipe = {key: value.value for key, value in first.recipe.items()}
        terms = RunTerms(first.method, first.setting, first.backbone, first.variant, recipe)
        changed = {key for key, value in first.recipe.items() if is_given_by_user(value.source)}
        for row in rows_of_run(printed, terms, changed):
            if row not in ours or _weight(records) > _weight(ours[row]):
                ours[row] = records
    pairs = []
    for row in printed:
        records = ours.get(row, ())
        pairs.append(Beside(row.cells, records, _not_meant(records[0], row) if records else ""))
    return [
        RowBeside(row, cells, pair.records)
        for row, cells, pair in zip(printed, judge_rows(pairs), pairs, strict=True)
    ]


def _weight(records: Sequence[RunRecord]) -> tuple[bool, int, int]:
    return len(records) >= FEWEST_SEEDS, _steps(records[0]), len(records)


def _steps(record: RunRecord) -> int:
    """Return how many steps a run was trained; 0 if nothing was trained."""
    return 0 if record.training is None else record.training.steps


def _not_meant(record: RunRecord, row: PrintedRow) -> str:
    """Say why our run is not meant to give a printed row; "" if it is."""
    first = row.first
    if find_checkpoint(record.backbone) is not None:
        return "" if first.repeats == 1 else f"one released checkpoint; published is {first.runs}"
    if first.backbone not in printed_names(record.backbone):
        return f"{record.backbone_name} stands in for {first.backbone}"
    return changed_by_hand(record, first)
