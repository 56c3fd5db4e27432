"""Options that several verbs share, as decorators; what they mean; and lines and JSON that are safe to print."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from bench.base.errors import BenchError, printable

runs_option = click.option(
    "--runs",
    "runs",
    type=click.Path(path_type=Path),
    envvar="BENCH_RUNS",
    show_envvar=True,
    help="Folder that holds runs.  [default: ./runs]",
)
data_option = click.option(
    "--data",
    "data",
    type=click.Path(path_type=Path),
    envvar="BENCH_DATA",
    show_envvar=True,
    help="Folder with evaluation data: senteval/, senteval-moses/, train/, ...",
)


def _know_suites(
    context: click.Context, option: click.Parameter, files: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The suites that the files of --plugin define are known before anything is looked up."""
    if files or "bench.score.suites" in sys.modules:  # else nobody knows of any
        from bench.score.suites import use_files

        use_files(files)
    return files


plugin_option = click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    callback=_know_suites,
    help="Python file that defines a method or a suite; may be repeated.",
)
suite_file_option = click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    multiple=True,
    expose_value=False,
    callback=_know_suites,
    help="Python file that defines a suite of these runs; may be repeated.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="JSON on standard output, and nothing else there."
)
device_option = click.option(
    "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps."
)
plain_option = click.option(
    "--plain", is_flag=True, help="No live display: a plain line every so often."
)
offline_option = click.option(
    "--offline", is_flag=True, help="Open no connection; what is missing is an error."
)
backbone_offline_option = click.option(
    "--offline", is_flag=True, help="Open no connection; a backbone that is missing is an error."
)
max_steps_option = click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    help="Optimiser steps at most (recipe key max_steps).",
)
allow_pickle_option = click.option(
    "--allow-pickle",
    is_flag=True,
    help="Take backbones whose weights are a pickle: its tensors are read, nothing else.",
)


def recipe_options(effect: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--set``, ``--max-steps`` and ``--budget`` of every verb that trains; ``effect``: what else the help says of a changed value."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option(
                "--budget",
                help="How long to train, in place of the recipe's epochs: 10m, 2h, 5000steps, 1e6sentences, 3e7tokens, 2gpu-h.",
            ),
            max_steps_option,
            click.option(
                "--set",
                "pairs",
                multiple=True,
                metavar="KEY=VALUE",
                help=f"Change a recipe value. May be repeated.{effect}",
            ),
        ):
            command = option(command)
        return command

    return decorate


def precision_option(words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--precision",
        type=click.Choice(["auto", "fp32", "tf32", "bf16", "fp16"]),
        default="auto",
        show_default=True,
        help=words,
    )


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


def check_commas(option: str, text: str | None) -> None:
    """Raises BenchError for "a,,b", "a," and ",b": a name may be missing. Nothing at all is another mistake."""
    names = comma_list(text)
    if names and len(names) < len((text or "").split(",")):
        raise BenchError(
            f"{option} {text}: a name is missing next to a comma", f"{option} {','.join(names)}"
        )


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for cycles meanwhile: among the objects of thousands of records there are none, and looking takes a third of
    the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def warn(line: str) -> None:
    """One line on standard error, with control characters made visible."""
    click.echo(printable(line), err=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that a person can read: characters as they are, but for those that move a cursor or cannot be encoded."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
