"""The matrix of methods by suites: its rows, columns and cells are those of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import made_runs

from bench.base.markup import as_markdown
from bench.board.board import Board, build_board
from bench.board.matrix import Matrix
from bench.board.pages.board import render_board
from bench.board.pages.matrix import matrix_grid
from bench.compare.words.finding import comparison_of
from bench.records import Run, RunsFolder

NOISES = {"simcse": 0.4, "promcse": 0.9, "conpvp": 0.45}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("runs")
    made_runs(folder, NOISES, seeds=(1, 2, 3), suites=("sts", "transfer"))
    store = RunsFolder(folder)
    runs = [Run(record, store.folder(record.run_id)) for record in store.records()[0]]
    return build_board(runs, version="v1", title="Test")


@pytest.fixture(scope="module")
def matrix(board: Board) -> Matrix:
    assert board.matrix is not None
    return board.matrix


def test_each_cell_is_the_row_of_the_same_runs_in_the_table_of_its_suite(
    board: Board, matrix: Matrix
) -> None:
    suites = [shown.table.suite for shown in matrix.columns]
    assert suites == ["sts", "transfer"]
    assert {row.first.row.method for row in matrix.rows} == {"promcse", "conpvp"}
    for row in (*matrix.rows, matrix.baseline):
        for shown, cell in zip(matrix.columns, row.cells, strict=True):
            assert cell is not None and cell.shown is shown
            assert set(cell.row.runs) == set(row.first.row.runs)
            assert cell.against == comparison_of(cell.row)


def test_the_page_has_a_cell_and_what_it_opens_without_scripts(
    board: Board, matrix: Matrix
) -> None:
    html = render_board(board)
    (cell,) = [row.cells[0] for row in matrix.rows if row.first.row.method == "promcse"]
    assert cell is not None and cell.against is not None and cell.word == "worse"
    difference = f"{cell.against.difference:+.1f}".replace("-", "−")
    anchor = f"cell-{cell.shown.anchor}--promcse"
    assert f'class="cell worse" href="#{anchor}">{difference} ' in html
    opened = html.split(f'id="{anchor}"')[1].split("</section>")[0]
    low = f"{cell.against.ci_low:+.2f}".replace("-", "−")
    assert low in opened and "is needed" in opened
    assert opened.count("<circle") == 6, "every seed of the row and of the baseline"
    assert "+2.24 on BERT-base" in opened, "the paper's gain"
    for run in cell.row.runs[:1]:
        assert f"runs/{run}/index.html" in opened


def test_markdown_has_the_matrix_in_words(matrix: Matrix) -> None:
    text = as_markdown(matrix_grid(matrix))
    (line,) = [one for one in text.splitlines() if one.startswith("| PromCSE")]
    assert line.count("worse") >= 1 and "+2.24" in line
    assert "SimCSE, score" in text


def test_one_suite_needs_no_matrix(tmp_path: Path) -> None:
    made_runs(tmp_path, NOISES, seeds=(1, 2, 3), suites=("sts",))
    store = RunsFolder(tmp_path)
    runs = [Run(record, store.folder(record.run_id)) for record in store.records()[0]]
    made = build_board(runs, version="v1", title="Test")
    assert made.matrix is None and 'class="matrix"' not in render_board(made)
