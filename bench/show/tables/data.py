"""Score tables as data: CSV with one line per cell, and JSON (``schema/compare-2.schema.json``)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from bench.compare.formatting import csv_value
from bench.compare.statistics.table import Cell, Row, Table, Tested
from bench.runs.record import RunRecord, Score

SCHEMA = "bench.compare/2"
HEADING = (
    "suite",
    "protocol",
    "text",
    "setting",
    "backbone",
    "method",
    "variant",
    "differs",
    "task",
    "mean",
    "sd",
    "low",
    "high",
    "covers",
    "seeds",
    "n",
    "mark",
    "rank_low",
    "rank_high",
    "difference",
    "difference_low",
    "difference_high",
    "difference_level",
    "p",
    "p_adjusted",
    "verdict",
    "exploratory",
    "chance",
    "detectable",
    "seeds_needed",
    "paper",
    "paper_value",
    "paper_std",
    "paper_difference",
    "paper_inside",
    "paper_half",
    "trainable_parameters",
    "train_seconds",
    "peak_memory_bytes",
    "encode_sentences_per_second",
    "encode_memory_bytes",
    "encode_condition",
    "tuning_seconds",
    "tuning_trials",
    "values",
    "footnotes",
    "runs",
)


def as_csv(tables: Sequence[Table]) -> str:
    """One line per (row, task); numbers in full, empty where there is none."""
    out = io.StringIO()
    writer = csv.DictWriter(out, HEADING, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(
        {key: csv_value(value) for key, value in line.items()} for line in cell_rows(tables)
    )
    return out.getvalue()


def cell_rows(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    """One mapping per (row, task), with those keys of ``HEADING`` of which something is known."""
    for table in tables:
        for row in table.rows:
            for task, cell in zip(table.columns, row.cells, strict=True):
                yield {
                    **_row_facts(row, table),
                    **_cell_facts(cell, exploratory=task != table.head),
                    "task": task,
                }


def _row_facts(row: Row, table: Table) -> dict[str, Any]:
    facts = {
        "suite": table.suite,
        "protocol": table.protocol,
        "text": table.text,
        "setting": row.setting,
        "backbone": row.backbone,
        "method": row.method,
        "variant": row.variant,
        "differs": " ".join(f"{key}={value}" for key, value in row.differs),
        "rank_low": row.rank and row.rank[0],
        "rank_high": row.rank and row.rank[1],
        "footnotes": "; ".join(table.footnotes[i] for i in row.footnotes),
        "runs": " ".join(row.runs),
        "values": row.values,
    }
    costs = _facts(row.cost) if row.cost else {}
    return facts | {
        key: value for key, value in costs.items() if key in HEADING
    }  # parts of a method are no columns


def _cell_facts(cell: Cell | None, *, exploratory: bool) -> dict[str, Any]:
    if cell is None:
        return {}
    facts: dict[str, Any] = {
        "mean": cell.mean,
        "sd": cell.sd,
        "seeds": len(cell.values),
        "n": cell.n,
        "mark": cell.mark,
    }
    if cell.spread:
        facts |= {"low": cell.spread.low, "high": cell.spread.high, "covers": cell.spread.covers}
    if against := cell.against:
        facts |= {
            "difference": round(against.difference, cell.decimals),
            "difference_low": against.low,
            "difference_high": against.high,
            "difference_level": against.level,
            "p": against.p,
            "p_adjusted": against.p_adjusted,
            "verdict": against.verdict,
            "chance": against.chance,
            "exploratory": exploratory if against.verdict else None,
            "detectable": against.detectable,
            "seeds_needed": against.seeds_needed,
        }
    if paper := cell.printed:
        facts |= {
            "paper": paper.source + ("" if paper.own else " (copied)"),
            "paper_value": paper.value,
            "paper_std": paper.std,
            "paper_difference": paper.difference,
            "paper_inside": paper.inside,
            "paper_half": paper.half,
        }
    return facts


def as_json(tables: Sequence[Table]) -> str:
    content = {"schema": SCHEMA, "tables": [table_data(table) for table in tables]}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _facts(value: Any) -> dict[str, Any]:
    """The fields of a dataclass whose values are plain, or dataclasses of such; what they hold is not copied."""
    return {key: _facts(item) if is_dataclass(item) else item for key, item in vars(value).items()}


def tested_data(tested: Tested | None) -> dict[str, Any] | None:
    """How a table was tested: ``$defs/tested`` of the schema."""
    if tested is None:
        return None
    return _facts(tested) | {
        "families": [_facts(family) for family in tested.families],
        "lent": list(tested.lent),
    }


def table_data(table: Table) -> dict[str, Any]:
    """One table as plain JSON values: ``$defs/table`` of the schema."""
    return {
        "suite": table.suite,
        "protocol": table.protocol,
        "text": table.text,
        "metric": table.metric,
        "setting": table.setting,
        "backbone": table.backbone,
        "columns": list(table.columns),
        "baseline": table.baseline,
        "tested": tested_data(table.tested),
        "rows": [_row(row, table) for row in table.rows],
        "notes": list(table.notes),
        "footnotes": list(table.footnotes),
    }


def _row(row: Row, table: Table) -> dict[str, Any]:
    return {
        "method": row.method,
        "variant": row.variant,
        "setting": row.setting,
        "backbone": row.backbone,
        "differs": dict(row.differs),
        "seeds": list(row.seeds),
        "runs": list(row.runs),
        "rank": row.rank and list(row.rank),
        "cells": {task: _cell(cell) for task, cell in zip(table.columns, row.cells, strict=True)},
        "difference": None if row.difference is None else round(row.difference, 2),
        "cost": None if row.cost is None else _facts(row.cost),
        "footnotes": list(row.footnotes),
        "values": row.values,
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    facts = _facts(cell) | {"values": list(cell.values)}
    if cell.against:
        facts["against"] = against_data(cell)
    return facts


def against_data(cell: Cell | None) -> dict[str, Any] | None:
    """A cell less the baseline's, as printed; None where there is none."""
    if cell is None or cell.against is None:
        return None
    return _facts(cell.against) | {"difference": round(cell.against.difference, cell.decimals)}


# --- all scores of one run as CSV: one line per task and per sub-dataset, numbers in full ---

RUN_HEADING = ("suite", "task", "subset", "protocol", "text", "metric", "value", "std", "n")


def scores_csv(record: RunRecord) -> str:
    """``subset`` is empty in the line of the task itself. What was not recorded is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(RUN_HEADING)
    for score in record.scores:
        for subset, value, std, n in _lines(score):
            cells = (
                score.suite,
                score.task,
                subset,
                score.protocol,
                score.text,
                score.metric,
                value,
                std,
                n,
            )
            writer.writerow([csv_value(cell) for cell in cells])
    return out.getvalue()


def _lines(score: Score) -> Iterator[tuple[str, float, float | None, int | None]]:
    yield "", score.value, score.std, score.n
    subsets = score.detail.get("subsets")
    for name, part in subsets.items() if isinstance(subsets, Mapping) else ():
        value = part.get(score.metric) if isinstance(part, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            n = part.get("n")
            yield (
                str(name),
                value,
                None,
                n if isinstance(n, int) and not isinstance(n, bool) else None,
            )
