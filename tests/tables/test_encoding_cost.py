"""What encoding took, which records of earlier versions hold: shown only between rows that were measured alike."""

from __future__ import annotations

from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.compare.costs import with_costs
from bench.compare.statistics.summary import summarise
from bench.runs.record import EncodingCost
from bench.show.tables.lines import cost_columns, costs

HERE = EncodingCost(
    sentences_per_second=1000.0,
    memory_bytes=5 * 10**8,
    device="cpu: A, 2 cores",
    threads=1,
    precision="fp32",
    text="a text",
    torch="2.13.0",
    bench_version="0.1.0",
)


def compared(*measured: EncodingCost | None, seeds: bool = False) -> Any:
    """The one table of as many rows, or of one row with as many seeds."""
    runs = [
        record("simcse" if seeds else f"method-{i}", i, base=80 if seeds else 80 - 5 * i)
        for i in range(len(measured))
    ]
    runs = [
        replace(run, cost=replace(run.cost, encoding=cost))
        for run, cost in zip(runs, measured, strict=True)
    ]
    (table,) = with_costs(summarise(runs), {run.run_id: run for run in runs})
    return table


def encoded(table: Any) -> list[str]:
    return [costs(row.cost)["encode"] for row in table.rows]


def test_rows_of_one_condition_stand_side_by_side() -> None:
    table = compared(HERE, replace(HERE, sentences_per_second=250.0))
    assert cost_columns(table)[-1] == "encode" and encoded(table) == ["1.0k/s", "250/s"]
    assert any(HERE.condition in note for note in table.notes)
    assert "encode" not in cost_columns(compared(None, None))


@pytest.mark.parametrize(
    "change",
    [{"device": "cuda"}, {"threads": 2}, {"text": "b"}, {"torch": "2"}, {"bench_version": "9"}],
)
def test_a_row_of_another_condition_is_left_out_and_named(change: dict[str, Any]) -> None:
    table = compared(HERE, replace(HERE, **change), HERE)
    assert encoded(table) == ["1.0k/s", "", "1.0k/s"]
    assert any(note.endswith("not shown: method-1") for note in table.notes)
    (row,) = compared(HERE, replace(HERE, **change), seeds=True).rows
    assert row.cost.encode_sentences_per_second is None, "two conditions have no mean"
