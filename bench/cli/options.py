"""Options that several verbs share; and what verbs print: lines, JSON, paragraphs and tables in which foreign text cannot act as markup or control."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from bench.base.errors import UNCHECKED, BenchError, Finding, UnknownName, printable
from bench.base.text import lines
from bench.show.grid import Column, Grid, grid
from bench.show.terminal import terminal_lines

T = TypeVar("T")

runs_option = click.option(
    "--runs",
    "runs",
    type=click.Path(path_type=Path),
    envvar="BENCH_RUNS",
    show_envvar=True,
    help="Folder of runs.  [default: ./runs]",
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
    """Register the suites in the files of --plugin before any suite is looked up."""
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
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
plain_option = click.option(
    "--plain", is_flag=True, help="Plain progress lines instead of a live display."
)
backbone_offline_option = click.option(
    "--offline", is_flag=True, help="Open no network connection; a missing backbone is an error."
)


def comma_list(text: str | None) -> tuple[str, ...]:
    """ "a,b" -> ("a", "b"); blanks and empty parts are dropped."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def parse_seeds(text: str) -> tuple[int, ...]:
    """ "42" -> (42,); "1-5" -> (1, 2, 3, 4, 5); "1,7-8" -> (1, 7, 8). Raises BenchError for anything else."""
    seeds: list[int] = []
    try:
        for part in comma_list(text):
            first, dash, last = part.partition("-")
            numbers = range(int(first), int(last) + 1) if dash else [int(first)]
            if not numbers or len(numbers) > 1000:
                raise ValueError
            seeds += numbers
        if not seeds:
            raise ValueError
    except ValueError:
        raise BenchError(
            f"--seeds {text}: expected numbers or ranges",
            "--seeds 42, --seeds 1-5, or --seeds 1,3,7-9",
        ) from None
    return tuple(dict.fromkeys(seeds))


def parse_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """``--set KEY=VALUE`` as a mapping, each value as it was typed (A,B,C is a series)."""
    overrides = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BenchError(
                f"--set {pair}: expected KEY=VALUE", "for example --set batch_size=128"
            )
        # a prompt such as "query: " ends in a blank
        overrides[key.strip()] = value if key.strip() in ("prompt", "prompts") else value.strip()
    return overrides


def check_names(
    kind: str, names: Iterable[str], known: Collection[str], where: str = "", hint: str = ""
) -> None:
    """Raises UnknownName for the first name that is not known."""
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, where, hint or None)


def matching(
    things: Sequence[T],
    names_of: Sequence[set[str]],
    kind: str,
    names: Sequence[str],
    where: str,
    hint: str,
) -> list[T]:
    """The things that have one of ``names``; all, if no name is given. Raises UnknownName for a name that none of them has."""
    check_names(kind, names if things else (), set().union(*names_of) - {""}, where, hint)
    return [
        thing
        for thing, known in zip(things, names_of, strict=True)
        if not names or not known.isdisjoint(names)
    ]


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Turns off the search for reference cycles: thousands of records have none, and the search takes a third of the time."""
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
    """JSON that a person can read: all characters as they are, except those that move a cursor or cannot be encoded."""
    return "".join(
        c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1]
        for c in json.dumps(value, indent=indent, ensure_ascii=False)
    )


def print_json(values: Iterable[Any]) -> None:
    """A line of JSON for each value."""
    for value in values:
        click.echo(json_text(value))


# --- paragraphs and tables on standard output, as wide as the terminal ---


NARROWEST = 24  # characters; a narrower column of text is hard to read


def width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def say(text: str, indent: int = 0, hang: int = 0, *, blank: bool = False) -> None:
    """Print a paragraph, wrapped between words; lines after the first are indented by ``hang`` more. ``blank``: after an empty line."""
    wrapped = textwrap.wrap(
        " ".join(lines(text)),
        max(width(), 40),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_on_hyphens=False,
    )
    click.echo("\n" * blank + "\n".join(wrapped))


def print_grid(table: Grid, indent: int = 0, *, blank: bool = False) -> None:
    """Print a table as wide as the terminal. ``blank``: after an empty line."""
    click.echo("\n" * blank, nl=False)
    console = Console(highlight=False, markup=False, emoji=False)
    for line in terminal_lines(
        table,
        width(),
        sys.stdout.encoding or "utf-8",
        indent=indent,
        styled=console.is_terminal,
    ):
        console.print(line, soft_wrap=True)


def print_columns(
    rows: Iterable[Sequence[str]],
    *,
    headings: Sequence[str] = (),
    indent: int = 0,
    blank: bool = False,
) -> None:
    """Print rows of texts, all equally long; the last text of a row wraps. See :func:`bench.show.grid.terminal`."""
    if listed := list(rows):
        *names, last = headings or [""] * len(listed[0])
        print_grid(grid([*names, Column(last, wrap=NARROWEST)], listed), indent, blank=blank)


def print_facts(facts: Iterable[Sequence[str]]) -> None:
    """The facts about one thing, a line each; facts without a text are left out."""
    print_columns([fact for fact in facts if fact[1]])


def print_findings(findings: Sequence[Finding], title: str = "") -> None:
    """Print a line for each finding: the outcome, where, which check, why, and what to do."""
    rows = [
        (
            "-"
            if finding.outcome == UNCHECKED or finding.repeats
            else ("ok" if finding.passed else "FAILED"),
            *(finding.what, finding.kind, finding.why, finding.hint),
        )
        for finding in findings
    ]
    wide = [Column(name, wrap=NARROWEST) for name in ("found", "what to do")]
    print_grid(grid(["", "where", "check", *wide], rows, title=title), indent=2)
