"""Score tables as data: CSV with one line per cell, and JSON (schema/compare-5.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

from bench.base.grid import csv_lines
from bench.compare.costs import COSTS
from bench.compare.statistics.table import Cell, Row, Table
from bench.compare.words.finding import table_finding, verdict_word
from bench.compare.words.names import baseline_name, row_name, table_name
from bench.compare.words.notes import table_notes

SCHEMA = "bench.compare/5"
HEADING = (
    "suite",
    "protocol",
    "setting",
    "backbone",
    "row",
    "method",
    "variant",
    "differs",
    "task",
    "mean",
    "sd",
    "se",
    "ci_low",
    "ci_high",
    "covers",
    "seeds",
    "n",
    "mark",
    "difference",
    "paired_seeds",
    "difference_se",
    "difference_df",
    "difference_ci_low",
    "difference_ci_high",
    "difference_ci_level",
    "p",
    "verdict",
    "stands",
    "mde",
    "equal_within",
    "may_be_best",
    "untested",
    "paper",
    "paper_value",
    "paper_std",
    "paper_difference",
    "paper_verdict",
    "paper_half",
    *(name for column in COSTS for name in column.numbers),
    "values",
    "notes",
    "trained_with",
    "runs",
)


def tables_csv(tables: Sequence[Table]) -> str:
    """Write one line per (row, task) as CSV; numbers in full, empty if there is none."""
    lines = [[line.get(name) for name in HEADING] for line in cell_rows(tables)]
    return csv_lines(HEADING, lines)


def cell_rows(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """Yield a mapping for each (row, task), with the keys of ``HEADING`` that are known, and
    others."""
    for table in tables:
        for row in table.rows:
            for task, cell in zip(table.columns, row.cells, strict=True):
                yield {**_row_facts(row, table), **_cell_facts(cell), "task": task}


def _row_facts(row: Row, table: Table) -> dict[str, Any]:
    """Return the columns of ``HEADING`` that a row has, and its costs if they are known."""
    facts: dict[str, Any] = {
        "suite": table.suite,
        "protocol": table.protocol,
        "setting": row.setting,
        "backbone": row.backbone,
        "budget": table.budget,
        "text": table.text,
        "row": row_name(row, table),
        "method": row.method,
        "variant": row.variant,
        "differs": " ".join(f"{key}={value}" for key, value in row.differs),
        "may_be_best": row.may_be_best if table.tested else None,
        "stands": row.stands,
        "untested": row.untested,
        "notes": "; ".join(row.notes),
        "trained_with": " ".join(f"{key}={value}" for key, value in row.trained_with.items()),
        "runs": " ".join(row.runs),
        "values": row.values,
    }
    if row.cost:
        facts |= row.cost
    return facts


def _cell_facts(cell: Cell | None) -> dict[str, Any]:
    if cell is None:
        return {}
    spread = vars(cell.spread) if cell.spread else {}
    against = vars(cell.against) if cell.against else {}
    paper = vars(cell.printed) if cell.printed else {}
    source = None
    if paper:
        source = paper["source"] if paper["own"] else f"{paper['source']} (copied)"
    return {
        "mean": cell.mean,
        "sd": cell.sd,
        "se": spread.get("se"),
        "ci_low": spread.get("low"),
        "ci_high": spread.get("high"),
        "covers": spread.get("covers"),
        "seeds": len(cell.values),
        "n": cell.n,
        "mark": cell.mark,
        "difference": _difference(cell),
        "paired_seeds": against.get("paired_seeds"),
        "difference_se": against.get("se"),
        "difference_df": against.get("df"),
        "difference_ci_low": against.get("ci_low"),
        "difference_ci_high": against.get("ci_high"),
        "difference_ci_level": against.get("ci_level"),
        "p": against.get("p"),
        "verdict": against.get("verdict"),
        "mde": against.get("mde"),
        "equal_within": against.get("equal_within"),
        "paper": source,
        "paper_value": paper.get("value"),
        "paper_std": paper.get("std"),
        "paper_difference": paper.get("difference"),
        "paper_verdict": paper.get("verdict"),
        "paper_half": paper.get("half"),
    }


def tables_json(tables: Sequence[Table]) -> str:
    """Write the tables as JSON; ends with a newline."""
    content = {"schema": SCHEMA, "tables": [table_data(table) for table in tables]}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _facts(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, of dataclasses in it, too. Values are not copied."""
    facts = {}
    for key, item in vars(value).items():
        facts[key] = _facts(item) if is_dataclass(item) else item
    return facts


def table_data(table: Table) -> dict[str, Any]:
    """Return a table as plain JSON values: ``$defs/table`` of the schema."""
    sender = {"submitted_by": table.sender} if table.sender else {}
    return {
        "name": table_name(table),
        "finding": table_finding(table).text,
        "suite": table.suite,
        "protocol": table.protocol,
        "metric": table.metric,
        "setting": table.setting,
        "backbone": table.backbone,
        "budget": table.budget,
        "text": table.text,
        **sender,
        "columns": list(table.columns),
        "baseline": table.baseline,
        "baseline_name": baseline_name(table),
        "question": table.question,
        "tested": None if table.tested is None else _facts(table.tested),
        "rows": [_row(row, table) for row in table.rows],
        "notes": table_notes(table),
    }


def _row(row: Row, table: Table) -> dict[str, Any]:
    size = {} if row.vector_bytes is None else {"vector_bytes": row.vector_bytes}
    return {
        **size,
        "name": row_name(row, table),
        "method": row.method,
        "variant": row.variant,
        "setting": row.setting,
        "backbone": row.backbone,
        "differs": dict(row.differs),
        "seeds": list(row.seeds),
        "runs": list(row.runs),
        "verdict": verdict_word(row, table),
        **_head(row, table),
        "cells": {task: _cell(cell) for task, cell in zip(table.columns, row.cells, strict=True)},
        "cost": None if row.cost is None else dict(row.cost),
        "values": row.values,
        "notes": list(row.notes),
        "trained_with": dict(row.trained_with),
    }


def _head(row: Row, table: Table) -> dict[str, Any]:
    """Return the statistics of a row on the column that ranks; all None if the table has none."""
    cell = row.cells[-1] if table.head is not None else None
    facts = _cell(cell) or {}
    spread = facts.get("spread") or {}
    return {
        "n": None if cell is None else len(cell.values),
        "mean": facts.get("mean"),
        "sd": facts.get("sd"),
        "se": spread.get("se"),
        "ci_low": spread.get("low"),
        "ci_high": spread.get("high"),
        "against": facts.get("against"),
        "may_be_best": row.may_be_best,
        "stands": row.stands,
        "start": None if row.start is None else _facts(row.start),
        "untested": row.untested,
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    facts = _facts(cell) | {"values": list(cell.values)}
    del facts["seeds"]  # the row has them
    if not cell.beside:
        del facts["beside"]
    if cell.against:
        facts["against"]["difference"] = _difference(cell)
    return facts


def _difference(cell: Cell) -> float | None:
    """Return the difference from the baseline, rounded as printed if nothing was tested."""
    against = cell.against
    if against is None:
        return None
    if against.se is None:
        return round(against.difference, cell.decimals)
    return against.difference
