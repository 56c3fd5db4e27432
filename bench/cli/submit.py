"""``bench submit``: runs in one file for somebody else's board; with ``--check``, what a board makes of such a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import BenchError
from bench.cli.options import comma_list, data_option, json_option, json_text, runs_option, warn

if TYPE_CHECKING:
    from bench.verify.submit import Packed, SubmittedRun


@click.command()
@click.argument("references", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--to",
    "to",
    type=click.Path(path_type=Path),
    help="A new file.  [default: RUN.zip, or submission.zip]",
)
@click.option("--by", help="Who sends it: a name, as the board will show it.")
@click.option("--suite", help="Scores of these suites only (a,b).")
@click.option(
    "--checkpoints",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="auto: those of up to 32 MiB.",
)
@click.option(
    "--check", is_flag=True, help="RUN is a submission's file: say what a board would take of it."
)
@runs_option
@data_option
@json_option
@click.pass_context
def submit(
    context: click.Context,
    references: tuple[str, ...],
    to: Path | None,
    by: str | None,
    suite: str | None,
    checkpoints: str,
    check: bool,
    runs: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Pack finished runs, with predictions and small checkpoints, into one file that another person's board checks and adds.

    RUN is an id, the beginning of ids, or a path. Nothing is sent: the file is yours to hand over. Whoever gets it calls
    bench publish --submissions DIR.

    \b
    Example:  bench submit simcse-builtin --by "Ada Lovelace, Example University"
              bench submit --check simcse-builtin-s42-1a2b3c4d.zip
    """
    if check:
        context.exit(_check(references, data, as_json))
    from bench.runs import RunsFolder
    from bench.verify.submit import pack

    store = RunsFolder(runs)
    folders = list(
        dict.fromkeys(
            file.parent.absolute()
            for reference in references
            for file in store.record_files(reference)
        )
    )
    name = f"{folders[0].name}.zip" if len(folders) == 1 else "submission.zip"
    done = pack(folders, to or Path(name), by=by, suites=comma_list(suite), checkpoints=checkpoints)
    if as_json:
        packed = [
            {
                "run_id": run.run_id,
                "scores": run.scores,
                "left_out": list(run.left_out),
                "checkpoint": run.checkpoint,
            }
            for run in done.runs
        ]
        click.echo(json_text({"file": str(done.file), "bytes": done.bytes, "runs": packed}))
        return
    for line in words(done, by):
        click.echo(line, err=True)
    click.echo(done.file)


def words(done: Packed, by: str | None) -> list[str]:
    """What is in the file, and what its sender may want to know."""
    from bench.compare.formatting import list_names

    lines = []
    for run in done.runs:
        lines.append(
            f"{run.run_id}: {run.scores} score{'s' * (run.scores != 1)}, computed again and the same, {run.checkpoint}"
        )
        if run.left_out:
            lines.append(
                f"  left out, nobody can compute them again from what the run keeps: {list_names(run.left_out, 5)}"
            )
    if not by:
        lines.append("no sender is named: --by NAME says who, and the board shows it")
    lines.append(
        "a record holds your command with its paths, and what machine and libraries it ran on: look at it before you hand it over"
    )
    lines.append(
        f"{len(done.runs)} run{'s' * (len(done.runs) != 1)}, {done.bytes / 1e6:,.1f} MB; bench submit --check {done.file} reads it as a board does"
    )
    return lines


def _check(references: tuple[str, ...], data: Path | None, as_json: bool) -> int:
    """Prints what a board would take. 1 where anything is refused."""
    from bench.data.sets import DataFolder
    from bench.verify.submit import receive

    folder = DataFolder(data, offline=True) if data is not None else None
    refused = 0
    for reference in references:
        file = Path(reference)
        if not file.is_file():
            raise BenchError(f"there is no file {reference}", "bench submit --check FILE.zip")
        with tempfile.TemporaryDirectory(prefix="bench-submit-") as aside:
            for run in receive(file, Path(aside) / "runs", folder):
                refused += isinstance(run, str)
                if as_json:
                    click.echo(json_text(_object(file, run)))
                elif isinstance(run, str):
                    warn(f"refused: {run}")
                else:
                    click.echo(f"taken: {run.record.run_id}: {run.words()}")
    return 1 if refused else 0


def _object(file: Path, run: SubmittedRun | str) -> dict[str, Any]:
    if isinstance(run, str):
        return {"file": file.name, "taken": False, "why": run}
    return {
        "file": file.name,
        "taken": True,
        "run_id": run.record.run_id,
        "submitted_by": run.by,
        "why": run.words(),
    }
