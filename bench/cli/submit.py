"""``bench submit``: finished runs as folders that a pull request adds to ``leaderboards/submissions``."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from bench.base.errors import BenchError
from bench.base.files import writing
from bench.cli.options import comma_list, runs_option


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
    from bench.runs import RunsFolder

    store, suites = RunsFolder(runs), comma_list(suite)
    files = dict.fromkeys(file for name in references for file in store.record_files(name))
    for file in files:
        click.echo(_write(file.parent.absolute(), to, by, suites))


def _write(source: Path, to: Path, by: str, suites: tuple[str, ...]) -> Path:
    from msgspec.structs import replace

    from bench.publish.submissions import SENDER_FILE, check_submission
    from bench.runs.intact import CURVE
    from bench.runs.record import AVERAGE
    from bench.runs.store import RECORD, RunsFolder, read_record

    record, place = read_record(source / RECORD), to / source.name
    if place.exists():
        raise BenchError(f"{place} is there already", "remove it, or another folder: --to DIR")
    scores = tuple(score for score in record.scores if not suites or score.suite in suites)
    names = {
        RunsFolder(source.parent).predictions_path(source.name, score.task, score.text, score.suite)
        for score in scores
        if score.task != AVERAGE
    }
    try:
        with writing(place):
            place.mkdir(parents=True)
            (place / SENDER_FILE).write_text(f"{by}\n", encoding="utf-8")
            for path in [*sorted(names), source / CURVE]:
                if path.is_file():
                    copy = place / path.relative_to(source)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
            if len(scores) == len(record.scores):
                shutil.copyfile(source / RECORD, place / RECORD)
            else:
                RunsFolder(to).write(replace(record, scores=scores))
        check_submission(place)
    except BenchError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise BenchError(
            f"{source.name} cannot be submitted: {error.message}", error.hint
        ) from None
    return place
