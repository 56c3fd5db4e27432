"""``bench verify``: is what a record says what its predictions give?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, UnknownName
from bench.base.text import plural
from bench.cli.columns import plain_console
from bench.cli.options import data_option, json_option, json_text, plugin_option, runs_option, warn

if TYPE_CHECKING:
    from rich.console import Console

    from bench.verify import RunReport
    from bench.verify.identity import More

PUBLISHED, MANIFEST = Path("leaderboards"), "MANIFEST.json"
SHOWN = 20  # differences of one run that are printed one by one
WORDS = {
    "predictions": ("prediction file", "prediction files"),
    "gold": ("gold standard", "gold standards"),
    "data": ("data set", "data sets"),
    "files": ("file", "files"),
    "encoding": ("task encoded again", "tasks encoded again"),
}


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
    """Compute every score again from its stored predictions, and every hash from the files. Exit code 1 where something differs, or a
    score cannot be computed again.

    RUN is an id, the beginning of ids, or a path; FOLDER holds runs, or is a published version (leaderboards/v3, or v3). Without any,
    all runs in the runs folder. Predictions of a version that lie elsewhere are fetched by their hash; not with --offline.

    \b
    Example:  bench verify simcse-builtin-s42
              bench verify leaderboards/v3
    """
    from bench.data.sets.folder import DataFolder
    from bench.verify import UNCHECKED

    folder = DataFolder(data, offline=True) if data is not None else None
    reports: list[RunReport] = []
    console = plain_console()
    more = _encoder(folder, plugins, device, offline) if again else None
    for report in _reports(places, runs, folder, more, offline):
        reports.append(report)
        if as_json:
            click.echo(json_text(report.as_object()))
        else:
            _print(report, console)
    if not as_json:
        _print_end(reports, console)
    context.exit(
        1
        if any(report.differences or report.count("score", UNCHECKED) for report in reports)
        else 0
    )


def _reports(
    places: tuple[str, ...], runs: Path | None, data: Any, more: More | None, offline: bool
) -> Iterator[RunReport]:
    from bench.verify import RunReport, check_manifest, fetch_predictions, verify_run

    seen: set[Path] = set()
    for base, folders in _places(places, runs):
        if base is not None and (manifest := check_manifest(base)) is not None:
            fetched = fetch_predictions(base, offline=offline)
            findings = [*manifest.findings, *([fetched] if fetched else [])]
            yield RunReport(manifest.name, findings, manifest.status)
        for folder in folders:
            if folder.absolute() not in seen:
                seen.add(folder.absolute())
                yield verify_run(folder, data, more)


def _places(places: tuple[str, ...], runs: Path | None) -> Iterator[tuple[Path | None, list[Path]]]:
    """(folder of a published version or of runs, the runs in it) for each argument. Raises BenchError where there are none."""
    from bench.runs import RunsFolder
    from bench.verify import runs_below

    store = RunsFolder(runs)
    for place in places or (str(store.path),):
        try:
            if places and not Path(place).is_dir():
                yield None, [file.parent for file in store.record_files(place)]
                continue
            path = Path(place)
        except UnknownName:
            if not (PUBLISHED / place).is_dir():
                raise
            path = PUBLISHED / place
        folders = runs_below(path)
        if not folders:
            raise BenchError(f"no run in {path}", "bench run ..., or another folder: --runs DIR")
        yield path, folders


def _encoder(data: Any, plugins: tuple[Path, ...], device: str, offline: bool) -> More:
    """--retrain-free: encodes from checkpoints."""
    from bench.base import devices
    from bench.data.sets.folder import DataFolder
    from bench.run.plugins import discover
    from bench.verify.reencode import Encoder

    registry = discover(plugins)
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    sets = data if data is not None else DataFolder(None, offline=True)  # enough for suite check
    return Encoder(registry, sets, devices.choose_device(device), offline).compare


def _print(report: RunReport, console: Console) -> None:
    from rich.text import Text

    from bench.compare.formatting import visible

    unchecked = [finding for finding in report.unchecked if finding.kind == "score"]
    word = "agrees" if report.count_agreeing() and not unchecked else "not checked"
    if report.differences:
        word = "differs"
    status = "" if report.status in ("finished", "published") else f", {report.status}"
    words = agreement(report)
    console.print(
        Text.assemble(
            (visible(report.name, console.encoding), "bold"),
            f"{status} ",
            (word, "bold red" if report.differences else ""),
            (
                f"{'; agree' if report.differences or unchecked else ''}: {words}" if words else "",
                "dim",
            ),
        )
    )
    listed = [*report.differences, *unchecked]
    for finding in listed[:SHOWN]:
        about = finding.kind
        if finding.what != finding.kind:
            about += f" of {visible(finding.what, console.encoding)}"
        about += " not checked" if finding in unchecked and report.differences else ""
        console.print(Text(f"  {about}: {visible(finding.why, console.encoding)}"))
    if len(listed) > SHOWN:
        console.print(Text(f"  and {len(listed) - SHOWN} more; --json lists them"))


def agreement(report: RunReport) -> str:
    """ "7 scores, 1 average, 7 data sets, fingerprint": what agrees, counted."""
    from bench.verify.findings import KINDS

    return ", ".join(_counted(kind, n) for kind in KINDS if (n := report.count(kind)))


def _counted(kind: str, n: int) -> str:
    if kind in ("checkpoint", "fingerprint"):
        return kind
    singular, more = WORDS.get(kind, (kind, f"{kind}s"))
    return f"{n:,} {singular if n == 1 else more}"


def _print_end(reports: list[RunReport], console: Console) -> None:
    from rich.text import Text

    from bench.compare.formatting import visible
    from bench.verify import AGREES, DIFFERS, UNCHECKED

    left = Counter(
        (finding.kind, finding.why)
        for report in reports
        for finding in report.unchecked
        if finding.kind != "score"
    )
    if left:
        console.print(Text("not checked", "bold"))
        for (kind, why), count in sorted(left.items()):
            console.print(Text(f"  {kind} ({count}): {visible(why, console.encoding)}"))
    runs = [report for report in reports if report.name != MANIFEST]
    scores = sum(report.count("score", outcome) for report in runs for outcome in (AGREES, DIFFERS))
    differing = sum(bool(report.differences) for report in reports)
    ends = [f"{differing} differing"] if differing else []
    if unchecked := sum(report.count("score", UNCHECKED) for report in runs):
        ends.append(f"{plural(unchecked, 'score')} could not be computed again")
    end = ", ".join(ends) or "nothing differs"
    console.print(
        Text(
            f"{plural(len(runs), 'run')}, {plural(scores, 'score')} computed again: {end}",
            "bold",
        )
    )
