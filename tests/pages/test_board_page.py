"""The main page of a version: what stands in it, before any browser draws it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html5lib import HTMLParser
from made_runs import HOSTILE, made_run, made_runs
from msgspec import structs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.board.repeat import repeat
from bench.compare.statements import compared
from bench.references.audit import audit, count_told
from bench.runs import Cost, RunsFolder
from bench.runs.record import EncodingCost
from bench.show.figures import Figure
from bench.show.pages import board as pages
from bench.show.pages import printed, score_tables
from bench.show.pages.comparison import render_page

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Three methods, three seeds, sts."""
    folder = tmp_path_factory.mktemp("board") / "runs"
    made_runs(folder, METHODS, seeds=(1, 2, 3), suites=("sts", "geometry"))
    runs = [
        PublishedRun(record=record, folder=folder / record.run_id)
        for record in RunsFolder(folder).records()[0]
    ]
    return board(
        runs,
        version="v1",
        title="Some sentences",
        note="No evidence.",
        left_out=("simcse-x: failed",),
        baseline="simcse",
    )


def data_of(html: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="board-data">(.*?)</script>', html, re.DOTALL
    )
    assert found
    return json.loads(found[1])


def test_the_page_is_valid_and_the_same_twice(made: Board) -> None:
    html = pages.render(made)
    HTMLParser(strict=True).parse(html)
    assert html == pages.render(made)


def test_every_number_links_to_a_run_and_is_the_tables(made: Board) -> None:
    html = pages.render(made)
    sts = next(one for one in made.tables if one.table.suite == "sts")
    for row in sts.table.rows:
        for cell in row.cells:
            assert cell is not None
            assert re.search(
                rf'<a href="runs/{re.escape(row.runs[0])}/index.html">(<[bu]>)?{cell.mean:.{cell.decimals}f}(</[bu]>)?</a>',
                html,
            )


def test_the_panel_knows_seeds_interval_and_command(made: Board) -> None:
    data = data_of(pages.render(made))
    records = {run.record.run_id: run.record for run in made.runs}
    for one in made.tables:
        kept = data["tables"][one.anchor]
        for row, (runs, cells, (what, suites, needs)) in zip(
            one.table.rows, kept["rows"], strict=True
        ):
            again = repeat([records[run] for run in row.runs], [one.table.suite])
            assert (f"{data['texts'][what]} {data['texts'][suites]}", data["texts"][needs]) == (
                again.command,
                again.needs,
            )
            assert [data["runs"][run][0] for run in runs] == [f"runs/{run}" for run in row.runs]
            for cell, found, column in zip(row.cells, cells, kept["columns"], strict=False):
                assert cell is not None and found[0] == [
                    round(value, column["d"]) for value in cell.values
                ]
                if cell.spread:
                    assert found[1:3] == [
                        round(cell.spread.low, column["d"]),
                        round(cell.spread.high, column["d"]),
                    ]
            for run in runs:
                folder, seed, _, by = data["runs"][run]
                assert (seed, by) == (records[folder.removeprefix("runs/")].seed, None)


def test_predictions_are_linked_where_they_lie(made: Board) -> None:
    data = data_of(pages.render(made))
    for one in made.tables:
        for column in data["tables"][one.anchor]["columns"]:
            there = column["task"] != "Avg."
            assert bool(column["file"]) == there
            assert not there or column["file"] == "predictions.parquet"


def test_the_verdict_against_the_baseline_is_the_tables(made: Board) -> None:
    data = data_of(pages.render(made))
    one = next(one for one in made.tables if one.table.suite == "sts")
    kept = data["tables"][one.anchor]["baseline"]
    assert kept["name"] == "simcse" and one.table.rows[kept["row"]].name == "simcse"
    letters = {"better": "b", "worse": "w", "inconclusive": "u"}
    for row, verdicts in zip(one.table.rows, kept["rows"], strict=True):
        *tasks, head = verdicts[: len(row.cells)]
        against = compared(row)
        assert not any(tasks), "single tasks are not tested"
        if against is None:
            assert head == 0
            continue
        assert head[0] == letters[against.verdict or ""]
        assert head[1:4] == [
            round(value, 2) for value in (against.difference, against.ci_low, against.ci_high)
        ]
        assert head[4] == float(f"{100 * against.ci_level:.3g}")
    assert any(row[len(one.table.columns) - 1] for row in kept["rows"])


def test_a_page_of_many_numbers_has_one_link_a_row(
    made: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_tables, "MOST_LINKS", 0)
    html = pages.render(made)
    HTMLParser(strict=True).parse(html)
    links = re.findall(r'<td[^>]*><a href="runs/', html)
    assert len(links) == sum(
        len(one.table.rows) * (2 if one.table.columns[-1] == "Avg." else 1) for one in made.tables
    )


