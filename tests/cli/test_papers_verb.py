"""``bench papers``: every answer, as text and as data, and mistakes."""

from __future__ import annotations

import json

import pytest
from commands import bench, error_line

from bench.papers import contents, papers, results

PARTS = ["promcse:1", "promcse:6", "promcse:figure2", "conpvp:figure1", "mteb:card"]
"""Scores, hyperparameters, points of a figure, a drawing that is not shown, and mteb's scores."""


def as_json(*arguments: str) -> list[dict[str, object]]:
    return [*map(json.loads, bench("papers", *arguments, "--json").stdout.splitlines())]


@pytest.mark.parametrize("name", ["", "promcse", "promcse:1", "checkpoints"])
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    done = bench("papers", *filter(None, [name]), COLUMNS="80")
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    if name != "checkpoints":
        assert "not shown at" not in done.stdout


@pytest.mark.parametrize("name", PARTS)
def test_a_table_or_figure_is_shown_or_says_why_not(name: str) -> None:
    (part,) = [one for one in contents() if one.name == name]
    done = bench("papers", name)
    assert done.exit_code == 0, done.output
    for cell in results(paper=part.paper, table=part.short):
        assert cell.printed in done.stdout
    assert part.why.split(" ")[0] in done.stdout


def test_a_table_that_cannot_be_run_again_is_not_said_to_be() -> None:
    assert "bench run --paper" in bench("papers", "promcse:1").stdout
    assert "bench run --paper" in bench("papers", "promcse").stdout
    for name in ("ct:README", "prompteol:1", "bellm"):
        assert "bench run --paper" not in bench("papers", name).stdout


def test_as_data_nothing_is_left_out() -> None:
    assert [one["name"] for one in as_json()] == list(papers())
    rows = as_json("promcse:1")
    assert len(rows) == len(results(paper="promcse", table="1"))
    prompts = [one for one in as_json("promcse:6") if one["key"] == "prompt_length"]
    assert [(one["value"], one["ours"]) for one in prompts] == [(16, 16), (12, 12), (10, 10)] + [
        (10, 10)
    ]


def test_remarks_as_text_and_as_data() -> None:
    flat = " ".join(bench("papers", "--remarks", COLUMNS="200").stdout.split())
    assert "published 81.81; the mean of its 7 cells is 81.66" in flat
    assert "--kind differs" in flat
    kinds = {row["kind"] for row in as_json("--remarks", "--kind", "quoted,best")}
    assert kinds == {"quoted", "best"}
    assert "4 published numbers, 0 remarks" in bench("papers", "dcpcse:2", "--remarks").stdout
    for row in as_json("conpvp:3"):
        if row["method"] == "conpvp":
            assert "best" in {remark["kind"] for remark in row["remarks"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("promcs", "promcs"),
        ("--kind best", "--kind"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(words: str, wrong: str) -> None:
    assert wrong in error_line(bench("papers", *words.split()))
