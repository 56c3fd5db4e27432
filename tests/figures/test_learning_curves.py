"""Learning curves of all methods of a table in one figure: its points are those of the runs' own files, its caption follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from made_runs import made_runs
from msgspec import structs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.runs import RunsFolder
from bench.show.figures.drawing import Figure
from bench.show.figures.learning import Course, Point, _finding, learning
from bench.show.figures.points import table_groups


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("learning") / "runs"
    made_runs(
        folder,
        {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44},
        seeds=(1, 2, 3),
        suites=("sts",),
    )
    records, _ = RunsFolder(folder).records()
    return board(
        [PublishedRun(record=one, folder=Path(folder) / one.run_id) for one in records],
        version="v1",
        title="T",
        statistics="no",
    )


def drawn(made: Board) -> Figure | None:
    return learning(table_groups(made)[0], {run.record.run_id: run for run in made.runs})


def test_its_points_are_those_of_the_curves(made: Board) -> None:
    figure = drawn(made)
    assert figure is not None and figure.header == (
        "method",
        "seed",
        "steps",
        "sentences",
        "seconds",
        "STS-B dev",
    )
    expected = []
    for run in made.runs:
        training = run.record.training
        assert training is not None and training.sentences is not None
        for entry in map(json.loads, (run.folder / "curve.jsonl").read_text().splitlines()):
            if "dev_score" in entry:
                seen = entry["step"] * training.sentences / training.steps
                expected.append(
                    (
                        run.record.method,
                        float(run.record.seed or 0),
                        entry["step"],
                        pytest.approx(seen),
                        pytest.approx(seen / entry["sentences_per_second"], abs=0.01),
                        pytest.approx(entry["dev_score"], abs=1e-4),
                    )
                )
    order = sorted(figure.data, key=lambda row: (row[0], row[1], row[2]))
    assert len(expected) > 9 and order == sorted(expected, key=lambda row: row[:3])
    ends = {
        method: fmean(
            float(row[5])
            for row in figure.data
            if row[0] == method and row[2] == max(row[2] for row in figure.data)
        )
        for method in made.methods
    }
    best = max(ends, key=lambda method: ends[method])
    assert figure.caption.startswith(f"{best} ends highest, at {ends[best]:.2f}; ")


def test_none_without_two_curves_and_other_dev_sets_are_no_points(made: Board) -> None:
    assert (
        drawn(
            replace(
                made, runs=tuple(replace(run, folder=run.folder / "nothing") for run in made.runs)
            )
        )
        is None
    )

    def other(run: PublishedRun) -> PublishedRun:
        assert run.record.training is not None
        training = structs.replace(run.record.training, dev_task="SICK-R validation")
        return (
            replace(run, record=structs.replace(run.record, training=training))
            if run.record.method == "promcse"
            else run
        )

    figure = drawn(replace(made, runs=tuple(map(other, made.runs))))
    assert figure is not None and {row[0] for row in figure.data} == {"simcse", "promptbert"}


def course(label: str, *scores: float) -> Course:
    return Course(
        label=label,
        seeds=((1, tuple(Point(i + 1.0, i + 1.0, None, one) for i, one in enumerate(scores))),),
        timed=False,
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            [course("a", 60, 62), course("b", 61, 63)],
            "b ends highest, at 63.00; all were higher at the last score than at the one before.",
        ),
        (
            [course("a", 60, 64), course("b", 65, 63)],
            "a ends highest, at 64.00; 1 of 2 was higher at the last score than at the one before.",
        ),
        (
            [course("a", 66, 64), course("b", 65, 64)],
            "a and b end highest, at 64.00; none were higher at the last score than at the one before.",
        ),
        (
            [course("a", 60, 61), course("b", 60, 63), course("c", 70, 1)],
            "b ends highest, at 63.00; 2 of 3 were higher at the last score than at the one before.",
        ),
    ],
)
def test_each_claim_of_the_caption_flips_with_the_data(found: list[Course], said: str) -> None:
    assert _finding(found) == said
