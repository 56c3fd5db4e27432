"""The options of a run as one config: --on, --budget, and plans as TOML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cli.run import run
from bench.method.config import RunConfig
from bench.records.question import Question
from bench.run.plan_toml import Plan, config_of, table_of
from bench.run.target import Target, parse_target

TEXTS = st.text("ab,=é\"'\\\n ", max_size=6)
WORDS = TEXTS.filter(bool)
CONFIGS = st.builds(
    RunConfig,
    methods=st.lists(WORDS, min_size=1, max_size=3).map(tuple),
    backbones=st.lists(WORDS, min_size=1, max_size=2).map(tuple),
    setting=st.none() | WORDS,
    seeds=st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(tuple),
    corpus=st.none() | WORDS | st.lists(WORDS, min_size=2, max_size=3).map(tuple),
    overrides=st.dictionaries(st.sampled_from(["temperature", "dropout"]), WORDS),
    chunk=st.none() | st.integers(1, 9),
    allow_pickle=st.booleans(),
    save_seconds=st.floats(0, 1e6),
)


@settings(max_examples=30)
@given(CONFIGS, TEXTS)
def test_a_plan_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, config: RunConfig, question: str
) -> None:
    file = tmp_path_factory.mktemp("plan") / "plan.toml"
    asked = Question.of_plan(question)
    several = Plan((config,), asked).with_values(seeds=(7,), overrides={"mlm": "true"}).runs
    for plan in (Plan((config,), asked), Plan((config, *several), asked)):
        plan.write(file)
        assert Plan.read(file) == plan


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("torchrun:4", Target(name="torchrun", gpus=4)),
        (
            "slurm:gpus=1,nodelist=a,b,time=4:00:00",
            Target(name="slurm", gpus=1, options=(("nodelist", "a,b"), ("time", "4:00:00"))),
        ),
    ],
)
def test_where_runs_are_executed(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected [[run]]"),
        ("[[run]]\nmethod = ['simcse']", "unknown key 'method' of a run"),
        ("[[run]]\ndevice = 'cpu'\n[[run]]", "need the same value of device"),
        ("other = 1\n[[run]]", "found other"),
    ],
)
def test_a_file_that_is_not_a_plan(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    assert words in error_line(bench("run", "--plan", tmp_path / "plan.toml"))


def ids(*arguments: Any) -> list[str]:
    done = bench(*arguments, "--dry-run", "--json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line)["run_id"] for line in done.stdout.splitlines()]


def test_a_plan_has_the_runs_of_the_command_that_wrote_it(tmp_path: Path) -> None:
    words = "run simcse cls simcse+mlm --suite check --corpus builtin --seeds 1-2 --budget 9steps"
    words += " --set temperature=0.03,0.05 --device cpu"
    file = tmp_path / "plan.toml"
    assert bench(*argv(words), "--dry-run", "--to", file).exit_code == 0
    assert sorted(ids("run", "--plan", file)) == sorted(ids(*argv(words)))
    assert len(ids("run", "--plan", file, "--seeds", "3")) == 5


def test_bench_run_has_at_most_29_options() -> None:
    shown = [param for param in run.params if not getattr(param, "hidden", True)]
    assert len(shown) <= 29


def test_a_table_takes_numbers_and_lists() -> None:
    table = {"set": {"temperature": [0.03, 0.05], "mlm": True, "pooling": "a,b"}}
    config = config_of(table)
    assert config.overrides == {"temperature": "0.03,0.05", "mlm": "true", "pooling": "a,b"}
    compiled = config_of({"compile": False, "set": {"compile": True}})
    assert compiled.compile is True and compiled.overrides == {}
    assert set(table_of(RunConfig())) == {"methods", "backbones", "seeds", "suites"}


@pytest.mark.parametrize(
    ("line", "words", "said"),
    [
        ("set = { temperature = 'warm' }", "", "set.temperature=warm: expected a number"),
        ("device = 'tpu'", "", "device = tpu is not available here"),
        ("", "--set temperature=warm", "error: --set temperature=warm: expected a number"),
    ],
)
def test_a_mistake_of_a_plan_names_the_file_and_its_key(
    tmp_path: Path, line: str, words: str, said: str
) -> None:
    """... and one of the command line the option."""
    file = tmp_path / "plan.toml"
    file.write_text(f"[[run]]\nmethods = ['simcse']\nsuites = ['check']\n{line}\n")
    wrong = error_line(bench("run", "--plan", file, *words.split(), "--dry-run"))
    assert said in wrong
    assert (f"--plan {file}: " in wrong) == (not words)