def test_a_comparison_of_the_same_runs_draws_the_same_table(made: Board) -> None:
    def numbers(page: str) -> list[tuple[str, str]]:
        table = page[page.index('<table class="main') : page.index("</table>")]
        return re.findall(r"<(b|u|small|a)\b[^>]*>(±?[\d.]+)<", table)

    page = render_page([run.record for run in made.runs], tables=[one.table for one in made.tables])
    assert numbers(pages.render(made)) == numbers(page) != []


def test_rows_that_may_be_the_best_are_shaded_on_the_average_alone(made: Board) -> None:
    (table,) = [one for one in score_tables.score_tables(made) if one.suite == "sts"]
    (of,) = [one.table for one in made.tables if one.table.suite == "sts"]
    tops = [[cell.top for cell in row.cells[:8] if cell] for row in table.rows]
    assert tops == [[False] * 7 + [row.may_be_best] for row in of.rows]
    assert any(row.may_be_best for row in of.rows)


def test_foreign_text_stays_text(made: Board) -> None:
    hostile = replace(
        made,
        title=HOSTILE,
        note=HOSTILE,
        answer=HOSTILE,
        left_out=(HOSTILE,),
        runs=tuple(
            replace(run, record=structs.replace(run.record, method=HOSTILE, variant=HOSTILE))
            for run in made.runs
        ),
    )
    html = pages.render(hostile)
    HTMLParser(strict=True).parse(html)
    assert "<script>window" not in html and "<img" not in html and "\u202e" not in html
    assert html.count("<script") == 4, "three of ours, and the data"
    commands = data_of(html)["texts"]
    assert any("<script>window" in one for one in commands) and not any(
        "\u202e" in one for one in commands
    )
    assert "<" not in json.dumps(data_of(html)).replace(json.dumps(commands), "")


def test_a_long_table_of_a_figure_is_in_its_file(made: Board) -> None:
    figure = Figure(
        name="many",
        kind="cost",
        title="Many",
        caption="All <of> them.",
        svg="<svg></svg>",
        header=("a", "b"),
        data=tuple((f"m{i}", i / 3) for i in range(pages.MOST_DATA + 5)),
    )
    page = pages.board_page(made, [figure] * 4)
    assert (len(page.figures), len(page.more_figures)) == (3, 1)
    assert (
        page.figures[0].more == 5
        and page.figures[0].numbers == (False, True)
        and page.figures[0].rows[1] == ("m1", "0.3333")
    )
    html = pages.render(made, [figure])
    assert (
        "5 more rows" in html
        and "All &lt;of&gt; them." in html
        and 'src="figures/many.svg"' in html
    )


def test_printed_tables_are_all_there_with_their_remarks(made: Board) -> None:
    papers = printed.printed_papers(made)
    assert sum(len(paper.tables) for paper in papers) == len(made.references) > 0
    html = pages.render(made)
    for paper in papers:
        for table in paper.tables:
            anchors = [remark.anchor for note in table.notes for remark in note.remarks]
            assert len(set(anchors)) == len(anchors) and all(
                html.count(f' id="{anchor}"') == 1 for anchor in anchors
            )
            used = {remark.anchor for row in table.rows for remark in row.remarks}
            used |= {
                remark.anchor
                for row in table.rows
                for cell in row.cells
                if cell
                for remark in cell.remarks
            }
            assert used == set(anchors)
    assert any(table.notes for paper in papers for table in paper.tables)


def test_what_the_page_weighs_without_its_data(made: Board) -> None:
    """Script, style and the words around the numbers."""
    empty = replace(made, tables=(), references=(), runs=made.runs[:1], methods=())
    templates = Path(pages.__file__).with_name("templates")
    weight = len(pages.render(empty).encode()) + sum(
        (templates / name).stat().st_size
        for name in ("board.css", "panel.js", "compare.js", "board.js")
    )
    assert weight < 72_000


def test_a_note_is_two_sentences_and_the_rest_behind_a_word(made: Board) -> None:
    assert pages.first_sentences("One. Two! Three? Four.") == ("One. Two!", "Three? Four.")
    assert pages.first_sentences("Of 5.4 million weights, e.g. these. And v2.1 too.") == (
        "Of 5.4 million weights, e.g. these. And v2.1 too.",
        "",
    )
    assert pages.first_sentences("no end") == ("no end", "") and pages.first_sentences("") == (
        "",
        "",
    )
    html = pages.render(replace(made, note="One. Two. Three <b>."))
    assert re.search(
        r'<details class="note"><summary>One. Two. <span class="word">more</span></summary><p>Three &lt;b&gt;.</p></details>',
        html,
    )
    assert '<p class="note">One. Two.</p>' in pages.render(replace(made, note="One. Two."))
    assert 'class="note"' not in pages.render(replace(made, note=None))


