"""Mistakes of the first hours at the command line, each answered by one line that names what stands for it, and a hint that helps."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from commands import bench, error_line

from bench.cli import main
from bench.cli.options import check_commas, comma_list
from bench.run.recipes import OTHER_NAMES, TRAINING, meant_by_option

RUN = ("run", "simcse", "--suite", "check", "--corpus", "builtin")


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        ((*RUN, "--lr", "1e-4"), ("--lr",), "--set learning_rate=VALUE"),
        ((*RUN, "--learning-rate", "1e-4"), ("--learning-rate",), "--set learning_rate=VALUE"),
        ((*RUN, "--batch-size", "32"), ("--batch-size",), "--set batch_size=VALUE"),
        (
            (
                *RUN,
                "--epochs=2",
            ),
            ("--epochs",),
            "--set epochs=VALUE",
        ),
        ((*RUN, "--temprature", "1"), ("--temprature",), "--set temperature=VALUE"),
        ((*RUN, "--seed", "1"), ("--seed",), "--seeds"),
        ((*RUN, "--zzz", "1"), ("--zzz",), "run --help"),
        (("evaluate", "builtin", "--lr", "1"), ("--lr",), "--set learning_rate=VALUE"),
        (("runs", "--lr", "1"), ("--lr",), "runs --help"),  # has no --set
        (("run",), ("no method was named",), "bench methods"),
        (("run", "--suite", "check"), ("no method was named",), "bench methods"),
        ((*RUN, "--backbone", ""), ("no backbone was named",), "bench doctor"),
        (
            ("run", "simsce", "--suite", "check"),
            ("unknown method 'simsce'", "simcse"),
            "bench methods",
        ),
        (
            ("run", "nothing.py", "--suite", "check"),
            ("nothing.py", "no such file"),
            "docs/add-a-method.md",
        ),
        (
            ("run", "--method", "simcse,,promcse"),
            ("--method simcse,,promcse", "missing"),
            "--method simcse,promcse",
        ),
        (("run", "simcse,", "--suite", "check"), ("simcse,", "missing"), "simcse"),
        ((*RUN, "--suite", "check,,sts"), ("--suite check,,sts", "missing"), "--suite check,sts"),
        ((*RUN, "--seeds", "1,,2"), ("--seeds 1,,2", "missing"), "--seeds 1,2"),
        (
            (*RUN, "--set", "temperature=0,05"),
            ("temperature=0,05", "decimal point"),
            "--set temperature=0.05",
        ),
        (
            (*RUN, "--set", "weight_decay=0,1"),
            ("weight_decay=0,1", "decimal point"),
            "--set weight_decay=0.1",
        ),
        (
            (*RUN, "--set", "learning_rate=1,05"),
            ("learning_rate=1,05", "decimal point"),
            "--set learning_rate=1.05",
        ),
        (
            (*RUN, "--set", "temperature=0"),
            ("temperature must be greater than 0",),
            "--set temperature=",
        ),
        ((*RUN, "--set", "learning_rate=-1"), ("learning_rate must be at least 0",), ""),
        ((*RUN, "--set", "dropout=1"), ("dropout must be less than 1",), ""),
        ((*RUN, "--data", __file__), (f"--data {__file__}", "is a file"), "--data DIR"),
        (
            ("evaluate", "builtin", "--data", __file__),
            (f"--data {__file__}", "is a file"),
            "--data DIR",
        ),
        (("evaluate", "/nope"), ("MODEL /nope: no such folder",), "hub name"),
        (("evaluate", __file__), (f"MODEL {__file__}: is a file",), "vectors:FILE.npz"),
        (("evaluate", "a b"), ("MODEL a b",), "hub name"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(
    tmp_path: Path, arguments: tuple[str, ...], said: tuple[str, ...], hint: str
) -> None:
    done = bench(*arguments, "--runs", tmp_path / "runs")
    line = error_line(done)
    assert all(part in line for part in said), line
    assert hint in done.stderr.splitlines()[-1] and not (tmp_path / "runs").exists()
    assert "--backbone" not in line + hint or "backbone" in " ".join(arguments)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("temperature", "0.03,0.05"),
        ("temperature", "0.0,1"),
        ("temperature", "0,1,2"),
        ("temperature", "1,2"),
        ("batch_size", "1,2,4"),
        ("batch_size", "10,20"),
        ("mlm", "0,1"),
    ],
)
def test_a_series_stays_a_series(key: str, values: str) -> None:
    from bench.run.plugins import discover
    from bench.run.recipes import check_overrides, series

    check_overrides({key: values}, [discover()["simcse"].cls], True)
    assert [overrides[key] for overrides in series({key: values})] == values.split(",")


def test_what_stands_for_an_option_is_an_option_or_a_recipe_value() -> None:
    run = main.get_command(click.Context(main), "run")
    assert run is not None
    options = {option for param in run.params for option in param.opts}
    for name in ("lr", "bs", "num_epochs", *TRAINING, *OTHER_NAMES):
        meant = meant_by_option("--" + name.replace("_", "-"))
        assert meant is not None or name == "num_epochs"
        assert meant is None or meant.split()[0] in options
    assert meant_by_option("--method-of-nobody") is None


def test_commas() -> None:
    for text in (None, "", "a", "a,b", " a , b "):
        check_commas("--method", text)
    assert comma_list("a,,b") == ("a", "b")


PLUGIN = """
import numpy as np
from bench.method import Method

