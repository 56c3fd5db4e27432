"""Mistakes of the first hours at the command line, each answered by one line that names what stands for it, and a hint that helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, error_line


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