def test_finished_encoders_stand_below_for_scale(tmp_path: Path) -> None:
    """The best untrained row of each other backbone, scored alike; never a trained one, and never ranked."""
    made_runs(tmp_path, {"simcse": 0.8, "promcse": 0.5}, seeds=(1, 2))
    made_run(tmp_path, "cls", None, noise=1.4)
    made_run(tmp_path, "cls", None, noise=0.2, backbone="mini")
    made_run(tmp_path, "first-last-avg", None, noise=0.1, backbone="mini")
    made_run(tmp_path, "cls", None, noise=0.3, backbone="other", text="raw")  # another text form
    made_run(tmp_path, "simcse", 1, noise=0.01, backbone="trained")
    found = board(
        [PublishedRun(record=one, folder=tmp_path) for one in RunsFolder(tmp_path).records()[0]],
        version="v1",
        title="t",
        statistics="no",
    )
    tables = {
        (one.setting, one.backbone, one.text): one for one in score_tables.score_tables(found)
    }
    scale = tables["unsupervised", "builtin", "tokenised"].finished
    assert [(row.method, row.beside) for row in scale] == [("first-last-avg", "mini")]
    (of_its_own,) = [
        row for row in tables["none", "mini", "tokenised"].rows if row.method == "first-last-avg"
    ]
    assert [cell and cell.text for cell in scale[0].cells] == [
        cell and cell.text for cell in of_its_own.cells
    ]
    assert tables["none", "mini", "tokenised"].finished == ()
    html = pages.render(found)
    assert html.count('<tbody class="finished">') == 2  # the trained backbone's table has it, too


def test_nothing_trained_took_no_time(tmp_path: Path) -> None:
    """Which is known, unlike the time of a trained run that did not record it."""
    free, unknown = (
        Cost(trainable_parameters=0, device="cpu"),
        Cost(trainable_parameters=5, device="cpu"),
    )
    made_run(tmp_path, "cls", None, cost=free)
    made_run(tmp_path, "simcse", 1)
    made_run(tmp_path, "promcse", 1, cost=unknown)
    found = board(
        [PublishedRun(record=one, folder=tmp_path) for one in RunsFolder(tmp_path).records()[0]],
        version="v1",
        title="t",
        statistics="no",
    )
    (table,) = score_tables.score_tables(found)
    times = {row.method: row.costs[1] for row in table.rows}
    assert (
        times["cls"] == ("none", 0.0) and times["promcse"] == ("", -1.0) and times["simcse"][1] > 0
    )


def test_encoding_is_a_column_of_what_was_measured_alike(tmp_path: Path) -> None:
    """A finished encoder below the table has its speed there only where it was measured under the table's condition."""
    here = EncodingCost(
        sentences_per_second=400.0,
        memory_bytes=5 * 10**8,
        device="cpu",
        threads=1,
        precision="fp32",
        text="t",
        torch="2.13.0",
        bench_version="0.1.0",
    )

    def speeds(finished: EncodingCost) -> dict[str, tuple[str, float]]:
        made_run(tmp_path, "simcse", 1, noise=0.5, cost=Cost(device="cpu", encoding=here))
        made_run(tmp_path, "promcse", 1, noise=0.8, cost=Cost(device="cpu"))
        made_run(
            tmp_path,
            "cls",
            None,
            noise=0.2,
            backbone="mini",
            cost=Cost(device="cpu", encoding=finished),
        )
        runs = [
            PublishedRun(record=one, folder=tmp_path) for one in RunsFolder(tmp_path).records()[0]
        ]
        (table,) = [
            one
            for one in score_tables.score_tables(
                board(runs, version="v1", title="t", statistics="no")
            )
            if one.setting != "none"
        ]
        assert table.costs == ("params", "train", "encode") and any(
            "encode was measured" in note for note in table.notes
        )
        return {row.method: row.costs[2] for row in (*table.rows, *table.finished)}

    assert speeds(here) == {
        "simcse": ("400/s", 400.0),
        "promcse": ("", -1.0),
        "cls": ("400/s", 400.0),
    }
    assert speeds(structs.replace(here, threads=2))["cls"] == ("", -1.0)


def test_a_remark_stands_once_however_many_rows_it_concerns(made: Board) -> None:
    for paper in printed.printed_papers(made):
        for one in paper.tables:
            (table,) = [table for table in made.references if table.anchor == one.anchor]
            said = [
                remark
                for row in table.rows
                for part in (row, *row.cells)
                if part is not None
                for remark in part.remarks
            ]
            shown = [remark for note in one.notes for remark in note.remarks]
            assert len(shown) == len({(r.kind, r.text) for r in said if r.kind != "copied"})
            assert sorted(r.text for r in shown) == sorted({r.text for r in shown})
            assert len(one.notes) == count_told(
                r for r in audit() if (r.paper, r.table) == (one.paper, one.table)
            ), "as the terminal counts"
            anchors = {remark.anchor for remark in shown}
            marks = {
                r.anchor
                for row in one.rows
                for part in (row, *row.cells)
                if part is not None
                for r in part.remarks
            }
            assert marks == anchors and all(remark.where for remark in (*one.notes, *shown))
