"""The figures of learning curves show means over runs, a figure for each backbone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from boards_for_figures import board_of
from drawn_figures import SEEDS, Drawn
from made_runs import made_runs

from bench.board.figures import board_figures
from bench.papers.names import printed_name


def test_learning_curves_are_means_of_those_of_the_runs(made: Drawn) -> None:
    scores: dict[tuple[str, float], list[float]] = {}
    for run in made.board.runs:
        done = run.record.training
        if done is None or done.sentences is None or "prompt_length" in run.record.recipe:
            continue
        for entry in map(json.loads, (run.folder / "curve.jsonl").read_text().splitlines()):
            if "dev_score" in entry:
                seen = round(entry["step"] * done.sentences / done.steps, 4)
                scores.setdefault((printed_name(run.record.method), seen), []).append(
                    entry["dev_score"]
                )
    data = {(str(name), float(x)): y for name, x, y in made.figures["learning"].data}
    shown = {place: values for place, values in scores.items() if place in data}
    assert len(data) == len(shown) > 9 and {len(values) for values in shown.values()} == {SEEDS}
    means = [np.mean(shown[place]) for place in data]
    np.testing.assert_allclose(list(data.values()), means, atol=1e-3)


def test_two_folders_of_one_name_have_figures_of_their_own(tmp_path: Path) -> None:
    for backbone in ("first/encoder", "second/encoder"):
        made_runs(tmp_path, {"simcse": 0.62, "promcse": 0.55}, backbone=backbone)
    every = board_figures(board_of(tmp_path))
    names = [one.name for one in every if one.kind == "gains"]
    assert names == ["gains-unsupervised-encoder", "gains-unsupervised-encoder-2"]
