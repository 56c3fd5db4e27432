"""Options that several verbs share, and the printing of lines, JSON, paragraphs and tables.

Foreign text that is printed cannot act as markup or move a cursor.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.text import Text

from bench.base.errors import UnknownName
from bench.base.findings import UNCHECKED, Finding
from bench.base.foreign_text import encodable, printable_lines
from bench.base.grid import GridColumn, grid
from bench.base.printing import make_console, print_grid
from bench.base.terminal import terminal_width
from bench.base.text import comma_list

T = TypeVar("T")

NARROWEST_COLUMN = 24
"""Characters; a narrower column of text is hard to read."""

NARROWEST_PARAGRAPH = 40
"""Characters."""

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


def _register_suites(
    context: click.Context, option: click.Parameter, files: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Register the suites in the files of --plugin before any suite is looked up."""
    if files or "bench.score.suites" in sys.modules:  # else no suite is registered yet
        from bench.score.suites import use_files

        use_files(files)
    return files


plugin_option = click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    callback=_register_suites,
    help="Python file that defines a method or a suite; may be repeated.",
)


def _split_names(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names in all of the texts; a text may hold several with commas between."""
    return comma_list(",".join(texts))


leave_out_option = click.option(
    "--leave-out",
    metavar="SUITE",
    multiple=True,
    callback=_split_names,
    help="Leave out scores and predictions of this suite (a,b); may be repeated.",
)
suite_file_option = click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    multiple=True,
    expose_value=False,
    callback=_register_suites,
    help="Python file that defines a suite of these runs; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
plain_option = click.option(
    "--plain", is_flag=True, help="Plain progress lines instead of a live display."
)
VERBOSE_HELP = "Also show which weights of a backbone were read and which are missing."
verbose_option = click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
backbone_offline_option = click.option(
    "--offline", is_flag=True, help="Open no network connection; a missing backbone is an error."
)


def check_known_names(
    kind: str, names: Iterable[str], known: Collection[str], where: str = "", hint: str = ""
) -> None:
    """Raise UnknownName for the first of ``names`` that is not among ``known``."""
    for name in names:
        if name not in known:
            raise UnknownName(kind, name, known, where, hint or None)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON that a person can read.

    All characters are unchanged, except those that move a cursor or cannot be encoded.
    """
    characters = []
    for character in json.dumps(value, indent=indent, ensure_ascii=False):
        if character.isprintable() or character == "\n":
            characters.append(character)
        else:
            characters.append(json.dumps(character)[1:-1])
    return "".join(characters)


def print_json(values: Iterable[Any]) -> None:
    """Print a line of JSON for each value."""
    for value in values:
        click.echo(json_text(value))


def say(text: str, indent: int = 0, hang: int = 0, *, blank: bool = False, style: str = "") -> None:
    """Print a paragraph as wide as the terminal, wrapped between words.

    Lines after the first are indented by ``hang`` more. ``blank``: print an empty line before it.
    ``style``: "bold" or "dim", on a terminal.
    """
    encoding = sys.stdout.encoding or "utf-8"
    wrapped = textwrap.wrap(
        encodable(" ".join(printable_lines(text)), encoding),
        max(terminal_width(), NARROWEST_PARAGRAPH),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_on_hyphens=False,
        break_long_words=False,
    )
    if blank:
        click.echo()
    if not style:
        click.echo("\n".join(wrapped))
        return
    make_console().print(Text("\n".join(wrapped), style), soft_wrap=True)


def print_columns(
    rows: Iterable[Sequence[str]],
    *,
    headings: Sequence[str] = (),
    indent: int = 0,
    blank: bool = False,
) -> None:
    """Print rows of texts, all equally long, as a table with a last column that wraps."""
    listed = list(rows)
    if not listed:
        return
    *names, last = headings or [""] * len(listed[0])
    table = grid([*names, GridColumn(last, wrap=NARROWEST_COLUMN)], listed)
    print_grid(table, indent, blank=blank)


def print_facts(facts: Iterable[Sequence[str]]) -> None:
    """Print the facts about one thing, a line each; facts without a text are left out."""
    print_columns([fact for fact in facts if fact[1]])


def print_findings(findings: Sequence[Finding], title: str = "") -> None:
    """Print a line for each finding: the outcome, where, which check, why, and what to do."""
    rows = []
    for finding in findings:
        if finding.outcome == UNCHECKED or finding.repeats:
            outcome = "-"
        elif finding.passed:
            outcome = "ok"
        else:
            outcome = "FAILED"
        rows.append((outcome, finding.what, finding.kind, finding.why, finding.hint))
    columns: list[str | GridColumn] = ["", "where", "check"]
    columns += [GridColumn(name, wrap=NARROWEST_COLUMN) for name in ("found", "what to do")]
    print_grid(grid(columns, rows, title=title), indent=2)