class A(Method):
    name = "first-of-file"
    def encode(self, sentences):
        return np.array([[len(s), 1] for s in sentences], dtype=np.float32)

class B(A):
    name = "second-of-file"
"""


@pytest.mark.parametrize(
    ("arguments", "methods"),
    [
        (("cls",), ["cls"]),
        (("cls", "last-avg"), ["cls", "last-avg"]),
        (("cls,last-avg", "--method", "mean-nothing"), None),
        (("last-avg", "--method", "cls"), ["cls", "last-avg"]),
        (("FILE", "cls"), ["first-of-file", "second-of-file", "cls"]),
        (("cls", "FILE"), ["cls", "first-of-file", "second-of-file"]),
        (("FILE",), ["first-of-file", "second-of-file"]),
        (("FILE", "--method", "second-of-file"), ["second-of-file"]),
        (
            ("--seeds", "1", "FILE", "--backbone", "builtin", "cls"),
            ["first-of-file", "second-of-file", "cls"],
        ),
    ],
)
def test_methods_and_files_stand_without_an_option(
    tmp_path: Path, arguments: tuple[str, ...], methods: list[str] | None
) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    given = [
        str(tmp_path / "mine.py") if argument == "FILE" else argument for argument in arguments
    ]
    done = bench(
        "run", *given, "--suite", "check", "--runs", tmp_path / "runs", "--dry-run", "--json"
    )
    if methods is None:
        assert "unknown method 'mean-nothing'" in error_line(done)
        return
    assert done.exit_code == 0, done.stderr
    assert [
        json.loads(line)["run_id"].partition("-builtin")[0] for line in done.stdout.splitlines()
    ] == methods


def test_a_worker_is_told_of_methods_that_stand_without_an_option(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = bench(
        "run",
        tmp_path / "mine.py",
        "cls",
        "--suite",
        "check",
        "--runs",
        tmp_path / "runs",
        "--commands",
    )
    assert done.exit_code == 0, done.stderr
    assert "--method first-of-file,second-of-file,cls" in done.stdout and "/mine.py" in done.stdout


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("nothing", "does not exist"),
        ("file", "is a file"),
        ("empty", "is not in {}"),
        (None, "no data folder was given"),
    ],
)
def test_a_folder_that_was_given_is_named_where_a_suite_lacks_its_file(
    tmp_path: Path, data: str | None, said: str
) -> None:
    from test_plugin_errors import SUITE

    (tmp_path / "mine.py").write_text(
        SUITE.replace("return Loaded(task)", 'data.file("odd/odd.tsv"); return Loaded(task)')
    )
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    done = bench(
        "suites", "--check", tmp_path / "mine.py", *(("--data", tmp_path / data) if data else ())
    )
    line = error_line(done)
    assert said.format(tmp_path / str(data)) in line
    assert data is None or (str(tmp_path / data) in line and "was given" not in line)
