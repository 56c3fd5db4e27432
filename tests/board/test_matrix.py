"""The matrix of methods by suites: its rows, columns and cells are those of the tables."""

from __future__ import annotations

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from compared_runs import runs_in
from made_runs import made_runs
from msgspec.structs import replace

from bench.base.markup import as_markdown
from bench.board.board import Board, build_board
from bench.board.matrix import Matrix
from bench.board.pages.board import render_board
from bench.board.pages.matrix import matrix_grid, shown_matrix
from bench.board.pages.matrix_picture import DARK, LIGHT, WIDTH, matrix_pictures, picture_rows
from bench.board.pages.questions import answered_questions, questions_grid
from bench.compare.words.finding import comparison_of

NOISES = {"simcse": 0.4, "promcse": 0.9, "conpvp": 0.45}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("runs")
    records = made_runs(folder, NOISES, suites=("sts", "transfer"))
    return build_board(runs_in(folder, records), version="v1", title="Test")


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
    page = render_board(board)
    (cell,) = [row.cells[0] for row in matrix.rows if row.first.row.method == "promcse"]
    assert cell is not None and cell.against is not None and cell.word == "worse"
    difference = f"{cell.against.difference:+.1f}".replace("-", "−")
    anchor = f"cell-{cell.shown.anchor}--promcse"
    assert f'class="cell worse" href="#{anchor}">{difference} ' in page
    assert "cp -r leaderboards/v1 mine" in page
    opened = page.split(f'id="{anchor}"')[1].split("</section>")[0]
    low = f"{cell.against.ci_low:+.2f}".replace("-", "−")
    assert low in opened and "is needed" in opened
    assert opened.count("<circle") == 6, "every seed of the row and of the baseline"
    assert "+2.24 on BERT-base" in opened, "the paper's gain"
    for run in cell.row.runs[:1]:
        assert f"runs/{run}/index.html" in opened


def test_a_cell_gives_the_commands_of_both_rows_of_its_difference(tmp_path: Path) -> None:
    records = made_runs(tmp_path, NOISES, seeds=(1, 2, 3), suites=("sts", "transfer"))
    runs = runs_in(tmp_path, records)
    for run in runs:
        (run.folder / "plan.toml").write_text("[[run]]\n")
    first = {run.record.method: run.record.run_id for run in reversed(runs)}
    page = render_board(build_board(runs, version="v1", title="Test"))
    opened = re.findall(r'<section class="open-cell".*?</section>', page, re.DOTALL)
    of_promcse = [html.unescape(re.sub("<.*?>", "", one)) for one in opened if "PromCSE" in one]
    assert len(of_promcse) == 2
    for text in of_promcse:
        for method in ("promcse", "simcse"):
            command = f"bench run --plan runs/{first[method]}/plan.toml --seeds 1-3\n"
            assert text.count(command) == 1


def test_markdown_has_the_matrix_in_words(board: Board) -> None:
    shown = shown_matrix(board)
    assert shown is not None
    text = as_markdown(matrix_grid(shown))
    (line,) = [one for one in text.splitlines() if one.startswith("| PromCSE")]
    assert line.count("worse") >= 1 and "+2.24" in line
    assert "SimCSE, score" in text


PLACEBO = """[question]
text = "Does what differs in nothing read inconclusive?"
baseline = "simcse"
rows = ["simcse+placebo"]
"""
PRIMARY = """[question]
text = "Do PromCSE and ConPVP beat SimCSE?"
baseline = "simcse"
rows = ["promcse", "conpvp"]
"""


def test_a_further_question_stands_below_the_matrix_and_not_in_it(tmp_path: Path) -> None:
    """Also on a suite with a protocol that papers print, whose table is looked for by it."""
    suites = ("sts", "cxc")
    records = made_runs(tmp_path, NOISES, suites=suites)
    records += made_runs(tmp_path, {"simcse": 0.4}, (11, 12, 13), suites, variant="placebo")
    for record in records:
        asked = PLACEBO if record.variant else PRIMARY
        (tmp_path / record.run_id / "plan.toml").write_text(asked, encoding="utf-8")
    board = build_board(runs_in(tmp_path, records), version="v1", title="Test")
    matrix = board.matrix
    assert matrix is not None
    assert {row.first.row.method for row in matrix.rows} == {"promcse", "conpvp"}
    assert all(not shown.table.is_further for shown in matrix.columns)
    for row in (*matrix.rows, matrix.baseline):
        assert None not in row.cells, "the main table of each suite"
    answered = answered_questions(board)
    assert answered is not None and answered.columns == ["STS", "CxC"]
    (question,) = answered.questions
    assert question.text == "Does what differs in nothing read inconclusive?"
    assert question.against == "SimCSE, unsupervised"
    (row,) = question.rows
    assert row.name == "SimCSE+placebo"
    page = render_board(board)
    for cell in row.cells:
        assert cell is not None and cell.judged
        assert f'class="cell {cell.word}" href="#{cell.anchor}">{cell.text} ' in page
        assert f'<tr id="{cell.anchor}" ' in page
    text = as_markdown(questions_grid(answered))
    assert f"SimCSE\\+placebo | SimCSE, unsupervised | {row.cells[0].text}" in text.replace(
        "\\-", "-"
    )


NARROW = 358
"""Pixels that a README has on a phone."""


def test_the_picture_has_every_word_in_letters_that_a_phone_shows(board: Board) -> None:
    shown = shown_matrix(board)
    assert shown is not None
    pictures = matrix_pictures(shown)
    assert pictures == matrix_pictures(shown), "the same bytes"
    for name in (LIGHT, DARK):
        svg = html.unescape(pictures[name].decode())
        assert svg.split("<svg")[1].split(">")[0].count(f'width="{WIDTH:g}"') == 1
        sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)]
        assert sizes and min(sizes) * NARROW / WIDTH >= 10
        texts = re.findall(r">([^<>]+)</text>", svg)
        for row, stands in picture_rows(shown):
            assert row.name in texts and f"paper {row.claimed}" in texts
            for cell in filter(None, row.cells):
                place = texts.index(cell.text)
                assert texts[place + 1] == (cell.word or stands)
        assert "1f5f9e" not in svg or name == LIGHT
    (card,) = [content for name, content in pictures.items() if name.endswith(".png")]
    assert card[:4] == b"\x89PNG" and int.from_bytes(card[16:20], "big") == 1200


def test_a_foreign_name_leaves_the_picture_a_picture(board: Board) -> None:
    shown = shown_matrix(board)
    assert shown is not None
    drawn = matrix_pictures(replace(shown, baseline="a\x00<b>$x$", columns=["", "\x1b[31m"]))
    text = "".join(ElementTree.fromstring(drawn[LIGHT]).itertext())
    assert "<b>$x$" in text and "\x1b" not in text


def test_one_suite_needs_no_matrix(tmp_path: Path) -> None:
    records = made_runs(tmp_path, NOISES, suites=("sts",))
    made = build_board(runs_in(tmp_path, records), version="v1", title="Test")
    assert made.matrix is None and 'class="matrix"' not in render_board(made)
