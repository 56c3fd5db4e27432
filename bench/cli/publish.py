"""``bench publish``: a new version of the leaderboards, a preview, or a check of the versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from bench.base.collector import no_collection
from bench.base.errors import BenchError, printable
from bench.base.foreign_text import make_visible
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import list_names, plural
from bench.board.publish import build
from bench.board.verify.verified import report_grids
from bench.cli.options import (
    json_option,
    leave_out_option,
    plugin_option,
    print_json,
    runs_option,
)

SHOWN = 20
"""Lines about runs that are left out."""


@click.command()
@runs_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="leaderboards",
    show_default=True,
    help="Folder of the versions.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Publish nothing: compare every file of every version with its manifest, and follow every "
    "link of the pages. Exit code 1 if anything was altered or leads nowhere.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="Write OUT/preview, which the next preview replaces, and no version.",
)
@click.option(
    "--submissions",
    type=click.Path(path_type=Path),
    help="Also publish the runs in this folder. Each is checked, and its scores are computed "
    "again. Exit code 1 if one is refused.",
)
@click.option(
    "--baseline",
    help="The row that the others are compared with, fixed before the scores are seen. "
    '"" is simcse.  [default: as the last version]',
)
@click.option(
    "--main-budget",
    metavar="BUDGET",
    help="Training length of the tables that come first, such as 1000steps; the finding is about "
    'them. "" takes the length of most runs.  [default: as the last version]',
)
@click.option("--title", help="Heading of the pages.  [default: as the last version]")
@click.option(
    "--note", help='What a reader should know first. "" for none.  [default: as the last version]'
)
@click.option(
    "--address",
    metavar="URL",
    help="Where OUT will be on the web. Pages get tags for links on other sites, and "
    "citations get the address.  [default: as the last version]",
)
@click.option(
    "--docs",
    metavar="URL",
    help="Address of the documentation that pages link to: a folder, or its README.md.  "
    "[default: docs/ next to OUT, in a clone]",
)
@leave_out_option
@plugin_option
@json_option
@click.pass_context
def publish(
    context: click.Context,
    out: Path,
    check: bool,
    as_json: bool,
    runs: Path | None,
    submissions: Path | None,
    **options: Any,
) -> None:
    """Write a new version of the leaderboards into OUT: pages, Markdown, data.

    A version has the runs of a folder, and the published numbers of papers.

    A published version never changes. If nothing is new since the last one, none is made. --runs
    may be the runs of a version.

    \b
    Example:  bench publish --note "a small backbone, not the papers' setting"
              bench publish --preview
              bench publish --runs leaderboards/v6/runs --submissions leaderboards/submissions
              bench publish --check
    """
    if check:
        _refuse_beside_check(context)
        context.exit(_check_versions(out, as_json))
    with no_collection(), _status_line() as report:
        outcome = build.publish_version(
            runs,
            out,
            build.PublishOptions(**options),
            submissions=submissions,
            report=report,
        )
    for line in outcome.own_data:
        warn(line)
    lines = [*outcome.refused, *(f"left out: {line}" for line in outcome.board.left_out)]
    for line in lines[:SHOWN]:
        warn(line)
    if len(lines) > SHOWN:
        warn(f"and {len(lines) - SHOWN} more")
    if as_json:
        print_json([_outcome_object(outcome)])
    else:
        _print_outcome(outcome)
    context.exit(1 if outcome.refused else 0)


def _outcome_object(outcome: build.Outcome) -> dict[str, Any]:
    board = outcome.board
    return {
        "version": outcome.name,
        "new": outcome.folder is not None,
        "folder": None if outcome.folder is None else str(outcome.folder),
        "runs": len(board.runs),
        "methods": list(board.methods),
        "answer": board.answer,
        "left_out": list(board.left_out),
        "refused": list(outcome.refused),
    }


def _print_outcome(outcome: build.Outcome) -> None:
    board = outcome.board
    if outcome.folder is None:
        click.echo(f"nothing is new since {outcome.name}: no new version")
        return
    counts = [
        plural(len(board.runs), "run"),
        plural(len(board.methods), "method"),
        plural(len(board.tables), "table"),
    ]
    click.echo(f"{outcome.name}: {', '.join(counts)}: {outcome.folder / 'index.html'}")
    click.echo(make_visible(board.answer, limit=None))


def _refuse_beside_check(context: click.Context) -> None:
    """Raise BenchError for typed options that ``--check`` would leave without effect."""
    useless = []
    for option in context.command.params:
        is_typed = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_typed and option.name not in ("check", "out", "as_json"):
            useless.append(option.opts[0])
    if useless:
        names = list_names(useless)
        raise BenchError(f"--check cannot be combined with {names}", f"leave {names} out")


def _check_versions(out: Path, as_json: bool) -> int:
    """Compare every file of every version with its manifest, and follow every link of the pages;
    returns the exit code."""
    from bench.board.publish.dead_links import check_links
    from bench.board.publish.versions import check_versions

    reports = [*check_versions(out), check_links(out)]
    if as_json:
        print_json(report.as_object() for report in reports)
    else:
        for table in report_grids(reports):
            print_grid(table)
    return 1 if any(report.differences for report in reports) else 0


@contextmanager
def _status_line() -> Iterator[Callable[[str, int, int], None]]:
    """Show one line that changes, on a terminal; nothing elsewhere.

    Yields a function that takes an activity, how many of its things are done, and how many there
    are.
    """

    def report(activity: str, done: int, of: int) -> None:
        text = printable(activity)[:60]
        if of > 1:
            text += f" ({done + 1} of {of})"
        status.update(Text(text))

    with Console(stderr=True).status("reading runs") as status:
        yield report
