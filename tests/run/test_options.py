"""Arguments and options as a plan, without a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.base.errors import BenchError
from bench.cli.run import run
from bench.cli.run_options import as_option, plan_of
from bench.method.config import KINDS, RunConfig
from bench.records.question import Question
from bench.run.options import read_fields
from bench.run.plan import read_recipe_files
from bench.run.plan_toml import Plan


def plan(*words: str) -> Plan:
    """Return the plan that ``bench run`` makes of these words."""
    with run.make_context("bench run", list(words)) as context:
        options = {name: value for name, value in context.params.items() if name in KINDS}
        return plan_of(options, context.params["targets"], context.params["plan_file"])


def only(*words: str) -> RunConfig:
    (config,) = plan(*words).runs
    return config


def test_backbones_have_names_if_they_are_given(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    assert only().backbones == ("builtin",)
    assert only("--backbone", "x,y").names == ()
    config = only("--backbone", f"Mine=x,{folder}")
    assert config.backbones == ("x", str(folder))
    assert config.names == ("Mine", str(folder))
    assert only("--backbone", "x", "--backbone", "y").backbones == ("x", "y")


def test_options_replace_the_values_of_a_plan_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    first = RunConfig(methods=("simcse",), overrides={"temperature": "0.1"})
    Plan((first, RunConfig(methods=("cls",))), Question("which?")).write(file)
    words = ["--seeds", "7", "--suite", "check,sts", "--set", "epochs=2", "--plan", str(file)]
    read = plan(*words)
    assert [config.methods for config in read.runs] == [("simcse",), ("cls",)]
    assert {config.seeds for config in read.runs} == {(7,)}
    assert {config.suites for config in read.runs} == {("check", "sts")}
    assert read.runs[0].overrides == {"temperature": "0.1", "epochs": "2"}
    assert read.question == Question("which?")
    Plan((RunConfig(methods=("cls",), backbones=("a",), names=("A",)),)).write(file)
    (config,) = plan("--plan", str(file), "--backbone", "b").runs
    assert config.backbones == ("b",) and config.names == ()


def test_a_method_chooses_the_runs_of_a_plan_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    both = RunConfig(methods=("simcse", "simcse+mlm", "cls"), overrides={"max_length": "20"})
    Plan((both, RunConfig(methods=("cls",), seeds=(5,)))).write(file)
    (chosen,) = plan("--plan", str(file), "--method", "simcse").runs
    assert chosen.methods == ("simcse", "simcse+mlm") and chosen.overrides == both.overrides
    (chosen,) = plan("--plan", str(file), "--method", "simcse+mlm").runs
    assert chosen.methods == ("simcse+mlm",)
    twice = plan("--plan", str(file), "--method", "cls").runs
    assert [config.methods for config in twice] == [("cls",), ("cls",)]
    with pytest.raises(BenchError, match="unknown method 'promcse' of --plan .*; nearest: simcse"):
        plan("--plan", str(file), "--method", "cls,promcse")


def test_a_recipe_of_a_method_that_a_plan_lacks_is_refused(tmp_path: Path) -> None:
    """It would change nothing; of two recipes for a method one would."""
    Plan((RunConfig(methods=("promcse",)),)).write(tmp_path / "plan.toml")
    for name in ("simcse", "promcse", "again"):
        method = name if name != "again" else "promcse"
        (tmp_path / f"{name}.toml").write_text(f'method = "{method}"\n[values]\nepochs = 2\n')

    def recipes(*names: str) -> list[str]:
        files = [str(tmp_path / f"{name}.toml") for name in names]
        (config,) = plan(*files, "--plan", str(tmp_path / "plan.toml")).runs
        return [*read_recipe_files(config.recipes, config.methods)]

    assert recipes("promcse") == ["promcse"]
    with pytest.raises(BenchError, match=r"simcse.toml is for simcse, and no run is of that"):
        recipes("promcse", "simcse")
    with pytest.raises(BenchError, match=r"again.toml: the second recipe for promcse"):
        recipes("promcse", "again")


def test_a_text_that_is_no_method_is_quoted_in_what_to_try() -> None:
    with pytest.raises(BenchError) as caught:
        plan("my text.txt")
    assert caught.value.hint == "bench run METHOD --corpus 'my text.txt' trains on it"


def test_a_recipe_is_for_each_named_variant_of_its_method(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{name}.toml") for name in ("one", "two")]
    for file in files:
        Path(file).write_text('method = "promcse"\nvariant = "eh"\n[values]\nepochs = 2\n')

    def methods(*words: str) -> list[tuple[str, ...]]:
        return [config.methods for config in plan(*words).runs]

    assert methods("cls", files[0]) == [("promcse+eh",), ("cls",)]
    both = ("promcse+ratio", "promcse+eh")
    assert methods("promcse+ratio", "promcse", "cls", files[0]) == [both, ("cls",)]
    assert methods("promcse+ratio", *files) == [("promcse+ratio",)] * 2


@pytest.mark.parametrize("option", ["corpus", "setting", "budget", "data", "runs"])
def test_an_empty_value_is_a_mistake(option: str) -> None:
    """As from a variable of a shell that is not set: the usual value is not what was meant."""
    with pytest.raises(BenchError, match=f"^--{option} : expected a value"):
        read_fields({option: ""}, as_option, strict=False)


QUESTION = '[question]\ntext = "which?"\nbaseline = "simcse"\nrows = ["cls"]\nsuite = "sts"\n'


def test_the_question_of_a_plan_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    runs = '\n[[run]]\nmethods = ["simcse", "cls"]\nsuites = ["sts", "check"]\n'
    file.write_text(QUESTION + runs, encoding="utf-8")
    read = Plan.read(file)
    assert read.question == Question("which?", "simcse", ("cls",), ("sts",))
    read.write(tmp_path / "again.toml")
    assert Plan.read(tmp_path / "again.toml").question == read.question


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "[question] has no rows"),
        ('rows = ["cls"]\nsuits = "sts"', "unknown key 'suits' of [question]"),
    ],
)
def test_a_mistake_in_a_question_names_the_file_and_the_key(
    tmp_path: Path, line: str, message: str
) -> None:
    file = tmp_path / "plan.toml"
    text = f'[question]\nbaseline = "simcse"\n{line}\n\n[[run]]\nmethods = ["cls"]\n'
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BenchError) as error:
        Plan.read(file)
    assert error.value.message.startswith(f"--plan {file}: ")
    assert message in error.value.message


def test_a_question_is_a_line_of_a_title(tmp_path: Path) -> None:
    assert Question.of_plan("one\n  line") == Question("one line")
    with pytest.raises(ValueError, match="at most 300 characters"):
        Question.of_plan({"text": "x" * 301})
