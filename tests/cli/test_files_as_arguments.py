"""Methods and files among the arguments, and every option that a page names is in the help."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import click
import pytest
from commands import argv, bench, error_line

from bench.cli import main

ROOT = Path(__file__).resolve().parents[2]


def test_data_among_the_models_is_for_the_option_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    done = bench("evaluate", "builtin", "pairs.tsv")
    assert error_line(done) == "error: pairs.tsv is a file of data, and no model"
    assert "bench evaluate MODEL --suite pairs.tsv" in done.stderr


def test_options_on_the_pages_are_in_the_help() -> None:
    """Every option of a command in README and docs is in the help of its verb.

    docs/promises.md also names what is promised and not there yet.
    """
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages.remove(ROOT / "docs" / "promises.md")
    hidden = {}
    help_of = cache(lambda verb: bench(verb, "--help").stdout)
    for page in pages:
        for line in re.findall(r"\bbench ([a-z]+)([^\n`|#]*)", page.read_text(encoding="utf-8")):
            verb, rest = line
            command = main.get_command(click.Context(main), verb)
            if command is None or isinstance(command, click.Group):
                continue
            shown = help_of(verb)
            for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest):
                if name not in shown:
                    hidden[f"{page.name}: bench {verb}"] = name
    assert hidden == {}


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
    ("line", "methods"),
    [
        ("mine.py cls", "first-of-file second-of-file cls"),
        ("--seeds 1 mine.py --backbone builtin cls", "first-of-file second-of-file cls"),
    ],
)
def test_methods_and_files_need_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, methods: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = bench(*argv(f"run {line} --suite check --dry-run --json"))
    assert done.exit_code == 0, done.stderr
    ids = [json.loads(plan)["run_id"] for plan in done.stdout.splitlines()]
    assert [one.partition("-builtin")[0] for one in ids] == methods.split()
