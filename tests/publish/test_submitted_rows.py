"""What a board says where others sent something in: a perfect forgery, an honest run, and one that was made again here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from html5lib import HTMLParser
from made_runs import made_run, made_runs
from msgspec import structs

from bench.board.board import Board, BoardTable, PublishedRun
from bench.board.content import board
from bench.board.judged_tables import UNRANKED, leaps
from bench.publish import readme
from bench.references import results
from bench.runs import RunRecord
from bench.show.figures import figures
from bench.show.pages import board as main_page
from bench.show.pages import method_page, run_page
from bench.show.pages.score_tables import score_tables

SUITES = ("sts", "geometry")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def own(runs: Path) -> list[PublishedRun]:
    records = made_runs(runs, {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=SUITES)
    return [
        PublishedRun(record=one, folder=runs / one.run_id)
        for one in (*records, made_run(runs, "cls", None, noise=1.6))
    ]


def sent(record: RunRecord, runs: Path, grade: str = "submitted", by: str = "Eve") -> PublishedRun:
    return PublishedRun(
        record=record,
        folder=runs / record.run_id,
        grade=grade,
        submitted_by=by,
        reason="sent in by Eve",
    )


@pytest.fixture(scope="module")
def forged(runs: Path) -> list[PublishedRun]:
    """Predictions that are the gold values, of a method of its own and of one that the board has; on hardware that most runs then have."""
    made = [
        made_run(runs, name, seed, noise=0, suites=SUITES, device="gpu: Eve's")
        for name in ("best", "simcse")
        for seed in range(7, 11)
    ]
    assert {score.value for one in made for score in one.scores if score.task == "STS-B"} == {100.0}
    return [sent(one, runs) for one in made]


def shown(found: Sequence[PublishedRun]) -> Board:
    return board(found, version="v1", title="A board")


def checked(made: Board) -> list[BoardTable]:
    return [one for one in made.tables if one.checked]


@pytest.mark.slow
def test_nothing_that_is_said_of_the_boards_own_runs_is_another(
    own: list[PublishedRun], forged: list[PublishedRun]
) -> None:
    """Tables, verdicts, ranks, costs, the answer, the captions: with eight perfect forgeries beside five runs as without them."""
    before, after = shown(own), shown([*own, *forged])
    assert (
        tuple(checked(after)) == before.tables
        and after.answer == before.answer
        and "Eve" not in after.answer
    )
    assert figures(after) == figures(before) and after.date == before.date
    mine = {(fact.topic, fact.command): fact.text for fact in after.made}
    changed = {fact.topic for fact in before.made if mine[fact.topic, fact.command] != fact.text}
    assert changed == {"Trust"} and mine["Sent in", None].startswith(
        "8 runs were sent in by Eve; the predictions of none of them were made"
    )


@pytest.mark.slow
def test_a_forgery_is_neither_marked_nor_tested_nor_ranked_and_is_flagged(
    own: list[PublishedRun], forged: list[PublishedRun]
) -> None:
    made = shown([*own, *forged])
    aside = [one for one in made.tables if not one.checked]
    assert [one.table.suite for one in aside] == ["sts", "geometry"] and made.tables[-2:] == tuple(
        aside
    )
    sts = aside[0]
    assert sts.anchor.endswith("-submitted") and sts.selection.endswith(
        "stand in a table of their own, and nothing is ranked."
    )
    assert [(row.method, dict(row.differs)["submitted by"]) for row in sts.table.rows] == [
        ("best", "Eve, not checked here"),
        ("simcse", "Eve, not checked here"),
    ]
    for row in sts.table.rows:
        assert (
            not row.may_be_best
            and row.cost is None
            and not row.is_baseline
            and row.difference is None
        )
        assert all(
            cell is not None and cell.mark == "" and cell.against is None and cell.spread is None
            for cell in row.cells
        )
    assert UNRANKED in sts.table.notes and sts.table.baseline is None
    (flag,) = [note for note in sts.table.notes if note.startswith("far from every known row: ")]
    assert (
        "best, submitted by Eve, not checked here: STS12 100.00 (the best known is " in flag
        and "and 5 more; simcse" in flag
    )


@pytest.mark.slow
def test_one_that_was_made_again_here_is_ranked_and_still_flagged(
    own: list[PublishedRun], forged: list[PublishedRun], runs: Path
) -> None:
    """A checkpoint that was trained on the test sets gives such predictions: the leap is told, the grade says what was done."""
    made = shown([*own, replace(forged[0], grade="checkpoint")])
    (sts,) = [one for one in made.tables if one.table.suite == "sts"]
    first = sts.table.rows[0]
    assert (first.method, first.may_be_best, dict(first.differs)) == (
        "best",
        True,
        {"submitted by": "Eve"},
    )
    assert first.cost is None and all(row.cost is not None for row in sts.table.rows[1:]), (
        "its cost is the sender's word"
    )
    assert made.answer.split(": ")[1].startswith("best submitted by=Eve ")
    assert any("best, submitted by Eve: STS12 100.00" in note for note in sts.table.notes)


def test_an_honest_submission_is_not_flagged(own: list[PublishedRun], runs: Path) -> None:
    honest = sent(made_run(runs, "honest", 3, noise=0.45, suites=SUITES), runs, by="Ada")
    made = board([*own, honest], version="v1", title="A board", statistics="no")
    aside = [one for one in made.tables if not one.checked]
    assert len(aside) == 2 and not [
        note for one in aside for note in one.table.notes if note.startswith("far from")
    ]
    assert "1 run was sent in by Ada" in next(
        fact.text for fact in made.made if fact.topic == "Sent in"
    )


def test_a_leap_is_measured_from_the_best_known_value(own: list[PublishedRun], runs: Path) -> None:
    """A hundredth below and above it; of what is better the lower it is, a tenth as much downwards."""
    made = board([*own, sent(own[0].record, runs)], version="v1", title="A board", statistics="no")
    known = [one.table for one in checked(made)]
    for suite, column, step in (("sts", "STS13", 3.0), ("geometry", "uniformity", -0.3)):
        table = next(
            one.table for one in made.tables if not one.checked and one.table.suite == suite
        )
        j = table.columns.index(column)
        values = [
            row.cells[j].mean
            for one in known
            if one.suite == suite
            for row in one.rows
            if row.cells[j]
        ]  # type: ignore[union-attr]
        values += [one.value for one in results(task=column)]
        best = min(values) if step < 0 else max(values)
        row = table.rows[0]
        for more, told in ((0.99, False), (1.01, True)):
            cell = row.cells[j]
            assert cell is not None
            cells = tuple(
                replace(cell, mean=best + step * more) if i == j else None
                for i in range(len(row.cells))
            )
            said = leaps(replace(table, rows=(replace(row, cells=cells),)), known)
            assert bool(said) is told, (suite, more, said)


def test_where_everything_was_sent_in_nothing_is_answered(
    runs: Path, forged: list[PublishedRun]
) -> None:
    made = board(forged[:1], version="v1", title="A board", statistics="no")
    assert made.answer == "Every row was sent in, and none was checked here yet: none is ranked."
    assert not checked(made) and made.tables


def test_pages_say_whose_word_it_is(
    own: list[PublishedRun], forged: list[PublishedRun], runs: Path
) -> None:
    late = structs.replace(
        forged[0].record,
        provenance=structs.replace(forged[0].record.provenance, created="9999-12-31T00:00:00Z"),
    )
    mine = replace(forged[0], record=late)
    made = board([*own, mine, forged[1]], version="v1", title="A board", statistics="no")
    html = main_page.render(made)
    HTMLParser(strict=True).parse(html)
    assert (
        "best</a> <small>submitted by=Eve, not checked here</small>" in html and "9999" not in html
    )
    assert (
        "<em>own</em>: The keeper&#39;s word" in html or "<em>own</em>: The keeper's word" in html
    )
    shown_tables = {one.anchor: one for one in score_tables(made)}
    for one in made.tables:
        assert shown_tables[one.anchor].marks is one.checked, (
            "a legend of marks only where there are some"
        )
        assert {row.grade for row in shown_tables[one.anchor].rows} == (
            {"own"} if one.checked else {"submitted"}
        )
    text = readme.markdown_page(made)
    assert "submitted, sent by Eve" in text and "9999" not in text
    method = method_page.render(made, "best")
    assert "submitted, sent by Eve" in method and "9999" not in method
    page = run_page.render(made, mine)
    assert "command, recipe, training, cost and provenance on this page are the sender" in page
    assert "sender" not in run_page.render(made, own[0])
