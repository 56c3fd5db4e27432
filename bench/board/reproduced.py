"""What became of a printed number here: the board's own runs of the same method, backbone and recipe, judged as ``bench reproduce`` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.board.repeat import SET
from bench.references import ReferenceResult
from bench.references.ours import find_printed, meaning
from bench.references.rows import rows, tables

if TYPE_CHECKING:
    from bench.board.board import Board, PublishedRun
    from bench.run.reproduce.verdicts import Reproduced

Key = tuple[str, ...]
"""Of a printed number: paper, table, label, setting, backbone, variant, task."""


def key(cell: ReferenceResult) -> Key:
    return (cell.paper, cell.table, cell.label, cell.setting, cell.backbone, cell.variant, cell.task)


def reproduced_cells(board: Board) -> Mapping[Key, Reproduced]:
    """Verdicts of the printed numbers that have runs here. What is not checked, and rows with recipe values given by hand, are not among them."""
    runs = {run.record.run_id: run for run in board.runs if run.checked}
    having = _having(board, runs)
    if not having:
        return {}
    from bench.references import results
    from bench.run.reproduce.verdicts import reproduced
    from bench.run.reproduce.wanted import WantedRun

    found: dict[Key, Reproduced] = {}
    for paper, table in tables():
        listed = []
        for row in rows([result for result in results(paper=paper) if result.table == table]):
            ours = dict.fromkeys(run for cell in row.cells for run in having.get(key(cell), ()))
            if ours:
                listed.append(
                    (WantedRun(rows=(row,), method=row.first.method), [(runs[run].record, runs[run].folder) for run in ours])
                )
        for cells in reproduced(listed, "tokenised") if listed else ():
            found.update({key(one.printed): one for one in cells if one.mean is not None})
    return found


def _having(board: Board, runs: Mapping[str, PublishedRun]) -> dict[Key, tuple[str, ...]]:
    """Printed number -> runs of the row that means it; of several rows that one of most seeds, the first of them in the table."""
    found: dict[Key, tuple[str, ...]] = {}
    for table in board.tables:
        for row in table.table.rows if table.checked else ():
            record = runs[row.runs[0]].record
            recipe = {name: entry.value for name, entry in record.recipe.items()}
            by_hand = {name for name, entry in record.recipe.items() if entry.source.startswith(SET)}
            for task in table.table.columns:
                for cell in find_printed(row.method, task, suite=table.table.suite, setting=row.setting, backbone=record.backbone, variant=row.variant,
                                         protocol=table.table.protocol, recipe=recipe):  # fmt: skip
                    fits = not cell.text or table.table.text is None or table.table.text == cell.text
                    if (
                        fits
                        and by_hand <= set(meaning(cell.method, cell.variant).set)
                        and len(row.runs) > len(found.get(key(cell), ()))
                    ):
                        found[key(cell)] = row.runs
    return found
