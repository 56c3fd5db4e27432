"""The forms of a score table: what they say, that they fit, and that no name can make them misbehave."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from factories import STS, family, record, sts_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from bench.compare.formatting import csv_text, latex, markdown, signed_number, visible
from bench.compare.statistics.summary import summarise
from bench.runs import RunRecord, Score
from bench.show.tables import render, render_terminal
from bench.show.tables.report import sparkline

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07",
    "[bold red]rich[/]",
    "\u202eevil",
    "=HYPERLINK(1)",
    "@SUM(A1)",
    "+1",
    "<script>alert(1)</script>",
    r"\input{/etc/passwd}",
    "$x^2$ 100% & # ~",
    "a|b|c",
    "`code` **b** [l](javascript:x) ![i](http://x)",
    "https://example.com www.example.com",
    "日本語 é Ω",
    "\udcff",
    "two\nlines",
    "x" * 500,
    "{{ 7*7 }}",
    "--",
    "\"quoted\" 'too'",
    "[",
    "\\",
    "] \\\\ [2cm]",
]


def hostile() -> list[RunRecord]:
    return [
        record(name, seed, base=60 + i, variant=name, recipe={"t": name})
        for i, name in enumerate(HOSTILE)
        for seed in (1, 2)
    ]


def printed(records: list[RunRecord], width: int, **options: object) -> str:
    out = io.StringIO()
    render_terminal(records, console=Console(file=out, width=width, highlight=False), **options)  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("baseline", [None, "simcse"])
def test_the_table_fits_and_no_number_is_cut(width: int, baseline: str | None) -> None:
    records = [
        *family(),
        record("simcse", 1, recipe={"temperature": 0.1}),
        record("a-method-with-a-very-long-name", 1, backbone="builtin"),
    ]
    text = printed(records, width, baseline=baseline)
    assert max(map(len, text.splitlines())) <= width
    (table,) = summarise(records)
    numbers = text.replace("±", " ±").split()
    for row in table.rows:
        for cell in row.cells:
            assert cell is not None and f"{cell.mean:.2f}" in numbers


def test_eighty_columns_hold_all_tasks_in_one_block() -> None:
    lines = printed(family(), 80, baseline="simcse").splitlines()
    (heading,) = [line for line in lines if line.startswith("method")]
    assert heading.split() == ["method", "seeds", *STS, "Avg."]


def test_a_suite_with_many_long_names_goes_on_below() -> None:
    names = [
        "AgNews",
        "SearchSnippets",
        "StackOverflow",
        "Biomedical",
        "Tweet",
        "GoogleNews-TS",
        "GoogleNews-T",
        "GoogleNews-S",
        "Avg.",
    ]
    scores = tuple(
        Score(suite="clustering", task=name, protocol="k/1", metric="accuracy", value=50.0, n=1)
        for name in names
    )
    lines = printed([record("simcse", 1, scores=scores)], 80).splitlines()
    headings = [line.split()[1:] for line in lines if line.startswith("method")]
    assert len(headings) == 2 and sum(headings, []) == names


def test_the_headline_says_what_the_numbers_are() -> None:
    first = printed([record(seed=1), record(seed=2)], 80, baseline="simcse").splitlines()[0]
    assert first.startswith(
        "unsupervised, builtin, 2 seeds, senteval-all/1 (tokenised)"
    ) and first.endswith("baseline: simcse")


def test_an_ascii_terminal_gets_ascii() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render_terminal(
        [*family(), record("日本", 1)], console=Console(file=out, width=80), baseline="simcse"
    )
    out.flush()
    text = out.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert r"\u65e5" in text


def test_no_color_and_dumb_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    render_terminal(family(), console=Console(file=out, width=80, force_terminal=True))
    codes = {
        code
        for sequence in re.findall(r"\x1b\[([0-9;]*)m", out.getvalue())
        for code in sequence.split(";")
    }
    assert codes <= {"0", "1", "2", "4"}, "bold, dim and underlined, nothing else"
    assert "\x1b" not in printed(family(), 80), "and nothing at all where it is no terminal"


def test_hostile_names_in_the_terminal() -> None:
    text = printed(hostile(), 120)
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert r"\x1b[2J" in text and "[bold red]rich[/]" in text


def test_hostile_names_in_markdown() -> None:
    text = render(summarise(hostile()), "md")
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert set(re.findall(r"<(/?[a-z]+)", html)) <= {
        "p",
        "/p",
        "strong",
        "/strong",
        "em",
        "/em",
        "table",
        "/table",
        "thead",
        "/thead",
        "tbody",
        "/tbody",
        "tr",
        "/tr",
        "th",
        "/th",
        "td",
        "/td",
        "ul",
        "/ul",
        "li",
        "/li",
    }
    assert {
        row.count("<td") for row in re.findall(r"<tr>(.*?)</tr>", html, re.S) if "<td" in row
    } == {9}
    assert "](" not in re.sub(r"\\.", "", text) and "://" not in text and "www." not in text


def test_hostile_names_in_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(render(summarise(hostile()), "csv"))))
    assert len(rows) == len(HOSTILE) * 8
    for row in rows:
        for key in ("method", "variant", "differs", "runs", "backbone"):
            assert not row[key].startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles_as_it_is(tmp_path: Path) -> None:
    records = [*hostile(), *family()]
    (tmp_path / "t.tex").write_text(
        render(summarise(records, baseline="simcse"), "latex"), encoding="utf-8"
    )
    done = subprocess.run(
        ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-1500:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_latex_marks_best_and_second() -> None:
    text = render(summarise(family()), "latex")
    assert text.count(r"\textbf{") == 8 and text.count(r"\underline{") == 8 and r"\toprule" in text


def test_markdown_table() -> None:
    lines = render(summarise(family(), baseline="simcse"), "md").splitlines()
    assert (
        lines[2]
        == "| method | seeds | STS12 | STS13 | STS14 | STS15 | STS16 | STS-B | SICK-R | Avg. |"
    )
    assert lines[4].startswith("| promcse | 3 | **") and lines[5].startswith(
        "| *less simcse* |  | +"
    )
    assert lines[6].startswith("| dcpcse (mlm) | 3 |") and re.search(r"\*\d+\.\d\d\* \|", lines[6])


def test_missing_cells_are_empty_everywhere() -> None:
    tables = summarise([record(scores=sts_scores(tasks=("STS12",)))])
    assert render(tables, "md").splitlines()[4].endswith(" |  |  |  |  |  |  |  |")
    assert render(tables, "latex").count("& " * 1) and " &  &  &  &  &  &  &  \\\\" in render(
        tables, "latex"
    )
    content = json.loads(render(tables, "json"))
    assert content["tables"][0]["rows"][0]["cells"]["Avg."] is None
    rows = list(csv.DictReader(io.StringIO(render(tables, "csv"))))
    assert [row["mean"] == "" for row in rows] == [False] + [True] * 7


def test_json_and_csv_hold_the_numbers_in_full() -> None:
    tables = summarise(family(), baseline="simcse")
    content = json.loads(render(tables, "json"))
    assert content["schema"] == "bench.compare/2"
    cells = {
        (row["method"], task): cell
        for row in content["tables"][0]["rows"]
        for task, cell in row["cells"].items()
    }
    for line in csv.DictReader(io.StringIO(render(tables, "csv"))):
        cell = cells[line["method"], line["task"]]
        assert float(line["mean"]) == cell["mean"] and line["seeds"] == str(len(cell["values"]))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_escapes_keep_one_visible_line(text: str) -> None:
    assert visible(text).isprintable()
    assert not csv_text(text).startswith(("=", "+", "-", "@"))
    html = MarkdownIt("gfm-like", {"linkify": False}).render(
        "| a |\n| - |\n| x" + markdown(text) + " |\n"
    )
    assert re.sub(r"</?(table|thead|tbody|tr|th|td)( [^>]*)?>", "", html).count("<") == 0
    assert not re.search(
        r"(?<!\\)[$&#%_~^](?!\\)",
        re.sub(
            r"\\(textasciitilde|textasciicircum|pm|times|[$&#%_])|\$\\(pm|times|approx|(black)?triangle(down)?|vartriangle)\$",
            "",
            latex(text),
        ),
    )


@pytest.mark.parametrize(
    ("value", "said"), [(1.4, "+1.40"), (-0.001, "0.00"), (0.004, "0.00"), (-2, "-2.00")]
)
def test_signed(value: float, said: str) -> None:
    assert signed_number(value) == said


def test_sparkline_duration_and_size() -> None:
    assert (
        sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
        and sparkline([3, 3]) == "▁▁"
        and len(sparkline(list(range(1000)))) == 32
    )


def test_a_long_name_breaks_between_words_then_after_a_hyphen_and_loses_nothing() -> None:
    from rich.text import Text

    from bench.show.tables.terminal import _fold

    def folded(name: str, width: int) -> list[str]:
        return [part.plain for part in _fold(Text(name), width)]

    assert folded("pretrained gte-small", 19) == ["pretrained", "gte-small"]
    assert folded("pretrained paraphrase-MiniLM-L3-v2", 19) == [
        "pretrained",
        "paraphrase-",
        "MiniLM-L3-v2",
    ]
    assert folded("short", 19) == ["short"] and "".join(folded("a" * 30, 7)) == "a" * 30
