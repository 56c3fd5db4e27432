"""Beside a printed number stands what became of it here: only of the same method, backbone and recipe, and judged as a reproduction is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from made_runs import made_runs
from msgspec import structs
from scipy.stats import t as student

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.references import results
from bench.runs import RunsFolder
from bench.runs.record import RecipeValue
from bench.show.pages import board as pages
from bench.show.pages import method_page
from bench.show.pages.printed import PrintedCell, printed_papers

PRINTED = {
    one.task: one.value
    for one in results(paper="promcse")
    if (one.table, one.label) == ("1", "SimCSE-BERT-base") and one.setting == "unsupervised"
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[PublishedRun]:
    folder = tmp_path_factory.mktemp("printed") / "runs"
    made_runs(folder, {"simcse": 0.7}, seeds=(1, 2, 3, 4), backbone="bert-base-uncased")
    records, _ = RunsFolder(folder).records()
    return [PublishedRun(record=one, folder=Path(folder) / one.run_id) for one in records]


def moved(runs: list[PublishedRun], by: float) -> Board:
    """Runs whose scores are the printed ones, so much off, and a hundredth apart from seed to seed."""
    found = []
    for i, run in enumerate(runs):
        scores = tuple(
            structs.replace(one, value=PRINTED[one.task] + by + 0.01 * i)
            if one.task in PRINTED
            else one
            for one in run.record.scores
        )
        found.append(replace(run, record=structs.replace(run.record, scores=scores)))
    return board(found, version="v1", title="T", statistics="no")


def cells(made: Board) -> dict[str, PrintedCell]:
    (table,) = [
        one
        for paper in printed_papers(made)
        for one in paper.tables
        if (one.paper, one.table) == ("promcse", "1")
    ]
    (row,) = [
        one
        for one in table.rows
        if one.label == "SimCSE-BERT-base" and one.setting == "unsupervised"
    ]
    return {
        task: cell for task, cell in zip(table.tasks, row.cells, strict=True) if cell is not None
    }


@pytest.mark.parametrize(
    ("by", "verdict", "sign"), [(0.0, "consistent", ""), (8.0, "differs", "≠")]
)
def test_a_printed_number_ours_and_the_verdict_in_one_cell(
    runs: list[PublishedRun], by: float, verdict: str, sign: str
) -> None:
    made = moved(runs, by)
    found = cells(made)
    assert {task for task, cell in found.items() if cell.verdict.startswith(verdict)} == set(
        PRINTED
    )
    for task, cell in found.items():
        ours = fmean(
            score.value for run in made.runs for score in run.record.scores if score.task == task
        )
        half = float(student.ppf(0.975, 3)) * 0.01 * (5 / 3) ** 0.5 * (1 + 1 / 4) ** 0.5
        assert (cell.ours, cell.between) == (f"{ours:.2f}", f"±{half:.2f}")
        assert (cell.sign, cell.text) == (sign, f"{PRINTED[task]:.2f}")
    html, of_method = pages.render(made), method_page.render(made, "simcse")
    assert "95 % prediction interval" in of_method and cells(made)["STS12"].ours in of_method
    assert f'title="{verdict}' in html and "none of them was put to the test" not in html


def test_another_recipe_backbone_or_sender_is_no_test_of_a_print(runs: list[PublishedRun]) -> None:
    assert all(cell.ours for cell in cells(moved(runs, 0.0)).values())
    key, value = next(iter(runs[0].record.recipe.items()))
    by_hand = {key: RecipeValue(value=value.value, source="--set")}
    others = [
        replace(one, record=structs.replace(one.record, recipe={**one.record.recipe, **by_hand}))
        for one in runs
    ]
    made = moved(others, 0.0)
    assert not any(
        cell.ours for cell in cells(made).values()
    ) and "none of them was put to the test" in pages.render(made)
    assert "95 % prediction interval" not in method_page.render(made, "simcse")
    sent = [replace(one, submitted_by="Ada") for one in runs]
    assert not any(cell.ours for cell in cells(moved(sent, 0.0)).values())
    small = [replace(one, record=structs.replace(one.record, backbone="builtin")) for one in runs]
    assert not any(cell.ours for cell in cells(moved(small, 0.0)).values())
