"""The Grid and its five writers: the output of each, that it fits, and that no text can make it
misbehave; and score tables as Grids.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from compared_runs import printed_text
from factories import STS, family, record
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

from bench.base import markup
from bench.base.foreign_text import escape_csv, escape_latex, escape_markdown, make_visible
from bench.base.grid import Grid, GridCell, GridColumn, grid, indented
from bench.base.printing import draw_grid, drawn_text, print_grid
from bench.cli.options import say
from bench.compare.forms.scores import score_grid
from bench.compare.questions import asked_tables
from bench.compare.statistics.summary import summarise
from bench.records import RunRecord

HOSTILE = [
    *("\x1b[2J\x1b]0;title\x07", "[bold red]rich[/]", "\u202eevil", "=HYPERLINK(1)", "@SUM(A1)"),
    *("+1", "<script>alert(1)</script>", r"\input{/etc/passwd}", "$x^2$ 100% & # ~", "a|b|c"),
    *("`code` **b** [l](javascript:x) ![i](http://x)", "https://example.com www.example.com"),
    *("日本語 é Ω", "\udcff", "two\nlines", "x" * 500, "{{ 7*7 }}", "--", "\"quoted\" 'too'"),
    *("[", "\\", "] \\\\ [2cm]"),
]
TABLE = grid(
    [
        GridColumn("method", wrap=8),
        *(GridColumn(name, right=True, drop=1) for name in ("STS12", "STS13")),
        GridColumn("Avg.", right=True),
        GridColumn("note", wrap=12, drop=2),
    ],
    [
        (
            GridCell(text="simcse", link="m/simcse.html", may_be_best=True),
            GridCell(number=-0.5),
            GridCell(number=71.25, spread=0.5),
            GridCell(number=70.456, emphasis="best"),
            "日本語 and more words",
        ),
        indented(["a|b <i>", "", GridCell(text="9.00", emphasis="second"), "", "="]),
    ],
    title="a title_",
    notes=["◆: may be the best", "a 100 % note"],
)
TABLE = replace(
    TABLE,
    lead="No row beats it.",
    below=grid(["trained with", "batch_size"], [("simcse", "64")]),
    key="bold: highest",
)


def lines(table: Grid, width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), width=width)
    return drawn_text(draw_grid(table, console, width), console).split("\n")


def test_each_writer(snapshot: object) -> None:
    forms = {
        "terminal, 80": "\n".join(lines(TABLE, 80)),
        "terminal, 44": "\n".join(lines(TABLE, 44)),
        "markdown": markup.as_markdown(TABLE),
        "latex": markup.as_latex(TABLE),
        "html": markup.as_html(TABLE),
    }
    assert forms == snapshot


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.text(max_size=30), st.text(max_size=9), st.text(max_size=60)), min_size=1
    ),
    st.integers(30, 120),
)
def test_a_terminal_cuts_nothing_and_is_as_wide_as_it_says(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    """Each sign of a column that may not be left out is there, as often as in its cells."""
    table = grid(
        [GridColumn("a", wrap=8), GridColumn("b", right=True, drop=1), GridColumn("c", wrap=12)],
        rows,
    )
    shown = lines(table, width)
    for line in shown:
        fits = cell_len(line) <= width or len(table.columns) == 1
        assert line.isprintable() and fits
    there = Counter("".join(shown))
    for number, column in enumerate(table.columns):
        if not column.drop:
            texts = [make_visible(row[number].main, limit=None) for row in table.rows]
            there.subtract("".join(texts).replace(" ", ""))
    assert min(there.values()) >= 0


def hostile() -> list[RunRecord]:
    return [
        record(name, seed, base=60 + i, variant=name, recipe={"t": name})
        for i, name in enumerate(HOSTILE)
        for seed in (1, 2)
    ]


def printed(records: list[RunRecord], width: int) -> str:
    return printed_text(summarise(records), width)


@pytest.mark.parametrize("width", [60, 120])
def test_a_score_table_fits_and_what_is_left_out_is_named(width: int) -> None:
    records = [*family(), record("a-method-with-a-very-long-name", 1)]
    text = printed(records, width)
    assert max(map(len, text.splitlines())) <= width
    (table,) = summarise(records)
    for row in table.rows:
        assert row.cells[-1] is not None and f"{row.cells[-1].mean:.2f}" in text
    (heading,) = [line.split() for line in text.splitlines() if line.startswith("method")]
    missing = [task for task in STS if task not in heading]
    assert all(task in text.partition("not shown at")[2] for task in missing)
    assert {"method", "seeds", "Avg."} <= set(heading)
    assert (width < 80) >= bool(missing)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles_as_it_is(tmp_path: Path) -> None:
    tables = asked_tables(summarise([*hostile(), *family()]), (), "simcse")
    text = markup.latex_document([TABLE, *map(score_grid, tables)])
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-1500:]


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_escapes_keep_one_visible_line(text: str) -> None:
    assert make_visible(text).isprintable()
    assert not escape_csv(text).startswith(("=", "+", "-", "@"))
    html = MarkdownIt("gfm-like", {"linkify": False}).render(
        "| a |\n| - |\n| x" + escape_markdown(text) + " |\n"
    )
    assert re.sub(r"</?(table|thead|tbody|tr|th|td)( [^>]*)?>", "", html).count("<") == 0
    commands = (
        r"\\(textasciitilde|textasciicircum|pm|times|[$&#%_])|"
        r"\$\\(pm|times|blacklozenge)\$"
    )
    assert not re.search(r"(?<!\\)[$&#%_~^](?!\\)", re.sub(commands, "", escape_latex(text)))


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("60.67 ± 1.59 ◆", "ascii", "60.67 +- 1.59 #"),
        ("60.67 ± 1.59 ◆", "latin-1", "60.67 +- 1.59 #"),
        ("SD² ◆ 好", "utf-8", "SD² ◆ 好"),
        ("SD²", "ascii", "SD^2"),
        ("好", "ascii", "\\u597d"),
    ],
)
def test_a_terminal_without_our_signs_gets_others(text: str, encoding: str, expected: str) -> None:
    assert make_visible(text, encoding, limit=None).strip() == expected.strip()


@pytest.mark.parametrize(
    ("text", "cell"),
    {
        "=1+1": "'=1+1",
        "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0",
        "\r\n=1": "'=1",
        "a; -1.25 b": "a; -1.25 b",
    }.items(),
)
def test_a_cell_is_no_formula_and_a_plain_one_stays(text: str, cell: str) -> None:
    assert escape_csv(text) == cell


def test_a_row_belongs_to_the_one_above_by_its_indent_and_not_by_blanks_of_a_text() -> None:
    """A name in a record may begin with blanks; that makes it no part of somebody else's row."""
    table = grid(
        ["method", GridColumn("n", right=True)], [("  forged", "1"), indented(["part", "2"])]
    )
    assert [row.indent for row in table.rows] == [0, 1]
    html = markup.as_html(table)
    assert '<tr><td>forged</td><td class="number">1</td></tr>' in html
    assert '<tr class="part"><td>part</td><td class="number">2</td></tr>' in html
    assert lines(table, 40) == ["method  n", "forged  1", "  part  2"]
    assert [cell.text for cell in table.rows[1]] == ["part", "2"], "the text itself has no blanks"


def test_without_a_terminal_a_row_is_one_line_without_styles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    why = " ".join(["a long reason"] * 40)
    print_grid(grid(["run", GridColumn("why", wrap=8)], [("one", why), ("two", "")], title="t"))
    assert capsys.readouterr().out == f"t\nrun  why\none  {why}\ntwo\n"


def test_a_paragraph_keeps_a_long_word_whole(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/data/" + "sentence-embeddings/" * 6 + "run.json"
    with mock.patch.dict("os.environ", COLUMNS="80"):
        say(f"the record is in {path} and nothing else", indent=2, hang=2)
    assert capsys.readouterr().out == f"  the record is in\n    {path}\n    and nothing else\n"
