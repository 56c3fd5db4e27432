"""``bench verify``: test if the scores in records follow from the stored predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from bench.base.bars import make_bars
from bench.base.findings import AGREES, DIFFERS, UNCHECKED
from bench.base.printing import print_grid
from bench.base.text import plural
from bench.board.verify import runs_below
from bench.board.verify.findings import RunReport
from bench.board.verify.places import (
    OF_VERSIONS,
    find_folders,
    verify_folders,
)
from bench.board.verify.verified import is_not_judged, report_grids
from bench.cli.options import (
    json_option,
    json_text,
    plugin_option,
    runs_option,
)
from bench.records import RunsFolder


@click.command()
@click.argument("places", metavar="[RUN|FOLDER]...", nargs=-1)
@runs_option
@plugin_option
@json_option
@click.pass_context
def verify(
    context: click.Context,
    places: tuple[str, ...],
    runs: Path | None,
    plugins: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Compute scores again from stored predictions, hashes from files, and the verdicts of a
    published version from its scores.

    Exit code 1 if anything differs or cannot be computed again.

    RUN is an id, the beginning of ids, or a path; FOLDER holds runs, or is a published version
    (leaderboards/v6, or v6). Without any, all runs in the runs folder.

    \b
    Example:  bench verify simcse-builtin-s42
              bench verify leaderboards/v6
    """
    folders = list(find_folders(places, RunsFolder(runs)))
    reports = []
    count = sum(len(runs_below(folder)) for folder in folders)
    with make_bars(MofNCompleteColumn(separator="/"), TimeRemainingColumn()) as bars:
        task = bars.add_task("verify", total=count)

        def say(activity: str) -> None:
            bars.update(task, description=f"verify: {activity}")

        for report in verify_folders(folders, say):
            reports.append(report)
            if report.name not in OF_VERSIONS:
                bars.advance(task)
            if as_json:
                click.echo(json_text(report.as_object()))
    if not as_json:
        for table in report_grids(reports):
            print_grid(table)
            click.echo()
        click.echo(_summary(reports))
    has_problem = any(report.differences or report.count("score", UNCHECKED) for report in reports)
    context.exit(1 if has_problem else 0)


def _summary(reports: Sequence[RunReport]) -> str:
    """Write "2 runs, 14 scores computed again: nothing differs"."""
    runs = [report for report in reports if report.name not in OF_VERSIONS]
    computed = 0
    unchecked = 0
    for report in runs:
        computed += report.count("score", AGREES) + report.count("score", DIFFERS)
        unchecked += report.count("score", UNCHECKED)
    differing = [report for report in runs if report.differences]
    problems = []
    if differing:
        problems.append(f"{plural(len(differing), 'run')} with differences")
    for report in reports:
        if report.name in OF_VERSIONS and report.differences:
            problems.append(f"{report.name} differs")
    if unchecked:
        problems.append(f"{plural(unchecked, 'score')} could not be computed again")
    result = ", ".join(problems) or "nothing differs"
    if any(map(is_not_judged, reports)):
        result += "; the verdicts were not judged again"
    return f"{plural(len(runs), 'run')}, {plural(computed, 'score')} computed again: {result}"
