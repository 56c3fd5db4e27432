"""Boards with data for every figure, small and quick: a baseline and three methods."""

from __future__ import annotations

from pathlib import Path

from made_runs import made_run

from bench.board.board import Board, build_board
from bench.records import Cost, Run, RunsFolder

METHODS = {
    "simcse": (0.8, 5_000_000, 60.0),
    "promcse": (0.55, 24_576, 42.0),
    "promptbert": (0.5, 5_400_000, 300.0),
}
"""Method -> noise, trained parameters, seconds of training."""


def fill(runs: Path) -> Path:
    """Write runs of three trained methods with three seeds, and of an untrained one."""
    free = Cost(trainable_parameters=0, device="cpu: made")
    made_run(runs, "cls", None, noise=1.6, setting="none", training=None, cost=free)
    for method, (noise, trained, seconds) in METHODS.items():
        for seed in (1, 2, 3):
            cost = Cost(
                trainable_parameters=trained, train_seconds=seconds + seed, device="cpu: made"
            )
            made_run(runs, method, seed, noise=noise, cost=cost)
    return runs


def board_of(runs: Path) -> Board:
    folder = RunsFolder(runs)
    records, _ = folder.records()
    return build_board(
        [Run(record=one, folder=folder.folder(one.run_id)) for one in records],
        version="v1",
        title="made",
    )
