"""Finished runs as folders that a pull request adds to ``leaderboards/submissions``; ``bench submit`` calls it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.base.errors import BenchError, DataDamaged
from bench.base.files import has_same_files, writing
from bench.compare.senders import SENDER_FILE
from bench.publish.asides import alone_in, folder_beside, move_to_place
from bench.publish.senders import check_name
from bench.publish.submissions import check_submission, read_for_submission
from bench.runs.record import RunRecord
from bench.runs.store import CURVE, RECORD, RunsFolder, predictions_name, read_record

TEMPORARY = ".submitting-"
"""How the name of a folder begins in which a submission is written."""
ANOTHER = "remove it, or choose another folder: --to DIR"


def submit_run(source: Path, to: Path, by: str, suites: Sequence[str] = ()) -> Path:
    """Write the run in the folder ``source`` as a folder in ``to``; returns it. ``by``: who ran it; ``suites``: scores of these alone.

    It is written aside, checked as a board checks it, and then renamed to its place. The very same submission, if it is there already, stays
    as it is. Raises BenchError, and leaves nothing, if it would be refused, or if something else is in its place.
    """
    name = check_name(by)
    folder = to / source.name
    try:
        if source.is_symlink():
            raise DataDamaged("it is a link, not a folder", "give the path that it leads to")
        record = read_record(source / RECORD)
        with (
            alone_in(to, TEMPORARY),
            folder_beside(to, TEMPORARY, "another folder: --to DIR") as aside,
        ):
            made = aside / source.name
            with writing(folder, "another folder: --to DIR"):
                _write_files(record, source, made, suites)
                (made / SENDER_FILE).write_text(f"{name}\n", encoding="utf-8")
            check_submission(made)
            if not has_same_files(made, folder):
                move_to_place(made, folder, ANOTHER)
    except BenchError as error:
        raise BenchError(
            f"{source.name} cannot be submitted: {error.message}", error.hint
        ) from None
    return folder


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
