"""Figures of two folders with one name."""

from __future__ import annotations

from pathlib import Path

from boards_for_figures import board_of
from made_runs import made_runs

from bench.board.figures import board_figures


def test_two_folders_of_one_name_have_figures_of_their_own(tmp_path: Path) -> None:
    for backbone in ("first/encoder", "second/encoder"):
        made_runs(tmp_path, {"simcse": 0.62, "promcse": 0.55}, backbone=backbone)
    every = board_figures(board_of(tmp_path))
    names = [one.name for one in every if one.name.startswith("gains")]
    assert names == ["gains-unsupervised-encoder", "gains-unsupervised-encoder-2"]
