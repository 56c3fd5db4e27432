"""``bench submit``: write finished runs as folders that a pull request adds to a board."""

from __future__ import annotations

from pathlib import Path

import click

from bench.base.terminal import warn
from bench.base.text import comma_list
from bench.board.publish.submit import submit_runs
from bench.board.publish.suites import own_data_lines
from bench.cli.options import leave_out_option, runs_option
from bench.records.names import RECORD
from bench.records.record import read_record
from bench.records.store import RunsFolder


@click.command()
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@click.option("--by", required=True, help="Who ran it: a name, as the leaderboard shows it.")
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
    """Write finished runs, with their predictions, to folders for a pull request.

    Each run is checked as the leaderboard checks it. RUN is an id, the beginning of ids, or a path.
    Nothing is sent. A record holds your command, and the processor and libraries it ran on: look at
    it before you hand it over.

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
