"""Finished runs as folders that a pull request adds to ``leaderboards/submissions``; ``bench submit`` calls it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.base.errors import BenchError, DataDamaged
from bench.base.files import writing
from bench.base.hashes import has_same_files
from bench.compare.senders import SENDER_FILE
from bench.compare.together import write_together
from bench.publish.asides import alone_in, folder_beside, move_to_place
from bench.publish.senders import check_name
from bench.publish.submissions import check_submission, read_for_submission
from bench.records.names import CURVE, RECORD, predictions_name
from bench.records.record import RunRecord, read_record
from bench.records.store import RunsFolder

TEMPORARY = ".submitting-"
"""How the name of a folder begins in which a submission is written."""
ANOTHER = "remove it, or choose another folder: --to DIR"


def submit_runs(
    sources: Sequence[Path], to: Path, by: str, suites: Sequence[str] = ()
) -> list[Path]:
    """Write the runs in the folders ``sources`` as folders in ``to``; returns these. ``by``: who ran them; ``suites``: scores of these alone.

    They are written aside, checked as a board checks them, and then renamed to their places. The very same submission, if it is there
    already, stays as it is. Raises BenchError, and leaves nothing, if one would be refused, or if something else is in its place.
    """
    name = check_name(by)
    with (
        alone_in(to, TEMPORARY),
        folder_beside(to, TEMPORARY, "another folder: --to DIR") as aside,
    ):
        made = [aside / source.name for source in sources]
        for source in sources:
            with _naming(source):
                _write_run(source, aside / source.name, name, suites)
        with writing(to, "another folder: --to DIR"):
            write_together(made)
        for folder in made:
            with _naming(folder):
                _check(folder, to / folder.name)
        for folder in made:
            if not os.path.lexists(to / folder.name):
                move_to_place(folder, to / folder.name, ANOTHER)
    return [to / source.name for source in sources]


@contextlib.contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """While open, a BenchError says which run cannot be submitted."""
    try:
        yield
    except BenchError as error:
        raise BenchError(
            f"{folder.name} cannot be submitted: {error.message}", error.hint
        ) from None


def _check(made: Path, place: Path) -> None:
    """Raises BenchError if a board would refuse the submission, or if its place has something else."""
    if os.path.lexists(place) and not has_same_files(made, place):
        raise BenchError(f"{place} already exists", ANOTHER)
    check_submission(made)


def _write_run(source: Path, made: Path, name: str, suites: Sequence[str]) -> None:
    """Write what is handed over of a run. Raises BenchError."""
    if source.is_symlink():
        raise DataDamaged("it is a link, not a folder", "give the path that it leads to")
    record = read_record(source / RECORD)
    with writing(made, "another folder: --to DIR"):
        _write_files(record, source, made, suites)
        (made / SENDER_FILE).write_text(f"{name}\n", encoding="utf-8")


def _write_files(record: RunRecord, source: Path, made: Path, suites: Sequence[str]) -> None:
    """Copy the record, the curve and the predictions of the scores that are handed over."""
    scores = tuple(score for score in record.scores if not suites or score.suite in suites)
    names = {predictions_name(score.task, score.text, score.suite) for score in scores}
    for name in sorted({*names, CURVE, RECORD}):
        if not os.path.lexists(source / name):
            continue
        content = read_for_submission(source, name)
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
    if len(scores) < len(record.scores):
        RunsFolder(made.parent).write(replace(record, scores=scores))
