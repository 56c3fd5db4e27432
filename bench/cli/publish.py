"""``bench publish``: a new version of the leaderboards, a preview, or a check of those that are there; and ``bench submit``: runs for a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from bench.base.errors import printable
from bench.base.foreign_text import make_visible
from bench.base.text import plural
from bench.cli.options import (
    comma_list,
    data_option,
    json_option,
    no_collection,
    plugin_option,
    print_grid,
    print_json,
    runs_option,
    warn,
)
from bench.data.sets import DataFolder
from bench.publish import build
from bench.publish.submit import submit_runs
from bench.publish.suites import own_data_lines
from bench.records.names import RECORD
from bench.records.record import read_record
from bench.records.store import RunsFolder
from bench.show.tables.verified import report_grids

SHOWN = 20  # lines about runs that are left out


def _split_names(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names in all of the texts, each of which may hold several with commas between."""
    return comma_list(",".join(texts))


leave_out_option = click.option(
    "--leave-out",
    metavar="SUITE",
    multiple=True,
    callback=_split_names,
    help="Hand over no score and no prediction of this suite (a,b); may be repeated.",
)


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
    help="Publish nothing: compare every file of every version with its manifest. Exit code 1 if anything was altered.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="Write OUT/preview, which the next preview replaces, and no version.",
)
@click.option(
    "--submissions",
    type=click.Path(path_type=Path),
    help="Also the runs in this folder, each checked and every score computed again. Exit code 1 if one is refused.",
)
@click.option(
    "--baseline",
    help="The row that the others are compared with, fixed before the scores are seen.  [default: simcse]",
)
@click.option("--title", help="Heading of the pages.  [default: as the last version]")
@click.option(
    "--note", help='What a reader should know first. "" for none.  [default: as the last version]'
)
@click.option(
    "--predictions-url",
    metavar="URL",
    help="Leave the predictions out of the version: OUT/vN.predictions.parquet is what you put at this address. The manifest "
    "names it by sha256 and size.",
)
@leave_out_option
@data_option
@plugin_option
@json_option
@click.pass_context
def publish(
    context: click.Context,
    out: Path,
    check: bool,
    as_json: bool,
    data: Path | None,
    **options: Any,
) -> None:
    """A new version of the leaderboards in OUT, from the runs in a folder and from what papers printed: pages, Markdown, data.

    A published version never changes. If nothing is new since the last one, none is made. --runs may be the runs of a version.

    \b
    Example:  bench publish --note "a small backbone, not the papers' setting"
              bench publish --preview
              bench publish --runs leaderboards/v4/runs --submissions leaderboards/submissions
              bench publish --check
    """
    if check:
        context.exit(_check(out, as_json))
    with no_collection(), _progress() as report:
        outcome = build.publish(
            out=out,
            data=DataFolder(data, offline=True) if data is not None else None,
            report=report,
            **options,
        )
    board = outcome.board
    lines = [*outcome.refused, *(f"left out: {line}" for line in board.left_out)]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    for line in (*outcome.own_data, *lines[:SHOWN], *more):
        warn(line)
    if not as_json:
        _show(outcome)
    else:
        print_json(
            [
                {
                    "version": outcome.name,
                    "new": outcome.folder is not None,
                    "folder": None if outcome.folder is None else str(outcome.folder),
                    "runs": len(board.runs),
                    "methods": list(board.methods),
                    "answer": board.answer,
                    "changes": None if board.changes is None else asdict(board.changes),
                    "left_out": list(board.left_out),
                    "refused": list(outcome.refused),
                }
            ]
        )
    context.exit(1 if outcome.refused else 0)


def _show(outcome: build.Outcome) -> None:
    board = outcome.board
    if outcome.folder is None:
        click.echo(f"nothing is new since {outcome.name}: no new version")
        return
    counts = {"run": board.runs, "method": board.methods, "table": board.tables}
    counted = ", ".join(plural(len(things), noun) for noun, things in counts.items())
    click.echo(
        f"{outcome.name}: {counted}: {outcome.folder / 'index.html'}\n"
        f"{make_visible(board.answer, limit=None)}"
    )
    if board.changes is not None:
        click.echo(f"{plural(len(board.changes.rows), 'row')} changed since {board.changes.before}")


def _check(out: Path, as_json: bool) -> int:
    from bench.publish.versions import check_versions

    reports = check_versions(out)
    print_json(report.as_object() for report in reports if as_json)
    for table in () if as_json else report_grids(reports):
        print_grid(table)
    return 1 if any(report.differences for report in reports) else 0


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows one line that changes, on a terminal; nothing elsewhere."""

    def report(activity: str, done: int, of: int) -> None:
        count = f" ({done + 1} of {of})" if of > 1 else ""
        status.update(Text(f"{printable(activity)[:60]}{count}"))

    with Console(stderr=True).status("reading runs") as status:
        yield report


# --- ``bench submit``: finished runs as folders that a pull request adds to ``leaderboards/submissions`` ---


@click.command()
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@click.option("--by", required=True, help="Who ran it: a name, as the board shows it.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    default="leaderboards/submissions",
    show_default=True,
    help="Where to write the folders.",
)
@click.option("--suite", help="Scores of these suites only (a,b).")
@leave_out_option
@runs_option
def submit(
    references: tuple[str, ...],
    by: str,
    to: Path,
    suite: str | None,
    leave_out: tuple[str, ...],
    runs: Path | None,
) -> None:
    """Write finished runs, with their predictions, to folders for a pull request; each is checked as the board checks it.

    RUN is an id, the beginning of ids, or a path. Give all seeds of a row in one command: runs that came in several stand in rows of their
    own. Nothing is sent. A record holds your command, and the processor and libraries it ran
    on: look at it before you hand it over.

    \b
    Example:  bench submit simcse-builtin --by "Ada Lovelace, Example University"
    """
    store = RunsFolder(runs)
    files = dict.fromkeys(file for name in references for file in store.record_files(name))
    sources = [file.parent.absolute() for file in files]
    folders = submit_runs(sources, to, by, comma_list(suite), leave_out)
    for line in own_data_lines(read_record(folder / RECORD) for folder in folders):
        warn(line)
    if leave_out:
        warn(f"left out: scores and predictions of {', '.join(dict.fromkeys(leave_out))}")
    for folder in folders:
        click.echo(folder)
