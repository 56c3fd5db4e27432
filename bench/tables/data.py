"""Score tables as data: CSV with one line per cell, and JSON (schema ``bench.compare/1``)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.statistics.summary import Row, Table
from bench.tables.words import csv_text

HEADING = (
    "suite", "protocol", "text", "setting", "backbone", "method", "variant", "differs", "task", "mean", "sd", "seeds", "n",
    "mark", "difference", "runs",
)  # fmt: skip


def as_csv(tables: Sequence[Table]) -> str:
    """One line per (row, task); numbers in full, empty where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADING)
    for table in tables:
        for row in table.rows:
            differs = " ".join(f"{key}={value}" for key, value in row.differs)
            names = (table.suite, table.protocol, table.text or "", row.setting, row.backbone, row.method, row.variant, differs)
            for task, cell in zip(table.columns, row.cells, strict=True):
                numbers: list[Any] = ["", "", "", "", ""]
                if cell is not None:
                    numbers = [repr(cell.mean), "" if cell.sd is None else repr(cell.sd), len(cell.values), cell.n, cell.mark]
                last = row.difference if task == table.head and row.difference is not None else None
                writer.writerow([*map(csv_text, (*names, task)), *numbers, "" if last is None else f"{last:.2f}",
                                 csv_text(" ".join(row.runs))])  # fmt: skip
    return out.getvalue()


def as_json(tables: Sequence[Table]) -> str:
    content = {"schema": "bench.compare/1", "tables": [_table(table) for table in tables]}
    return json.dumps(content, indent=1) + "\n"


def _table(table: Table) -> dict[str, Any]:
    return {
        "suite": table.suite, "protocol": table.protocol, "text": table.text, "metric": table.metric, "setting": table.setting,
        "backbone": table.backbone, "columns": list(table.columns), "baseline": table.baseline,
        "rows": [_row(row, table) for row in table.rows], "notes": list(table.notes),
    }  # fmt: skip


def _row(row: Row, table: Table) -> dict[str, Any]:
    cells = {
        task: None if cell is None else asdict(cell) | {"values": list(cell.values)}
        for task, cell in zip(table.columns, row.cells, strict=True)
    }
    return {
        "method": row.method, "variant": row.variant, "setting": row.setting, "backbone": row.backbone,
        "differs": dict(row.differs), "seeds": list(row.seeds), "runs": list(row.runs), "cells": cells,
        "difference": None if row.difference is None else round(row.difference, 2),
    }  # fmt: skip
