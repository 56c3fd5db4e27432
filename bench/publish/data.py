"""A version as data: ``tables.json`` (``schema/board-3.schema.json``) and a CSV file of every table."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from bench.board import names as addresses
from bench.board.board import Board, BoardTable, PublishedRun
from bench.board.changes import ChangedRow, Changes
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.board.repeat import repeat
from bench.show.grid import as_csv as grid_csv
from bench.show.grid import plain
from bench.show.tables.data import as_csv, table_data

SCHEMA = "bench.board/3"
PRINTED = (
    "paper",
    "table",
    "label",
    "method",
    "variant",
    "setting",
    "backbone",
    "task",
    "metric",
    "value",
    "std",
    "own",
    "source",
    "runs",
    "protocol",
    "corpus",
    "ours",
    "remarks",
    "note",
)


def as_json(board: Board) -> str:
    """Everything that the pages show but the recipes, which are in each run's record. On one line: it is for programs."""
    content = {
        "schema": SCHEMA,
        "version": board.version,
        "date": board.date,
        "title": board.title,
        "note": board.note,
        "answer": board.answer,
        "tables": [_table(table) for table in board.tables],
        "runs": [_run(run, board) for run in board.runs],
        "left_out": list(board.left_out),
        "references": [asdict(reference) for reference in board.references],
        "made": [asdict(fact) for fact in board.made],
        "changes": None if board.changes is None else asdict(board.changes),
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def as_csvs(board: Board) -> dict[str, str]:
    """File name -> text: one file for each table of runs, one line per cell; and one for each printed table."""
    files = {f"{table.anchor}.csv": as_csv([table.table]) for table in board.tables}
    if board.changes is not None and board.changes.rows:
        files["changes.csv"] = changes_csv(board.changes)
    return files | {
        f"{reference.anchor}.csv": _printed_csv(reference) for reference in board.references
    }


def changes_csv(changes: Changes) -> str:
    """One line for each row of a suite that has another average than in the version before, is new, or is gone."""
    names = [field.name for field in fields(ChangedRow)]
    return grid_csv(plain(names, [[getattr(row, name) for name in names] for row in changes.rows]))


def _table(table: BoardTable) -> dict[str, Any]:
    return {
        "anchor": table.anchor,
        "selection": table.selection,
        "costs_comparable": table.costs_comparable,
        "cost_note": table.cost_note,
        "cost_of": None if table.cost_of is None else asdict(table.cost_of),
        "table": table_data(table.table),
        "beside": [
            {
                "name": other.name,
                "suite": other.suite,
                "protocol": other.protocol,
                "metric": other.metric,
                "anchor": other.anchor,
                "means": [None if cell is None else cell.mean for cell in other.cells],
            }
            for other in table.beside
        ],
    }


def _run(run: PublishedRun, board: Board) -> dict[str, Any]:
    record = run.record
    return {
        "run_id": record.run_id,
        "method": record.method,
        "variant": record.variant,
        "setting": record.setting,
        "backbone": record.backbone_name,
        "seed": record.seed,
        "submitted_by": run.submitted_by,
        "created": record.provenance.created,
        "command": repeat([record]).command,
        "fingerprint": record.fingerprint,
        "record": addresses.run_file(record.run_id, "run.json"),
        "page": addresses.run_page(board.page_of[record.run_id]),
    }


def _printed_csv(table: ReferenceTable) -> str:
    return grid_csv(
        plain(
            PRINTED,
            [
                _printed(cell, row, table)
                for row in table.rows
                for cell in row.cells
                if cell is not None
            ],
        )
    )


def _printed(cell: ReferenceCell, row: ReferenceRow, table: ReferenceTable) -> tuple[object, ...]:
    remarks = "; ".join(remark.text for remark in (*cell.remarks, *row.remarks))
    return (
        table.paper,
        table.table,
        row.label,
        row.method,
        row.variant,
        row.setting,
        row.backbone,
        cell.task,
        cell.metric,
        cell.value,
        cell.std,
        row.own,
        row.source,
        row.runs,
        row.protocol,
        row.corpus,
        row.ours,
        remarks,
        row.note,
    )
