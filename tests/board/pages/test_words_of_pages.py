"""One thing has one name on all pages, and no sentence says more than its numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from factories import record

from bench.board.pages import board as board_page
from bench.board.pages.engine import TEMPLATES
from bench.board.pages.method_page import render_method, runs_grid
from bench.board.pages.printed import table_name
from bench.board.pages.run_page import render_run
from bench.compare.printed import with_paper
from bench.compare.statistics.summary import summarise

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in TEMPLATES.iterdir()}


def test_a_difference_is_called_vs_and_the_mark_of_candidates_shaded() -> None:
    words = {name: re.sub(r"//.*|\{#.*?#\}", "", text) for name, text in TEXTS.items()}
    for name, text in words.items():
        assert not re.search(r"\b(less|minus) (\$|that\b|simcse)", text), name
        assert not re.search(r">\s*[Tt]inted|◆", text), name
    assert "vs ${base.name}" in words["board.js"]


def test_no_choice_of_a_page_is_called_any() -> None:
    """It meant "no choice made" on a page with choices that call this "all"."""
    assert '"any"' not in TEXTS["board.js"] and ">any" not in TEXTS["board.html"]


def test_a_method_that_papers_printed_elsewhere_is_not_said_to_have_no_print() -> None:
    """SimCSE is printed in many papers; with this backbone in none."""
    runs = [record("simcse", 1, backbone="builtin"), record("promcse", 1, backbone="builtin")]
    (table,) = summarise(runs)
    (note,) = with_paper(table, {run.run_id: run for run in runs}).notes
    assert note == "no published number for this backbone and protocol"
    assert "no paper" not in note
    known = [record("simcse", 1, backbone="bert-base-uncased")]
    (table,) = summarise(known)
    (note,) = with_paper(table, {run.run_id: run for run in known}).notes
    assert note.startswith("not compared with the published value: SimCSE (one seed")


def test_numbers_of_a_repositorys_readme_are_not_called_a_table() -> None:
    assert table_name("README") == "README of its repository"
    assert [table_name("1"), table_name("B.2")] == ["table 1", "table B.2"]


def test_no_text_has_backticks_of_code(tmp_path: Path) -> None:
    """Neither visible text has them, nor a hint that a browser shows."""
    from made_runs import made_run

    from bench.board.board import build_board
    from bench.board.publish.described import with_descriptions
    from bench.records import Run

    runs = [made_run(tmp_path, name, 1) for name in ("simcse", "dcpcse")]
    found = [Run(one, tmp_path / one.run_id) for one in runs]
    made = with_descriptions(build_board(found, version="v1", title="Made"))
    marked = dict(made.described)
    entry = marked["simcse"]
    changed = type("Changed", (entry.cls,), {"summary": "two views of `one` sentence"})
    marked["simcse"] = replace(entry, cls=changed)
    made = replace(made, described=marked)
    pages = [board_page.render_board(made), *(render_method(made, name) for name in marked)]
    pages += [render_run(made, run) for run in made.runs]
    assert any("two views of" in page for page in pages)
    for page in pages:
        assert "`" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_a_run_without_a_seed_is_not_called_any(tmp_path: Path) -> None:
    from made_runs import made_run

    from bench.board.board import build_board
    from bench.records import Run

    runs = [made_run(tmp_path, "cls", None)]
    made = build_board([Run(one, tmp_path / one.run_id) for one in runs], version="v1", title="T")
    (row,) = runs_grid(made, "cls").rows
    assert "any" not in [cell.main for cell in row] and "none" in [cell.main for cell in row]
