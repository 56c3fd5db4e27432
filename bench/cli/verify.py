"""``bench verify``: is what a record says what its predictions give?"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError, UnknownName
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
@click.option("--offline", is_flag=True, help="Fetch nothing for --retrain-free.")
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

    RUN is an id, the beginning of ids, or a path; FOLDER holds runs, or is a published version (leaderboards/v1, or v1); a file of
    bench submit will do as well. Without any, all runs in the runs folder. What --retrain-free finds is kept for bench publish: in the
    run's folder, and of a submission in the folder .verified of your runs folder.

    \b
    Example:  bench verify simcse-builtin-s42
    """
    from bench.data.sets import DataFolder
    from bench.verify import UNCHECKED

    folder = DataFolder(data, offline=True) if data is not None else None
    reports: list[RunReport] = []
    console = plain_console()
    for report in _reports(
        places, runs, folder, Again(folder, plugins, device, offline) if again else None
    ):
        reports.append(report)
        if as_json:
            click.echo(json_text(as_object(report)))
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
    places: tuple[str, ...], runs: Path | None, data: Any, again: Again | None
) -> Iterator[RunReport]:
    from bench.verify import check_manifest, verify_run
    from bench.verify.attestation import NAME

    seen: set[Path] = set()
    files = [Path(place) for place in places if place.endswith(".zip") and Path(place).is_file()]
    for file in files:
        yield from _submission(file, runs, data, again)
    rest = tuple(place for place in places if Path(place) not in files)
    for base, folders in _places(rest, runs) if rest or not files else ():
        if base is not None and (manifest := check_manifest(base)) is not None:
            yield manifest
        for folder in folders:
            if folder.absolute() not in seen:
                seen.add(folder.absolute())
                report = verify_run(folder, data, again.compare if again else None)
                if again is not None and (base is None or not (base / MANIFEST).is_file()):
                    again.keep(report, folder, folder / NAME)
                yield report


def _submission(
    file: Path, runs: Path | None, data: Any, again: Again | None
) -> Iterator[RunReport]:
    """The runs in a file of bench submit. Raises BenchError where it is none that a board would unpack."""
    from bench.runs import RunsFolder
    from bench.verify import DIFFERS, Finding, RunReport, verify_run
    from bench.verify.attestation import sent
    from bench.verify.submit import unpack
    from bench.verify.submit.check import examine_run

    with tempfile.TemporaryDirectory(prefix="bench-verify-") as aside:
        unpacked = unpack(file, Path(aside) / "runs")
        for folder in (unpacked.folder / name for name in unpacked.runs):
            try:
                report = examine_run(folder, data)  # before anything of it is encoded
                if again is not None:
                    report = verify_run(folder, data, again.compare_sent)
                    again.keep(report, folder, sent(RunsFolder(runs).path, folder))
            except BenchError as error:
                report = RunReport(
                    folder.name, [Finding("record", "record", DIFFERS, error.message)], "refused"
                )
            yield report


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


class Again:
    """--retrain-free: encodes from checkpoints, and keeps what it finds."""

    def __init__(self, data: Any, plugins: tuple[Path, ...], device: str, offline: bool) -> None:
        from bench.base import devices
        from bench.data.sets import DataFolder
        from bench.run.plugins import discover
        from bench.verify.reencode import Encoder

        registry = discover(plugins)
        for warning in registry.warnings:
            warn(f"warning: {warning}")
        self.device = devices.choose_device(device)
        sets = (
            data if data is not None else DataFolder(None, offline=True)
        )  # the built-in suite needs none
        encoder = Encoder(registry, sets, self.device, offline)
        self.compare: More = encoder.compare
        self.compare_sent: More = dataclasses.replace(encoder, sent=True).compare

    def keep(self, report: RunReport, folder: Path, path: Path) -> None:
        """Of a run that agrees, at ``path``; what was kept of one that no longer does is removed."""
        from bench.verify import attestation

        entry = attestation.entry(
            report, folder, date=datetime.now(UTC).date().isoformat(), device=self.device
        )
        if entry is not None:
            attestation.write(path, {folder.name: entry})
        elif report.differences:
            path.unlink(missing_ok=True)


def as_object(report: RunReport) -> dict[str, Any]:
    """A report as JSON: what was counted, and every finding that does not agree."""
    return {
        "run_id": report.name,
        "status": report.status,
        "agree": sum(not finding.why for finding in report.findings),
        "differ": len(report.differences),
        "unchecked": len(report.unchecked),
        "findings": [
            {"kind": one.kind, "what": one.what, "outcome": one.outcome, "why": one.why}
            for one in report.findings
            if one.why
        ],
    }


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
    ends = [f"{differing} of them differ{'s' * (differing == 1)}"] if differing else []
    if unchecked := sum(report.count("score", UNCHECKED) for report in runs):
        ends.append(f"{unchecked:,} score{'s' * (unchecked != 1)} could not be computed again")
    end = ", ".join(ends) or "nothing differs"
    console.print(
        Text(
            f"{len(runs)} run{'s' * (len(runs) != 1)}, {scores:,} score{'s' * (scores != 1)} computed again: {end}",
            "bold",
        )
    )
