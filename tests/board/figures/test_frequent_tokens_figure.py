"""The figure of STS averages without the most frequent tokens (ConPVP's figure 5)."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from boards_for_figures import board_of
from factories import write_run
from made_predictions import scored
from made_runs import made_run
from msgspec.structs import replace

from bench.board.figures import board_figures
from bench.records import RunsFolder

NOISE = {4: 0.7, 64: 0.2}
PROTOCOL = "sts:senteval-all-without-{}-tokens/1"


def test_a_line_has_the_average_of_each_number_of_tokens_that_a_run_has(tmp_path: Path) -> None:
    store, values = RunsFolder(tmp_path / "runs"), dict[tuple[str, int], list[float]]()
    for method in ("simcse", "conpvp"):
        for seed in (1, 2):
            made = made_run(tmp_path / "runs", method, seed)
            (whole,) = (one.value for one in made.scores if one.task == "Avg.")
            values.setdefault((method, 0), []).append(whole)
            said = []
            for k, noise in NOISE.items():
                found = scored(PROTOCOL.format(k), f"{method} ", seed, noise, 150)
                printed = [round(score.value, 2) for score, _ in found]
                values.setdefault((method, k), []).append(round(fmean(printed), 2))
                said += found
            shorter = tuple(score for score, _ in said)
            write_run(store, replace(made, scores=(*made.scores, *shorter)), said)
    figures = [one for one in board_figures(board_of(tmp_path / "runs"))]
    (figure,) = (one for one in figures if one.kind == "frequent-tokens")
    assert figure.header == ("method", "tokens taken out", "STS average, Spearman × 100")
    drawn = {(name.lower(), int(k)): value for name, k, value in figure.data}
    assert drawn.keys() == values.keys()
    for place, of_seeds in values.items():
        assert abs(float(drawn[place]) - fmean(of_seeds)) < 0.006, place
