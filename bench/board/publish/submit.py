"""Finished runs as folders that a pull request adds to ``leaderboards/submissions``; ``bench
submit`` calls it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.base.errors import BenchError, DataDamaged
from bench.base.files import writing
from bench.base.hashes import has_same_files
from bench.board.publish.asides import alone_in, folder_beside, move_to_place
from bench.board.publish.submissions import check_submission, read_for_submission
from bench.board.publish.suites import check_suite_names, keep_suites, leave_out_suites
from bench.compare.senders import SENDER_FILE, check_name
from bench.records.names import CURVE, PLAN, RECORD, predictions_name
from bench.records.record import RunRecord, read_record
from bench.records.store import RunsFolder

TEMPORARY = ".submitting-"
"""The beginning of the name of a folder that a submission is written in."""
ANOTHER = "remove it, or choose another folder: --to DIR"


def submit_runs(
    sources: Sequence[Path],
    to: Path,
    by: str,
    suites: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> list[Path]:
    """Write the runs in the folders ``sources`` as folders in ``to``; returns these.

    ``by``: who ran them; ``suites``: scores of only these; ``leave_out``: scores of all but these.

    They are written aside, checked as a board checks them, and then renamed to their places. An
    identical submission that is there already is not changed. Raises BenchError, and leaves
    nothing, if one would be refused, or if something else is in its place.
    """
    name = check_name(by)
    records = []
    for source in sources:
        with _naming(source):
            records.append(_read(source))
    check_suite_names("--suite", suites, records)
    check_suite_names("--leave-out", leave_out, records)
    with (
        alone_in(to, TEMPORARY),
        folder_beside(to, TEMPORARY, "another folder: --to DIR") as aside,
    ):
        made = [aside / source.name for source in sources]
        for source, record in zip(sources, records, strict=True):
            handed_over = leave_out_suites(record, leave_out)
            if suites:
                handed_over = keep_suites(handed_over, suites)
            with _naming(source):
                _write_run(source, handed_over, aside / source.name, name)
        for folder in made:
            with _naming(folder):
                _check(folder, to / folder.name)
        for folder in made:
            if not os.path.lexists(to / folder.name):
                move_to_place(folder, to / folder.name, ANOTHER)
    return [to / source.name for source in sources]


@contextlib.contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Name the run in a BenchError that is raised while the context is open."""
    try:
        yield
    except BenchError as error:
        raise BenchError(
            f"{folder.name} cannot be submitted: {error.message}", error.hint
        ) from None


def _check(made: Path, place: Path) -> None:
    """Raise BenchError if a board would refuse the submission, or if its place has something
    else."""
    if os.path.lexists(place) and not has_same_files(made, place):
        raise BenchError(f"{place} already exists", ANOTHER)
    check_submission(made)


def _read(source: Path) -> RunRecord:
    """Return the record of a run that is to be submitted. Raises BenchError."""
    if source.is_symlink():
        raise DataDamaged("it is a link, not a folder", "give the path that it leads to")
    return read_record(source / RECORD)


def _write_run(source: Path, record: RunRecord, made: Path, name: str) -> None:
    """Write what is handed over of a run: ``record``, which may lack suites of the record in
    ``source``. Raises BenchError."""
    there = read_record(source / RECORD)
    if there.scores and not record.scores:
        raise BenchError(
            "none of its scores is left",
            f"its suites: {', '.join(dict.fromkeys(score.suite for score in there.scores))}",
        )
    with writing(made, "another folder: --to DIR"):
        _write_files(source, record, made)
        if record != there:
            RunsFolder(made.parent).write(record)
        (made / SENDER_FILE).write_text(f"{name}\n", encoding="utf-8")


def _write_files(source: Path, record: RunRecord, made: Path) -> None:
    """Copy the record's file, plan and curve, and the predictions of the scores in ``record``."""
    names = {predictions_name(score.task, score.protocol, score.suite) for score in record.scores}
    for name in sorted({*names, CURVE, PLAN, RECORD}):
        if not os.path.lexists(source / name):
            continue
        content = read_for_submission(source, name)
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(content)
