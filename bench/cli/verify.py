"""``bench verify``: is what a record says what its predictions give?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import data_option, json_option, plugin_option, runs_option
from bench.errors import BenchError

if TYPE_CHECKING:
    from rich.console import Console

    from bench.verify import RunReport
    from bench.verify.run import More

PUBLISHED = Path("leaderboards")
SHOWN = 20  # differences of one run that are printed one by one
WORDS = {
    "predictions": ("prediction file", "prediction files"), "gold": ("gold standard", "gold standards"),
    "data": ("data set", "data sets"), "files": ("file", "files"), "encoding": ("task encoded again", "tasks encoded again"),
}  # fmt: skip


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
@click.option("--device", default="auto", show_default=True, help="Where --retrain-free encodes: auto, cpu, cuda, mps.")
@click.option("--offline", is_flag=True, help="Fetch nothing for --retrain-free.")
@json_option
@click.pass_context
def verify(
    context: click.Context, places: tuple[str, ...], runs: Path | None, data: Path | None, again: bool, plugins: tuple[Path, ...],
    device: str, offline: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compute every score again from its stored predictions, and every hash from the files. Exit code 1 where something differs.

    RUN is an id, the beginning of ids, or a path; FOLDER holds runs, or is a published version (leaderboards/v1, or v1). Without
    any, all runs in the runs folder.

    \b
    Example:  bench verify simcse-builtin-s42
    """
    from rich.console import Console

    from bench.datasets import DataFolder

    folder = DataFolder(data, offline=True) if data is not None else None
    reports: list[RunReport] = []
    console = Console(highlight=False, markup=False, emoji=False)
    for report in _reports(places, runs, folder, _encoder(folder, plugins, device, offline) if again else None):
        reports.append(report)
        if as_json:
            click.echo(json.dumps(as_object(report)))
        else:
            _print(report, console)
    if not as_json:
        _print_end(reports, console)
    context.exit(1 if any(report.differences for report in reports) else 0)


def _reports(places: tuple[str, ...], runs: Path | None, data: Any, more: More | None) -> Iterator[RunReport]:
    from bench.verify import check_manifest, verify_run

    seen: set[Path] = set()
    for base, folders in _places(places, runs):
        if base is not None and (manifest := check_manifest(base)) is not None:
            yield manifest
        for folder in folders:
            if folder.absolute() not in seen:
                seen.add(folder.absolute())
                yield verify_run(folder, data, more)


def _places(places: tuple[str, ...], runs: Path | None) -> Iterator[tuple[Path | None, list[Path]]]:
    """(folder of a published version or of runs, the runs in it) for each argument. Raises BenchError where there are none."""
    from bench.errors import UnknownName
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
        found = runs_below(path)
        if not found:
            raise BenchError(f"no run in {path}", "bench run ..., or another folder: --runs DIR")
        yield path, found


def _encoder(data: Any, plugins: tuple[Path, ...], device: str, offline: bool) -> More:
    from bench import devices
    from bench.plugins import discover
    from bench.verify.again import Encoder

    if data is None:
        from bench.datasets import DataFolder

        data = DataFolder(None, offline=True)  # the built-in suite needs none
    registry = discover(plugins)
    for warning in registry.warnings:
        click.echo(warning, err=True)
    return Encoder(registry, data, devices.choose_device(device), offline).compare


def as_object(report: RunReport) -> dict[str, Any]:
    """A report as JSON: what was counted, and every finding that does not agree."""
    told = [one for one in report.findings if one.why]
    return {
        "run_id": report.name, "status": report.status, "agree": sum(not one.why for one in report.findings),
        "differ": len(report.differences), "unchecked": len(report.unchecked),
        "findings": [{"kind": one.kind, "what": one.what, "outcome": one.outcome, "why": one.why} for one in told],
    }  # fmt: skip


def _print(report: RunReport, console: Console) -> None:
    from rich.text import Text

    from bench.tables.words import visible

    word = "differs" if report.differences else "agrees" if report.count_agreeing() else "not checked"
    status = "" if report.status in ("finished", "published") else f", {report.status}"
    words = agreement(report)
    console.print(Text.assemble(
        (visible(report.name, console.encoding), "bold"), f"{status} ", (word, "bold red" if report.differences else ""),
        (f"{'; agree' if report.differences else ''}: {words}" if words else "", "dim"),
    ))  # fmt: skip
    for one in report.differences[:SHOWN]:
        about = one.kind if one.what == one.kind else f"{one.kind} of {visible(one.what, console.encoding)}"
        console.print(Text(f"  {about}: {visible(one.why, console.encoding)}"))
    if len(report.differences) > SHOWN:
        console.print(Text(f"  and {len(report.differences) - SHOWN} more; --json lists them"))


def agreement(report: RunReport) -> str:
    """ "7 scores, 1 average, 7 data sets, fingerprint": what agrees, counted."""
    from bench.verify.findings import KINDS

    counts = [(kind, report.count(kind)) for kind in KINDS]
    return ", ".join(_counted(kind, n) for kind, n in counts if n)


def _counted(kind: str, n: int) -> str:
    if kind in ("checkpoint", "fingerprint"):
        return kind
    one, more = WORDS.get(kind, (kind, f"{kind}s"))
    return f"{n:,} {one if n == 1 else more}"


def _print_end(reports: list[RunReport], console: Console) -> None:
    from rich.text import Text

    from bench.tables.words import visible
    from bench.verify import AGREES, DIFFERS
    from bench.verify.folders import MANIFEST

    left = Counter((one.kind, one.why) for report in reports for one in report.unchecked)
    if left:
        console.print(Text("not checked", "bold"))
        for (kind, why), count in sorted(left.items()):
            console.print(Text(f"  {kind} ({count}): {visible(why, console.encoding)}"))
    runs = [report for report in reports if report.name != MANIFEST]
    scores = sum(report.count("score", outcome) for report in runs for outcome in (AGREES, DIFFERS))
    differing = sum(bool(report.differences) for report in reports)
    end = f"{differing} of them {'differ' if differing != 1 else 'differs'}" if differing else "nothing differs"
    console.print(
        Text(f"{len(runs)} run{'s' * (len(runs) != 1)}, {scores:,} score{'s' * (scores != 1)} computed again: {end}", "bold")
    )
