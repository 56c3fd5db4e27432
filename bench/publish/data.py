"""A version as data: ``tables.json`` (``schema/board-3.schema.json``) and a CSV file of every table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from bench.board import names as addresses
from bench.board.board import Board, BoardTable, PublishedRun
from bench.board.changes import ChangedVerdict, Changes
from bench.board.reference_tables import ReferenceCell, ReferenceRow, ReferenceTable
from bench.compare.formatting import csv_value
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
        "changes": None if board.changes is None else list(board.changes.lines),
    }
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def as_csvs(board: Board) -> dict[str, str]:
    """File name -> text: one file for each table of runs, one line per cell; and one for each printed table."""
    files = {f"{table.anchor}.csv": as_csv([table.table]) for table in board.tables}
    return files | {
        f"{reference.anchor}.csv": _printed_csv(reference) for reference in board.references
    }


def changes_csv(changes: Changes) -> str:
    """One line for each cell whose score or verdict is another one than in the version before."""
    keys = ("setting", "backbone", "suite", "protocol", "text", "method", "task")
    lines = []
    for cell in changes.cells:
        what, baseline = (
            ("verdict", cell.baseline) if isinstance(cell, ChangedVerdict) else ("score", None)
        )
        lines.append(
            (
                what,
                *(getattr(cell, key) for key in keys),
                baseline,
                cell.before,
                cell.after,
                "; ".join(cell.why),
            )
        )
    return _csv_file(("what", *keys, "baseline", "before", "after", "why"), lines)


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
        "grade": run.grade,
        "reason": run.reason,
        "submitted_by": run.submitted_by,
        "created": record.provenance.created,
        "command": record.provenance.command,
        "fingerprint": record.fingerprint,
        "record": f"../{run.held_by}/" * (run.held_by is not None)
        + addresses.run_file(record.run_id, "run.json"),
        "page": addresses.run_page(board.page_of[record.run_id]),
    }


def _printed_csv(table: ReferenceTable) -> str:
    return _csv_file(
        PRINTED,
        [
            _printed(cell, row, table)
            for row in table.rows
            for cell in row.cells
            if cell is not None
        ],
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


def _csv_file(heading: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows([csv_value(value, limit=None) for value in line] for line in lines)
    return out.getvalue()
