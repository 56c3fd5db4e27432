"""A hint's commands repeat --runs and --plugin of the command that was typed, where they take them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from commands import bench

from bench.cli import main
from bench.cli.hints import TYPED, repeat_options


@pytest.mark.parametrize(
    ("typed", "hint", "shown"),
    [
        ("compare x --runs my dir", "bench runs", "bench runs --runs my"),
        (
            "compare x --runs=r",
            "bench runs RUN, or bench runs",
            "bench runs --runs r RUN, or bench runs --runs r",
        ),
        (
            "run --plugin a.py --plugin b.py --runs r",
            "bench methods lists them",
            "bench methods --plugin a.py --plugin b.py lists them",
        ),
        (
            "run mine.py simcse",
            "bench suites; of a file: --plugin FILE",
            "bench suites --plugin mine.py; of a file: --plugin FILE",
        ),
        ("compare --runs r", "bench run --runs other", "bench run --runs other"),
        (
            "compare --runs r",
            "bench data list, not bench nosuch",
            "bench data list, not bench nosuch",
        ),
        ("compare", "bench runs", "bench runs"),
    ],
)
def test_commands_in_a_hint(typed: str, hint: str, shown: str) -> None:
    with click.Context(main) as context:
        context.meta[TYPED] = typed.split()
        assert repeat_options(hint) == shown


def test_the_hint_of_an_error_can_be_copied(tmp_path: Path) -> None:
    (tmp_path / "with blank").mkdir()
    done = bench("compare", "--runs", tmp_path / "with blank", "--method", "x")
    assert done.exit_code == 2 and f"bench run --runs '{tmp_path}/with blank'" in done.stderr
