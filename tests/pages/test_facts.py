"""How a board was made: values out of its records, under sentences that are the same for every board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factories import record

from bench.board.board import board
from bench.records import Run, Training


def facts(*changes: dict[str, Any]) -> dict[str, str]:
    records = [record(f"m{i}", 1 + i, **one) for i, one in enumerate(changes)]
    runs = [Run(record=one, folder=Path("nowhere")) for one in records]
    return dict(board(runs, version="v7", title="T", left_out=["x: failed"]).made)


def test_the_facts_of_a_board(snapshot: Any) -> None:
    assert facts({}, {}, {"training": Training(steps=10, sentences=1_000)}) == snapshot


def test_what_a_board_has_nothing_of_is_left_out() -> None:
    assert not {"Selection", "Training"} & set(facts({"setting": "none"}))
