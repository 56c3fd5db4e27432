"""How a board was made: values out of its records, under sentences that are the same for every
board.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from factories import record
from made_runs import made_run

from bench.board.board import build_board
from bench.records import Run, Training


def facts(*changes: dict[str, Any]) -> dict[str, str]:
    records = [record(f"m{i}", 1 + i, **one) for i, one in enumerate(changes)]
    runs = [Run(record=one, folder=Path("nowhere")) for one in records]
    return dict(build_board(runs, version="v7", title="T").made)


def test_the_facts_of_a_board(snapshot: Any) -> None:
    assert facts({}, {}, {"training": Training(steps=10, sentences=1_000)}) == snapshot


def test_how_it_was_made_says_if_lengths_and_tuning_differ(tmp_path: Path) -> None:
    """Whatever the publisher's note says: "one budget and one tuning for every method" was false of
    v4.
    """
    tuned = {"search": {"name": "first", "trials": 6}}
    long = Training(steps=313, sentences=10_016)
    records = [
        made_run(tmp_path, "simcse", 1, provenance={"execution": tuned}),
        made_run(tmp_path, "flow", 1, training=long),
        made_run(tmp_path, "cls", None, training=None),
    ]
    assert records[0].training is not None
    made = build_board(
        [Run(one, tmp_path / one.run_id) for one in records],
        version="v1",
        title="Made",
        note="One budget and one tuning for every method.",
    ).made
    steps = records[0].training.steps
    assert made["Length of training"] == f"{steps:,} steps: 1 run; 313 steps: 1 run"
    assert made["Values"].split("; ") == ["paper: 1 run", "tuned: 6 trials in first: 1 run"]
