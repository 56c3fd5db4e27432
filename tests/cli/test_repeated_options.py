"""A hint that names a command says which options of the typed command it needs, too."""

from __future__ import annotations

import click
import pytest

from bench.base.errors import BenchError
from bench.cli import main, show_error
from bench.cli.errors import TYPED


@pytest.mark.parametrize(
    ("typed", "hint", "ends"),
    [
        ("compare x --runs r", "bench runs", " (with the same --runs)"),
        ("compare x --runs=r", "bench runs", " (with the same --runs)"),
        ("run --plugin a.py --runs r", "bench methods", " (with the same --runs and --plugin)"),
        ("compare --runs r", "bench run --runs DIR", ""),
        ("compare --runs r", "another folder", ""),
        ("compare", "bench runs", ""),
    ],
)
def test_options_of_the_typed_command(
    typed: str, hint: str, ends: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with click.Context(main) as context:
        context.meta[TYPED] = typed.split()
        show_error(BenchError("wrong", hint))
    assert capsys.readouterr().err == f"error: wrong\ntry: {hint}{ends}\n"
