"""``bench verify``: do the scores in a record follow from its predictions?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from bench.base.errors import AGREES, DIFFERS, UNCHECKED, BenchError
from bench.base.text import plural
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    plugin_option,
    print_grid,
    runs_option,
    warn,
)
from bench.data.sets import DataFolder
from bench.runs import RunsFolder
from bench.show.tables.report import report_grids
from bench.verify import More, RunReport, check_manifest, fetch_predictions, runs_below, verify_run

PUBLISHED, MANIFEST = Path("leaderboards"), "MANIFEST.json"


@click.command()
@click.argument("places", metavar="[RUN|FOLDER]...", nargs=-1)
@runs_option
@data_option
@click.option(
    "--retrain-free",
    "again",
    is_flag=True,
    help="Also encode from the checkpoint and compare predictions. Needs torch and --data.",
)
@plugin_option
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="Where --retrain-free encodes: auto, cpu, cuda, mps.",
)
@click.option("--offline", is_flag=True, help="Fetch nothing.")
@json_option
@click.pass_context
def verify(
    context: click.Context,
    places: tuple[str, ...],
    runs: Path | None,
    data: Path | None,
    again: bool,
    plugins: tuple[Path, ...],
    device: str,
    offline: bool,
    as_json: bool,
) -> None:
    """Compute every score again from its stored predictions, and every hash from the files. Exit code 1 if anything differs or cannot be computed again.

    RUN is an id, the beginning of ids, or a path; FOLDER holds runs, or is a published version (leaderboards/v4, or v4). Without any,
    all runs in the runs folder. Predictions of a version that lie elsewhere are fetched by their hash; not with --offline.

    \b
    Example:  bench verify simcse-builtin-s42
              bench verify leaderboards/v4
    """
    folder = DataFolder(data, offline=True) if data is not None else None
    more = _encoder(folder, plugins, device, offline) if again else None
    reports = []
    for report in _reports(list(_folders(places, RunsFolder(runs))), folder, more, offline):
        reports.append(report)
        if as_json:
            click.echo(json_text(report.as_object()))
    if not as_json:
        for table in report_grids(reports):
            print_grid(table)
            click.echo()
        click.echo(_summary(reports))
    context.exit(
        int(any(report.differences or report.count("score", UNCHECKED) for report in reports))
    )


def _folders(places: Sequence[str], store: RunsFolder) -> Iterator[Path]:
    """The folder of each argument: of a run, of runs, or of a published version. Raises UnknownName for anything else."""
    for place in places or (str(store.path),):
        if not places or Path(place).is_dir():
            yield Path(place)
        elif (PUBLISHED / place).is_dir():
            yield PUBLISHED / place
        else:
            yield from (file.parent for file in store.record_files(place))


def _reports(
    folders: Sequence[Path], data: DataFolder | None, more: More | None, offline: bool
) -> Iterator[RunReport]:
    """A report on the manifest of each version, then one on each run. Raises BenchError if a folder has no run."""
    runs: dict[Path, None] = {}
    for folder in folders:
        if (manifest := check_manifest(folder)) is not None:
            fetched = fetch_predictions(folder, offline=offline)
            yield RunReport(
                manifest.name,
                [*manifest.findings, *([fetched] if fetched else [])],
                manifest.status,
            )
        if not (below := runs_below(folder)):
            raise BenchError(f"no run in {folder}", "bench run ..., or another folder: --runs DIR")
        runs |= dict.fromkeys(run.absolute() for run in below)
    yield from (verify_run(run, data, more) for run in runs)


def _encoder(
    data: DataFolder | None, plugins: tuple[Path, ...], device: str, offline: bool
) -> More:
    """The comparison of --retrain-free, which encodes from checkpoints."""
    from bench.base import devices
    from bench.run.plugins import discover
    from bench.verify.reencode import encode_again

    for warning in discover(plugins).warnings:
        warn(f"warning: {warning}")
    return partial(
        encode_again,
        plugins=plugins,
        data=data or DataFolder(None, offline=True),  # enough for the suite check
        device=devices.choose_device(device),
        offline=offline,
    )


def _summary(reports: Sequence[RunReport]) -> str:
    """ "2 runs, 14 scores computed again: nothing differs" """
    runs = [report for report in reports if report.name != MANIFEST]
    scores = sum(report.count("score", end) for report in runs for end in (AGREES, DIFFERS))
    unchecked = sum(report.count("score", UNCHECKED) for report in runs)
    differing = sum(bool(report.differences) for report in reports)
    ends = [f"{plural(differing, 'run')} with differences"] if differing else []
    ends += [f"{plural(unchecked, 'score')} could not be computed again"] if unchecked else []
    return (
        f"{plural(len(runs), 'run')}, {plural(scores, 'score')} computed again: "
        f"{', '.join(ends) or 'nothing differs'}"
    )
