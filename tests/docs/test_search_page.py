"""docs/search.md: its commands run, its spaces and tables are what they print, and its files are read."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from commands import bench

from bench.cli.search import parse_spaces
from bench.method import Recipe, Value
from bench.run.search.space import check_key, dimension, parse_dimension

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
SHELL = [
    shlex.split(line, comments=True)[1:]
    for line in re.search(r"^```sh\n(.*?)^```$", PAGE, flags=re.M | re.S)[1].splitlines()
]  # type: ignore[index]
TOML = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.M | re.S)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_on_the_page_shows_the_space_that_the_page_shows(own_folder: Path) -> None:
    searches = [words for words in SHELL if words[0] == "search"]
    done = bench(*searches[0], COLUMNS="100")
    assert done.exit_code == 0, done.stderr
    shown = PAGE[PAGE.index("    hardness_m     now") :].partition("```")[0]
    assert shown in done.stdout and list(own_folder.iterdir()) == []


def test_the_recipe_on_the_page_is_one_that_bench_run_takes(own_folder: Path) -> None:
    (own_folder / "simcse.toml").write_text(TOML[1])
    run = next(words for words in SHELL if words[0] == "run")
    words = ["simcse.toml" if word.endswith("/simcse.toml") else word for word in run]
    done = bench(*words, "--suite", "check", "--dry-run")
    assert done.exit_code == 0 and "total: 5 runs " in done.stdout, done.output
    given = tomllib.loads(TOML[1])["values"]
    for key, one in given.items():
        assert re.search(
            rf"^ *{key} +{re.escape(str(one['value']))} +{re.escape(one['source'][:40])}",
            done.stdout.replace('"', ""),
            re.M,
        ), key


def test_the_forms_of_a_space_are_read() -> None:
    recipe = Recipe(
        {
            "temperature": Value(0.05, ""),
            "dropout": Value(0.1, ""),
            "learning_rate": Value(1e-4, ""),
            "queue_size": Value(160, ""),
        }
    )
    (table,) = tomllib.loads(TOML[0])["space"]
    read = {key: dimension(key, bounds, recipe, key) for key, bounds in table["values"].items()}
    assert (read["queue_size"].low, read["queue_size"].high) == (40, 640)
    for key, text in parse_spaces(
        ["temperature=0.1,0.2", "dropout=0.05..0.2", "learning_rate=log:1e-5..1e-3"], {}
    ).items():
        check_key(key, recipe, (), "")
        assert parse_dimension(key, text, recipe).grid()[0] in (0.1, 0.05, 1e-5)
