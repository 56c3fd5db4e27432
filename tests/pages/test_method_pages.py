"""The pages of methods: their numbers on every table, their runs, their recipes with sources, and what papers printed."""

from __future__ import annotations

import html as entities
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from made_runs import HOSTILE, hostile_run, made_run, made_runs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.references import results
from bench.run.descriptions import method_description
from bench.runs import RunRecord
from bench.show.pages import method_page
from bench.show.pages import method_page as recipes

PACKAGE = {"plugin": {"package": "sentence-bench", "version": "0.1.0"}}


def a_board(records: list[RunRecord], folder: Path, statistics: str = "no") -> Board:
    runs = [PublishedRun(record=one, folder=folder / one.run_id) for one in records]
    return board(runs, version="v1", title="Test", statistics=statistics)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("runs")
    records = made_runs(
        folder, {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("sts",), provenance=PACKAGE
    )
    records += [
        made_run(
            folder, "promcse", 1, noise=0.4, setting="supervised", variant="eh", provenance=PACKAGE
        )
    ]
    records += made_runs(
        folder, {"promcse": 0.3}, seeds=(1,), backbone="bert-base-uncased", provenance=PACKAGE
    )
    return a_board(records, folder, statistics="yes")


def text_of(html: str) -> str:
    return " ".join(entities.unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_each_row_of_the_method_stands_with_its_numbers_and_leads_to_its_table(found) -> None:
    page = method_page.page(found, "promcse")
    expected = [
        (table, row)
        for table in found.tables
        for row in table.table.rows
        if row.method == "promcse"
    ]
    assert len(expected) == 3
    rows = [row for table in page.tables for row in table.rows]
    assert [(row.setting, row.backbone, row.name) for row in rows] == [
        (r.setting, r.backbone, r.variant) for _, r in expected
    ]
    for row, (table, of) in zip(rows, expected, strict=True):
        assert row.table == f"../index.html#{table.anchor}"
        assert [one.text for one in row.cells] == [f"{cell.mean:.2f}" for cell in of.cells]
        assert [unquote(link) for _, link in row.runs] == [
            f"../runs/{run}/index.html" for run in of.runs
        ]


def test_the_verdict_is_that_of_the_whole_table(found) -> None:
    page = method_page.page(found, "promcse")
    (table,) = [one for one in found.tables if len({row.method for row in one.table.rows}) == 2]
    row = next(
        row for one in page.tables for row in one.rows if row.table.endswith(f"#{table.anchor}")
    )
    assert (
        table.table.baseline == "simcse"
        and row.verdict_words == "better, compared with simcse"
        and row.verdict == "▲"
    )
    assert all(cell.spread for cell in row.cells)


def test_all_its_runs_are_listed_and_no_other(found) -> None:
    page = method_page.page(found, "promcse")
    assert sorted(run.run_id for run in page.runs) == sorted(
        r.record.run_id for r in found.runs if r.record.method == "promcse"
    )
    assert all(unquote(run.link) == f"../runs/{run.run_id}/index.html" for run in page.runs)


def test_its_own_words_recipes_and_disagreements_are_there(found) -> None:
    said, text = method_description("promcse"), text_of(method_page.render(found, "promcse"))
    assert said is not None and said.file.disagreements
    assert said.paper in text and said.summary[1:] in text
    for one in said.file.disagreements:
        assert " ".join(one.topic.split()) in text
    for name in said.variants:
        assert name in text
    sources = {value.source for entry in said.file.recipes for value in entry.values.values()}
    assert sources and all(" ".join(source.split()) in text for source in sources)


def test_every_value_of_every_recipe_is_found_by_its_key_and_backbone() -> None:
    said = method_description("promcse")
    assert said is not None
    for made in recipes.recipes(said):
        entries = [one for one in said.file.recipes if one.setting == made.setting]
        differing, same = dict(made.differing), dict(made.same)
        for entry in entries:
            name = entry.backbone + (f" +{entry.variant}" if entry.variant else "")
            for key, value in entry.values.items():
                shown = same.get(key) or differing[key][made.names.index(name)]
                assert shown == recipes.value_words(value.value), (name, key)
        assert {one.key for one in made.sources} - {""} == {
            key for one in entries for key in one.values
        }


def test_what_papers_printed_of_it_is_there_with_the_audits_remarks(found) -> None:
    page = method_page.page(found, "promcse")
    own = {(r.paper, r.table) for r in results(method="promcse")}
    assert own <= {(one.paper, one.table) for one in page.printed}
    average = next(
        r
        for r in results(
            method="promcse",
            backbone="bert-base-uncased",
            setting="unsupervised",
            task="Avg.",
            variant="",
        )
    )
    cells = [
        cell.text
        for one in page.printed
        for row in one.rows
        for cell in row.cells
        if cell is not None
    ]
    assert f"{average.value:.2f}" in cells
    assert any(one.notes for one in page.printed)
    for one in page.printed:
        assert all(len(row.cells) == len(one.tasks) for row in one.rows)
        assert all(any(row.cells[i] is not None for row in one.rows) for i in range(len(one.tasks)))


def test_rows_that_a_paper_calls_otherwise_are_the_methods_too(found) -> None:
    """The ablation of PromCSE's prompt is printed under a variant that has another name here."""
    labels = {row.label for one in method_page.page(found, "promcse").printed for row in one.rows}
    assert any("layer-shared" in label for label in labels)


def test_a_method_that_is_not_installed_has_a_page_from_its_records_alone(tmp_path: Path) -> None:
    found = a_board(
        [
            made_run(
                tmp_path,
                "somebody-elses",
                1,
                provenance={"plugin": {"package": "theirs", "version": "2.0"}},
            )
        ],
        tmp_path,
    )
    page = method_page.page(found, "somebody-elses")
    assert (
        page.how is None
        and page.recipes == ()
        and page.printed == ()
        and page.packages == ("theirs 2.0",)
    )
    text = text_of(method_page.render(found, "somebody-elses"))
    assert "not installed" in text and found.runs[0].record.run_id in text and "theirs 2.0" in text


def test_markup_in_a_methods_name_and_records_stays_text(tmp_path: Path) -> None:
    found = a_board([hostile_run(tmp_path)], tmp_path)
    html = method_page.render(found, HOSTILE)
    assert (
        html.count("<script") == 1
        and "<img" not in html
        and "\u202e" not in html
        and "window.hit=1" in text_of(html)
    )
    assert all(
        re.match(r"(?:\.\./|#|data:,$)", one) for one in re.findall(r'(?:href|src)="([^"]*)"', html)
    )


def test_a_table_without_an_average_has_no_column_for_it(tmp_path: Path) -> None:
    found = a_board([made_run(tmp_path, "simcse", 1, suites=("geometry",))], tmp_path)
    (table,) = method_page.page(found, "simcse").tables
    assert table.average is None and [cell.text for cell in table.rows[0].cells if cell]
    assert "None" not in text_of(method_page.render(found, "simcse")).replace(
        "None of them", ""
    ).replace("None (unsup. SimCSE)", "")


def test_code_in_a_description_is_set_as_code(tmp_path: Path) -> None:
    found = a_board([made_run(tmp_path, "cls", None, provenance=PACKAGE)], tmp_path)
    html = method_page.render(found, "cls")
    assert "<code>cls_before_pooler</code>" in html and "`" not in text_of(html)


def test_ids_are_used_once(found) -> None:
    ids = re.findall(r' id="([^"]*)"', method_page.render(found, "promcse"))
    assert len(ids) == len(set(ids))
    assert {
        one[1:] for one in re.findall(r'href="(#[^"]*)"', method_page.render(found, "promcse"))
    } <= set(ids)
