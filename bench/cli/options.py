"""Options that several verbs share, as decorators."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bench.base.errors import BenchError

F = TypeVar("F", bound=Callable[..., Any])

runs_option = click.option("--runs", "runs", type=click.Path(path_type=Path), envvar="BENCH_RUNS", show_envvar=True,
                           help="Folder that holds runs.  [default: ./runs]")  # fmt: skip
data_option = click.option("--data", "data", type=click.Path(path_type=Path), envvar="BENCH_DATA", show_envvar=True,
                           help="Folder with evaluation data: senteval/, senteval-moses/, train/, ...")  # fmt: skip
plugin_option = click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Python file that defines a method; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON on standard output, and nothing else there.")
plain_option = click.option("--plain", is_flag=True, help="No live display: a plain line every so often.")


def save_seconds() -> float:
    """$BENCH_SAVE_SECONDS: how much training a crash may lose. 60 where it is not set."""
    text = os.environ.get("BENCH_SAVE_SECONDS") or "60"
    try:
        return float(text)
    except ValueError:
        raise BenchError(f"BENCH_SAVE_SECONDS={text}: expected a number of seconds") from None


def comma_list(text: str | None) -> tuple[str, ...]:
    """ "a,b" -> ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
