"""What the papers printed, as the main page shows it: another thing than runs, with the audit's remarks where they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.board.names import link, method_page
from bench.compare.formatting import score
from bench.compare.printed import verdict_text
from bench.references.audit import KINDS
from bench.show.pages.engine import minus

if TYPE_CHECKING:
    from bench.board.board import Board, Key
    from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
    from bench.compare.printed import Reproduced


VERDICT_SIGNS = {
    "consistent": "",
    "differs": "\N{NOT EQUAL TO}",
    "not tested": "\N{EN DASH}",
}
"""Before the number of ours; the verdict stands beside it for a screen reader."""


@dataclass(frozen=True, kw_only=True)
class PrintedRemark:
    """What the audit says of a cell or row."""

    anchor: str  # id of its place on the page
    title: str  # the kind of remark
    text: str  # the reason
    where: str  # rows and tasks that it concerns


@dataclass(frozen=True, kw_only=True)
class PrintedNote:
    """One line below a table: a remark, or all cells of a row that are printed differently elsewhere."""

    title: str  # the kind of remark
    where: str  # rows and tasks that it concerns
    remarks: tuple[PrintedRemark, ...]  # one, or one a cell


@dataclass(frozen=True, kw_only=True)
class PrintedCell:
    """One printed number."""

    text: str  # as printed, with its spread
    ours: str  # the mean of runs here; empty where there are none
    between: str  # "±1.52": half of the 95 % prediction interval; empty where it is not tested
    verdict: str  # consistent (...), differs by ..., not tested: ...; empty without runs
    sign: str  # of the verdict
    remarks: tuple[PrintedRemark, ...]  # those of this cell


@dataclass(frozen=True, kw_only=True)
class PrintedRow:
    """One printed row."""

    label: str  # the row's own words
    page: str  # link to the method that it means, where runs of it are on this board; else empty
    setting: str  # setting, and what else the row says of its training
    backbone: str  # backbone
    origin: str  # own, or whom it was copied from; and of how many runs
    cells: tuple[PrintedCell | None, ...]  # one per task
    remarks: tuple[PrintedRemark, ...]  # those of the whole row


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """One table of a paper."""

    anchor: str  # id of its place on the page
    paper: str  # short name of the paper
    table: str  # its number
    suites: tuple[str, ...]  # suites that its numbers belong to
    tasks: tuple[str, ...]  # headings of its columns
    rows: tuple[PrintedRow, ...]  # in the paper's order
    notes: tuple[PrintedNote, ...]  # each remark once, the gravest kinds first

    @property
    def reproduced(self) -> bool:
        """Whether runs here put one of its numbers to the test."""
        return any(cell is not None and cell.ours != "" for row in self.rows for cell in row.cells)


@dataclass(frozen=True, kw_only=True)
class PrintedPaper:
    """The tables of one paper."""

    name: str  # short name of the paper
    title: str  # authors, title, venue
    tables: tuple[PrintedTable, ...]  # in the paper's order


def printed_papers(
    board: Board, references: Sequence[ReferenceTable] | None = None
) -> tuple[PrintedPaper, ...]:
    """The printed tables of a board, or ``references`` in their place, paper after paper, in their order."""
    found: dict[tuple[str, str], list[PrintedTable]] = {}
    for reference in board.references if references is None else references:
        found.setdefault((reference.paper, reference.title), []).append(
            _table(reference, frozenset(board.methods), board.reproduced)
        )
    return tuple(
        PrintedPaper(name=name, title=title, tables=tuple(tables))
        for (name, title), tables in found.items()
    )


class _Remarks:
    """The remarks of a table: the same words are one, of all rows that they concern. That a row is copied stands beside it."""

    def __init__(self, anchor: str) -> None:
        self.anchor = anchor
        self.found: dict[tuple[str, str], tuple[PrintedRemark, list[tuple[ReferenceRow, str]]]] = {}

    def of(
        self, entry: ReferenceRow | ReferenceCell, row: ReferenceRow, task: str = ""
    ) -> tuple[PrintedRemark, ...]:
        made = []
        for remark in entry.remarks:
            if remark.kind == "copied":
                continue
            anchor = f"{self.anchor}-{len(self.found) + 1}"
            new = PrintedRemark(anchor=anchor, title=remark.title, text=remark.text, where="")
            known, places = self.found.setdefault((remark.kind, remark.text), (new, []))
            places.append((row, task))
            made.append(known)
        return tuple(made)

    def all(self) -> tuple[PrintedNote, ...]:
        """Wrong sums first, as the audit orders its kinds; what is printed differently elsewhere is one note a row."""
        notes: dict[tuple[str, ...], list[PrintedRemark]] = {}
        ranks = {kind: i for i, kind in enumerate(KINDS)}
        for (kind, text), (remark, places) in sorted(
            self.found.items(), key=lambda item: ranks.get(item[0][0], len(ranks))
        ):
            row = places[0][0]
            key = (
                (kind, row.label, row.setting, row.backbone) if kind == "differs" else (kind, text)
            )
            cells = [f"{row.label}, {task}" if task else row.label for row, task in places]
            cells = list(dict.fromkeys(cells))
            more = f"; {len(cells) - 4} more" if len(cells) > 4 else ""
            where = "; ".join(cells[:4]) + more
            notes.setdefault(key, []).append(replace(remark, where=where))
        return tuple(_note(remarks) for remarks in notes.values())


def _note(remarks: list[PrintedRemark]) -> PrintedNote:
    if len(remarks) == 1:
        return PrintedNote(title=remarks[0].title, where=remarks[0].where, remarks=tuple(remarks))
    label = remarks[0].where.partition(", ")[0]
    parts = tuple(
        replace(remark, where=remark.where.removeprefix(f"{label}, ")) for remark in remarks
    )
    return PrintedNote(
        title=remarks[0].title, where=f"{label}, {len(remarks)} cells", remarks=parts
    )


def _table(
    table: ReferenceTable, methods: frozenset[str], ours: Mapping[Key, Reproduced]
) -> PrintedTable:
    remarks = _Remarks(table.anchor)
    rows = tuple(_row(row, table, remarks, methods, ours) for row in table.rows)
    return PrintedTable(
        anchor=table.anchor,
        paper=table.paper,
        table=table.table,
        suites=tuple(table.suite.split(", ")),
        tasks=table.tasks,
        rows=rows,
        notes=remarks.all(),
    )


def _row(
    row: ReferenceRow,
    table: ReferenceTable,
    remarks: _Remarks,
    methods: frozenset[str],
    ours: Mapping[Key, Reproduced],
) -> PrintedRow:
    here = [
        ours.get(
            (table.paper, table.table, row.label, row.setting, row.backbone, row.variant, task)
        )
        for task in table.tasks
    ]
    copied = f"copied from {row.source}" if row.source else "copied"
    origin = "own" if row.own else copied
    method = row.ours.partition("+")[0]
    whole = remarks.of(row, row)  # before those of its cells: remarks are numbered as they come
    return PrintedRow(
        label=row.label,
        page=link(method_page(method)) if method in methods else "",
        backbone=row.backbone,
        remarks=whole,
        setting="; ".join(
            part for part in ("" if row.setting == "none" else row.setting, row.corpus) if part
        ),
        origin="; ".join(part for part in (origin, row.runs) if part),
        cells=tuple(
            None if cell is None else _cell(cell, row, task, remarks, found)
            for cell, task, found in zip(row.cells, table.tasks, here, strict=True)
        ),
    )


def _cell(
    cell: ReferenceCell, row: ReferenceRow, task: str, remarks: _Remarks, here: Reproduced | None
) -> PrintedCell:
    ours, between, verdict, sign = "", "", "", ""
    if here is not None and here.mean is not None:
        ours, verdict = minus(score(here.mean, here.decimals)), verdict_text(here, here.printed)
        between = "" if here.half is None else f"±{score(here.half, here.decimals)}"
        sign = VERDICT_SIGNS[here.verdict]
    std = "" if cell.std is None else f" ±{cell.std:g}"
    return PrintedCell(
        ours=ours,
        between=between,
        verdict=verdict,
        sign=sign,
        text=minus(cell.text) + std,
        remarks=remarks.of(cell, row, task),
    )
