"""What stands below the matrix: the papers' claims, the seeds that a gain needs, and one table for
two protocols that say the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from compared_runs import runs_in
from made_runs import made_run, made_runs
from scipy import stats

from bench.base.markup import as_markdown
from bench.board.board import Board, build_board
from bench.board.pages.board import render_board
from bench.board.pages.claims import claims_grids, claims_of_method
from bench.board.pages.gain_sizes import gain_sizes
from bench.board.publish.readme import version_readme
from bench.board.tables import BoardTable, page_tables, row_anchors
from bench.compare.statistics.table import Row, Table

NOISES = {"simcse": 0.4, "promcse": 0.9, "conpvp": 0.45}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("runs")
    records = made_runs(folder, NOISES, suites=("sts", "transfer"))
    return build_board(runs_in(folder, records), version="v1", title="Test")


def test_a_claimed_gain_names_its_backbone_and_the_row_that_tests_it(board: Board) -> None:
    claims = claims_grids(board)
    assert claims is not None
    lines = as_markdown(claims.tested).splitlines()
    (line,) = [one for one in lines if one.startswith("| ConPVP") and "| STS" in one]
    for gain in ("2.60 (BERT-base)", "1.60 (BERT-large)", "2.61 (RoBERTa-base)"):
        assert gain in line
    assert "over SimCSE" in line and "ConPVP against SimCSE" in line
    row = next(row for row in board.tables[0].table.rows if row.method == "conpvp")
    assert row.cells[-1] is not None and row.cells[-1].against is not None
    assert f"{row.cells[-1].against.difference:.2f}".lstrip("-") in line
    assert not any("diffcse" in one.lower() for one in lines)
    assert "diffcse" in as_markdown(claims.untested).lower(), "no row here"


def test_rows_of_another_length_than_the_finding_test_no_claim(tmp_path: Path) -> None:
    records = []
    for seed in (1, 2, 3):
        for method in ("simcse", "promcse"):
            recipe = {"budget": "1000steps"}
            records.append(made_run(tmp_path, method, seed, recipe=recipe))
        recipe = {"budget": "100steps"}
        for method in ("simcse", "ct", "conpvp"):
            records.append(made_run(tmp_path, method, seed, recipe=recipe))
        for variant in ("", "eh"):
            supervised = {"setting": "supervised", "recipe": recipe, "variant": variant}
            records.append(made_run(tmp_path, "simcse", seed, **supervised))
            # as long as its recipe says, which is no other length than the finding's
            supervised["recipe"] = {}
            records.append(made_run(tmp_path, "promcse", seed, **supervised))
    board = build_board(
        runs_in(tmp_path, records), version="v1", title="Test", main_budget="1000steps"
    )
    assert "on the STS average after 1,000 steps is inconclusive" in board.answer
    claims = claims_grids(board)
    assert claims is not None
    tested = {(row[2].text, row[3].text) for row in claims.tested.rows if "STS" in row[3].text}
    assert tested == {
        ("PromCSE against SimCSE", "STS, unsupervised"),
        ("PromCSE+EH against PromCSE", "STS, supervised"),
    }
    why_not = {row[2].text for row in claims.untested.rows}
    assert "no row conpvp on STS (Avg.), unsupervised, 1,000 steps" in why_not


def test_a_method_s_page_begins_with_the_claims_about_it(board: Board) -> None:
    rows = [[cell.text for cell in row] for row in claims_of_method(board, "promcse").rows]
    said = [row for row in rows if row[0].startswith("+2.2 (BERT-base)")]
    ((_, pair, where, here, seeds, verdict),) = said
    assert (pair, where, verdict) == ("PromCSE against SimCSE", "STS, unsupervised", "worse")
    assert here.startswith("−") and seeds.endswith(" seeds")
    assert claims_of_method(board, "simcse").rows == ()


def test_every_paper_s_own_gain_is_in_the_finding_on_seeds(board: Board) -> None:
    found = gain_sizes(board)
    assert found is not None
    gains = {row[0].text.split(":")[0]: row[1].text for row in found.table.rows}
    assert gains == {
        "ConPVP": "+2.60",
        "PromCSE": "+2.24",
        "DCPCSE": "+2.24",
        "Focal-InfoNCE": "+1.64",
        "the median row": "",
    }
    *_, median = found.table.rows
    cells = [cell.text for cell in median]
    names = [column.name for column in found.table.columns]
    of = dict(zip(names, cells, strict=True))
    sd, items = float(of["SD over seeds"]), float(of["SD over items"])
    # one run per method: the spreads are known, so the normal distribution gives the gain
    z = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
    assert float(of["1 seed"]) == pytest.approx(z * (sd**2 + items**2) ** 0.5, abs=0.1)
    assert found.finding.startswith(f"A gain below {of['1 seed']} points needs more than one run")
    assert "Other people's code and hardware are in it" in found.note
    html = render_board(board, sizes=found)
    readme = version_readme(board, sizes=found)
    assert "](index.html#printed-" in readme and "](#" not in readme
    assert html.index('class="matrix"') < html.index('id="seeds"') < html.index('id="all-tables"')


def test_a_gain_keeps_its_row_beside_ablations_of_the_method(tmp_path: Path) -> None:
    records = made_runs(tmp_path, NOISES)
    for record in records:
        plan = '[question]\ntext = "?"\nbaseline = "simcse"\nrows = ["promcse", "conpvp"]\n'
        (tmp_path / record.run_id / "plan.toml").write_text(plan, encoding="utf-8")
    records += made_runs(tmp_path, {"conpvp": 0.45}, recipe={"temperature": 0.1})
    board = build_board(runs_in(tmp_path, records), version="v1", title="Test")
    found = gain_sizes(board)
    assert found is not None
    of_conpvp = [row for row in found.table.rows if row[0].text.startswith("ConPVP")]
    assert [(row[0].text, row[1].text) for row in of_conpvp] == [("ConPVP", "+2.60")]


def as_cxc(table: Table, protocol: str, by: float = 0.0) -> BoardTable:
    """Return the averages of a table as one of CxC, each higher by so many points."""
    rows = []
    for row in table.rows:
        cell = row.cells[-1]
        assert cell is not None
        rows.append(replace(row, cells=(replace(cell, mean=cell.mean + by),)))
    made = replace(
        table, suite="cxc", protocol=protocol, columns=("CxC-STS",), rows=tuple(rows), notes=()
    )
    return BoardTable(anchor=protocol, table=made, selection="")


def without_verdict(row: Row) -> Row:
    """Return the row as one that was not tested."""
    (cell,) = row.cells
    assert cell is not None
    return replace(row, cells=(replace(cell, against=None),), untested="two seeds")


def test_two_protocols_that_say_the_same_are_one_table(board: Board) -> None:
    table = board.tables[0].table
    usual, other = as_cxc(table, "cxc-promcse/1"), as_cxc(table, "cxc-parekh/1", by=0.07)
    ((shown, ((folded, apart),)),) = page_tables([other, usual])
    assert shown is usual and folded is other and apart == pytest.approx(0.07)
    anchors = row_anchors(page_tables([other, usual]))
    for place in range(len(table.rows)):
        assert anchors[usual.anchor, place] == anchors[other.anchor, place]
    changed = [row if row.is_baseline else without_verdict(row) for row in other.table.rows]
    differs = replace(other, table=replace(other.table, rows=tuple(changed)))
    assert [len(page.others) for page in page_tables([differs, usual])] == [0, 0]
    fewer = replace(other, table=replace(other.table, rows=other.table.rows[:-1]))
    assert [len(page.others) for page in page_tables([fewer, usual])] == [0, 0]
