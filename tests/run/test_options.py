"""Arguments and options as a plan, without a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.base.errors import BenchError
from bench.run.config import Plan, RunConfig
from bench.run.options import plan_from_options
from bench.run.values import comma_list, parse_overrides

PLUGIN = """
from bench.method import TorchMethod

class Mine(TorchMethod):
    name = "{name}"
    paper = summary = "x"

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


def only(targets: list[str], typed: dict[str, Any]) -> RunConfig:
    (config,) = plan_from_options(targets, typed).runs
    return config


def test_methods_come_from_targets_and_from_plugin_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN.format(name="mine"))
    config = only(["simcse,promcse+eh", str(file)], {})
    assert config.methods == ("simcse", "promcse+eh", "mine")
    assert config.plugins == (str(file),)
    named = only([str(file)], {"methods": ("simcse",)})
    assert named.methods == ("simcse",), "with --method, a file only defines methods"
    assert named.plugins == (str(file),)


def test_backbones_have_names_if_they_are_given(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    assert only([], {}).backbones == ("builtin",)
    assert only([], {"backbones": ("x", "y")}).names == ()
    config = only([], {"backbones": ("Mine=x", str(folder))})
    assert config.backbones == ("x", str(folder))
    assert config.names == ("Mine", str(folder))


def test_recipe_values_are_overrides_and_compile_is_not() -> None:
    config = only([], {"pairs": ("compile=true", "temperature=0.03,0.05", "prompt=query: ")})
    assert config.compile is True
    assert config.overrides == {"temperature": "0.03,0.05", "prompt": "query: "}
    assert only([], {"pairs": ("compile=false",)}).compile is False
    for wrong in ("temperature", "=3", ""):
        with pytest.raises(BenchError, match="expected KEY=VALUE"):
            parse_overrides([wrong])


def test_options_replace_the_values_of_a_plan_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    first = RunConfig(methods=("simcse",), overrides={"temperature": "0.1"})
    Plan((first, RunConfig(methods=("cls",))), "which?").write(file)
    plan = plan_from_options(
        [], {"seeds": (7,), "suites": ("check", "sts"), "pairs": ("epochs=2",)}, file
    )
    assert [config.methods for config in plan.runs] == [("simcse",), ("cls",)]
    assert {config.seeds for config in plan.runs} == {(7,)}
    assert {config.suites for config in plan.runs} == {("check", "sts")}
    assert plan.runs[0].overrides == {"temperature": "0.1", "epochs": "2"}
    assert plan.question == "which?"


def test_lists_with_commas() -> None:
    assert comma_list(" a, b,,c ") == ("a", "b", "c")
    assert comma_list(None) == comma_list("") == comma_list(" , ") == ()
