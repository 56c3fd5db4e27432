"""Boards with every figure, drawn once."""

from __future__ import annotations

import pytest
from boards_for_figures import board_of, fill
from drawn_figures import LENGTHS, Drawn, draw, with_captions
from made_runs import made_run, made_runs


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draw a board that has every figure."""
    runs = fill(tmp_path_factory.mktemp("figures") / "runs")
    for length in LENGTHS:
        recipe = {"prompt_length": length}
        made_run(runs, "promcse", 1, noise=0.5 + 0.3 / length, recipe=recipe, suites=("sts",))
    return draw(with_captions(board_of(runs)))


@pytest.fixture(scope="session")
def with_papers(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draw a board on a backbone of the papers."""
    runs, backbone = tmp_path_factory.mktemp("papers") / "runs", "bert-base-uncased"
    made_runs(runs, {"simcse": 0.62, "promcse": 0.55}, backbone=backbone)
    for length in LENGTHS:
        recipe = {"prompt_length": length}
        made_run(runs, "promcse", 1, noise=0.5, backbone=backbone, recipe=recipe)
    return draw(board_of(runs))
