"""``bench submit``: finished runs as folders that a pull request adds to ``leaderboards/submissions``."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.base.files import writing
from bench.cli.options import comma_list, runs_option
from bench.publish.submissions import SENDER_FILE, check_submission
from bench.runs.store import CURVE, RECORD, RunsFolder, predictions_name, read_record


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
@runs_option
def submit(
    references: tuple[str, ...], by: str, to: Path, suite: str | None, runs: Path | None
) -> None:
    """Write finished runs, with their predictions, to folders for a pull request; each is checked as the board checks it.

    RUN is an id, the beginning of ids, or a path. Nothing is sent. A record holds your command with its paths, and the machine and
    libraries it ran on: look at it before you hand it over.

    \b
    Example:  bench submit simcse-builtin --by "Ada Lovelace, Example University"
    """
    store, suites = RunsFolder(runs), comma_list(suite)
    files = dict.fromkeys(file for name in references for file in store.record_files(name))
    for file in files:
        click.echo(_write(file.parent.absolute(), to, by, suites))


def _write(source: Path, to: Path, by: str, suites: tuple[str, ...]) -> Path:
    """The run in the folder ``source`` as a folder in ``to``. Raises BenchError where it would be refused; then none is left."""
    record, folder = read_record(source / RECORD), to / source.name
    if folder.exists():
        raise BenchError(f"{folder} is there already", "remove it, or another folder: --to DIR")
    scores = tuple(score for score in record.scores if not suites or score.suite in suites)
    names = {predictions_name(score.task, score.text, score.suite) for score in scores}
    try:
        with writing(folder):
            for name in sorted({*names, CURVE, RECORD}):
                if (source / name).is_file():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / name, folder / name)
            (folder / SENDER_FILE).write_text(f"{by}\n", encoding="utf-8")
        if len(scores) < len(record.scores):
            RunsFolder(to).write(replace(record, scores=scores))
        check_submission(folder)
    except BenchError as error:
        shutil.rmtree(folder, ignore_errors=True)
        why = f"{source.name} cannot be submitted: {error.message}"
        raise BenchError(why, error.hint) from None
    return folder
