"""A printed number is shown with its verdict here: only for the same method, backbone and recipe,
and judged like a reproduction.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from statistics import fmean

import pytest
from made_runs import made_runs
from msgspec import structs
from scipy.stats import t as student

from bench.base.grid import GridCell
from bench.board.board import Board, build_board
from bench.board.pages import board as pages
from bench.board.pages import method_page
from bench.board.pages.printed import printed_papers
from bench.papers import results
from bench.records import Run, RunsFolder
from bench.records.record import RecipeValue

PRINTED = {
    one.task: one.value
    for one in results(paper="promcse")
    if (one.table, one.label) == ("1", "SimCSE-BERT-base") and one.setting == "unsupervised"
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("printed") / "runs"
    made_runs(folder, {"simcse": 0.7}, seeds=(1, 2, 3, 4), backbone="bert-base-uncased")
    records, _ = RunsFolder(folder).records()
    return [Run(record=one, folder=Path(folder) / one.run_id) for one in records]


def moved(runs: list[Run], by: float, senders: dict[str, str] | None = None) -> Board:
    """Make runs with the printed scores plus an offset, a hundredth apart from seed to seed."""
    found = []
    for i, run in enumerate(runs):
        scores = tuple(
            structs.replace(one, value=PRINTED[one.task] + by + 0.01 * i)
            if one.task in PRINTED
            else one
            for one in run.record.scores
        )
        found.append(run._replace(record=structs.replace(run.record, scores=scores)))
    return build_board(found, version="v1", title="T", senders=senders)


def cells(made: Board, sign: str | None = None) -> dict[str, GridCell]:
    """Task -> our number below the printed row; empty if there is none."""
    tables = itertools.chain.from_iterable(printed_papers(made).values())
    (grid,) = [one.grid for one in tables if one.anchor == "printed-promcse-1"]
    labels = [[cell.main for cell in row[:2]] for row in grid.rows]
    places = [
        i for i, label in enumerate(labels) if label == ["SimCSE-BERT-base", "bert-base-uncased"]
    ]
    below = [grid.rows[i + 1] for i in places if labels[i + 1][0] == "ours"]
    names = [column.name for column in grid.columns]
    found = {}
    for row in below:
        for name, cell in zip(names, row, strict=True):
            if cell.number is not None:
                found[name] = cell
    return found


@pytest.mark.parametrize(("by", "sign"), [(0.0, ""), (8.0, "outside")])
def test_our_number_and_the_verdict_are_below_a_printed_number(
    runs: list[Run], by: float, sign: str
) -> None:
    made = moved(runs, by)
    found = cells(made)
    assert {task for task, cell in found.items() if cell.sign == sign} == set(PRINTED)
    scores = [score for run in made.runs for score in run.record.scores]
    for task, cell in found.items():
        ours = fmean(score.value for score in scores if score.task == task)
        half = float(student.ppf(0.975, 3)) * 0.01 * (5 / 3) ** 0.5 * (1 + 1 / 4) ** 0.5
        assert (cell.number, cell.spread) == (pytest.approx(ours), pytest.approx(half, abs=1e-6))
    assert found["STS12"].main in method_page.render_method(made, "simcse")
    assert found["STS12"].main in pages.render_board(made)


def test_another_recipe_backbone_or_sender_is_no_test_of_a_print(runs: list[Run]) -> None:
    assert cells(moved(runs, 0.0))
    key, value = next(iter(runs[0].record.recipe.items()))
    by_hand = {key: RecipeValue(value=value.value, source="--set")}
    others = [
        one._replace(record=structs.replace(one.record, recipe={**one.record.recipe, **by_hand}))
        for one in runs
    ]
    assert not cells(moved(others, 0.0))
    senders = {one.record.run_id: "Ada" for one in runs}
    assert not cells(moved(runs, 0.0, senders))
    small = [one._replace(record=structs.replace(one.record, backbone="builtin")) for one in runs]
    assert not cells(moved(small, 0.0))
