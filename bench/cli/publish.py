"""``bench publish``: a new version of the leaderboards, or a look at what it would be, or whether those that are there were altered."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.options import (
    data_option,
    json_option,
    json_text,
    no_collection,
    runs_option,
    suite_file_option,
    warn,
)
from bench.cli.verify import as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.publish.build import Outcome

SHOWN = 20  # lines about runs that are left out
HELP = {
    "out": "Folder of the versions.",
    "check": "Publish nothing: compare what is published with its manifests. Exit code 1 where something was altered.",
    "erratum": "Publish no version: say beside VERSION what turned out to be wrong with it. Its own files stay as they are.",
    "sign": "Also sign the newest version with this key of ssh-keygen: OUT/vN.signature.json and .sig.",
    "signers": "With --check: the newest version has to be signed by one of these (ssh-keygen's allowed signers).",
    "preview": "Write OUT/preview, which the next preview replaces, and no version.",
    "format": "Pages (html), Markdown (md), or both, which is the default. Data and records are always there.",
    "submissions": "Also the runs in the files of bench submit in this folder, after every score was computed again.",
    "keep": "Also the runs of the last version that are not in the runs folder.",
    "baseline": "The row that the others are compared with, fixed before the scores.  [default: as the last version, else simcse]",
    "title": "Heading of the pages.  [default: as the last version]",
    "note": 'What a reader has to know, such as what these runs are not. "" for none.  [default: as the last version]',
    "statistics": "Intervals and verdicts: auto reads no predictions of more than 1,000 runs.",
    "reduced": "Keep of new runs' predictions only what their scores follow from, to the last digit: about half of the bytes. What else a "
    "record says of them (Pearson correlations, say) cannot be computed again from the version.",
    "anyway": "A version although no run is new: the same runs with newer pages.",
}


@click.command()
@runs_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="leaderboards",
    show_default=True,
    help=HELP["out"],
)
@click.option("--check", is_flag=True, help=HELP["check"])
@click.option("--erratum", nargs=2, metavar="VERSION TEXT", help=HELP["erratum"])
@click.option("--sign", "key", type=click.Path(path_type=Path), metavar="KEY", help=HELP["sign"])
@click.option("--signers", type=click.Path(path_type=Path), metavar="FILE", help=HELP["signers"])
@click.option("--preview", is_flag=True, help=HELP["preview"])
@click.option(
    "--format", "formats", type=click.Choice(["html", "md"]), multiple=True, help=HELP["format"]
)
@click.option("--submissions", type=click.Path(path_type=Path), help=HELP["submissions"])
@click.option("--keep", is_flag=True, help=HELP["keep"])
@click.option("--baseline", help=HELP["baseline"])
@click.option("--title", help=HELP["title"])
@click.option("--note", help=HELP["note"])
@click.option(
    "--statistics",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help=HELP["statistics"],
)
@click.option("--reduced", is_flag=True, help=HELP["reduced"])
@click.option("--anyway", is_flag=True, help=HELP["anyway"])
@data_option
@suite_file_option
@json_option
@click.pass_context
def publish(
    context: click.Context,
    runs: Path | None,
    out: Path,
    check: bool,
    erratum: tuple[str, str] | None,
    key: Path | None,
    signers: Path | None,
    formats: tuple[str, ...],
    as_json: bool,
    data: Path | None,
    **asked: Any,
) -> None:
    """A new version of the leaderboards in OUT, from the runs in a folder and from what papers printed: pages, Markdown, data.

    A published version never changes. Where nothing is new since the last one, none is made.

    \b
    Example:  bench publish --note "a small backbone, not the papers' setting"
              bench publish --preview
              bench publish --check
              bench publish --sign ~/.ssh/id_ed25519
              bench publish --erratum v1 "the intervals were too short: see v2"
    """
    if key is not None and (check or erratum is not None or asked["preview"]):
        raise BenchError(
            "--sign goes with none of --check, --preview and --erratum", "bench publish --sign KEY"
        )
    if signers is not None and not check:
        raise BenchError("--signers goes with --check", "bench publish --check --signers FILE")
    if erratum is not None:
        if check or asked["preview"]:
            raise BenchError(
                "--erratum goes neither with --check nor with --preview", "one after the other"
            )
        _erratum(out, *erratum, as_json)
        return
    if check:
        context.exit(_check(out, as_json, signers))
    from bench.data.sets import DataFolder
    from bench.publish.build import FORMATS, PublishOptions, sign
    from bench.publish.build import publish as build

    chosen = tuple(name for name in FORMATS if name in formats) or FORMATS
    folder = DataFolder(data, offline=True) if data is not None else None
    if key is not None:
        from bench.publish.signature import fingerprint

        fingerprint(key)  # before anything is made
    with no_collection(), _progress() as report:
        outcome = build(
            PublishOptions(runs=runs, out=out, data=folder, formats=chosen, **asked), report
        )
    for line in (*outcome.refused, *(f"left out: {line}" for line in outcome.board.left_out))[
        :SHOWN
    ]:
        warn(line)
    if (more := len(outcome.refused) + len(outcome.board.left_out) - SHOWN) > 0:
        warn(f"and {more} more")
    if outcome.folder is not None and (told := outcome.told_of_here):
        warn(
            f"the command of {_count(len(told), 'run')} names a folder of this machine; it is published as it was recorded: {told[0]}"
        )
    signature = None if key is None else sign(out, key)
    if as_json:
        click.echo(json_text(_as_dict(outcome)))
        return
    _show(outcome)
    if signature is not None:
        click.echo(f"{signature.version}: {signature.words()}")


def _show(outcome: Outcome) -> None:
    from bench.compare.formatting import visible

    if outcome.folder is None:
        click.echo(f"nothing is new since {outcome.name}; no version is made (--anyway makes one)")
        return
    board = outcome.board
    page = next(
        (path for name in ("index.html", "README.md") if (path := outcome.folder / name).is_file()),
        outcome.folder,
    )
    what = f"{_count(len(board.runs), 'run')} of {_count(len(board.methods), 'method')}, {_count(len(board.tables), 'table')}"
    click.echo(f"{outcome.name}: {what}: {page}")
    click.echo(visible(board.answer, limit=None))
    if board.changes is not None:
        click.echo(
            f"since {board.changes.before}:"
            if board.changes.lines
            else f"nothing changed since {board.changes.before}"
        )
        for line in board.changes.lines:
            click.echo(f"  {visible(line, limit=None)}")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _as_dict(outcome: Outcome) -> dict[str, Any]:
    board = outcome.board
    return {
        "version": outcome.name,
        "new": outcome.folder is not None,
        "folder": None if outcome.folder is None else str(outcome.folder),
        "runs": len(board.runs),
        "methods": list(board.methods),
        "answer": board.answer,
        "changes": None if board.changes is None else list(board.changes.lines),
        "left_out": list(board.left_out),
        "refused": list(outcome.refused),
    }


def _erratum(out: Path, version: str, text: str, as_json: bool) -> None:
    from bench.publish.build import add_erratum

    made = add_erratum(out, version, text)
    if as_json:
        click.echo(json_text({"version": made.version, "date": made.date, "text": made.text}))
    else:
        click.echo(made.words())
        click.echo(
            f"shown on {out / 'index.html'}, in the feed, and above the changes of the version that follows {version}"
        )


def _check(out: Path, as_json: bool, signers: Path | None) -> int:
    from bench.compare.formatting import visible
    from bench.publish.check import check

    reports = check(out, signers)
    for report in reports:
        if as_json:
            click.echo(json_text(as_object(report)))
            continue
        differ = f"; {len(report.differences)} differ" if report.differences else ""
        click.echo(
            f"{visible(report.name)}: {_count(report.count_agreeing(), 'file')} as published{differ}"
        )
        for difference in report.differences[:SHOWN]:
            click.echo(f"  {visible(difference.what)}: {visible(difference.why)}")
        for finding in report.unchecked:
            click.echo(f"  {visible(finding.what)}: {visible(finding.why)}")
        if len(report.differences) > SHOWN:
            click.echo(f"  and {len(report.differences) - SHOWN} more; --json lists them")
    return 1 if any(report.differences for report in reports) else 0


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """On a terminal one line that is written over; elsewhere a plain line where something else begins."""
    live, last = sys.stderr.isatty(), ""

    def report(what: str, done: int, of: int) -> None:
        nonlocal last
        shown = "".join(c for c in what[:60] if c.isprintable())
        if live:
            click.echo(
                f"\r\x1b[K{shown}" + (f" ({done + 1} of {of})" if of > 1 else "") + " ...",
                nl=False,
                err=True,
            )
        elif (begins := shown.split()[0]) != last:
            last = begins
            click.echo(f"{shown if begins != 'comparing' else 'comparing'} ...", err=True)

    try:
        yield report
    finally:
        if live:
            click.echo("\r\x1b[K", nl=False, err=True)
