"""One run id in several folders: copies of one run count once, two different runs are refused.

An id covers what determines a result, but not completely: a budget in minutes, another machine or
another library gives other numbers under the same id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from bench.base.errors import BenchError
from bench.base.reading import PREDICTIONS_BYTES, read_plain_file
from bench.records.packed import has_predictions
from bench.records.record import AVERAGE
from bench.records.run import Run


def distinct_runs(runs: Iterable[Run]) -> list[Run]:
    """Return each run once, in the order of the first appearance of its id; of several copies the
    first that has predictions.

    Copies have equal records, and equal predictions as far as both have them. Raises BenchError,
    with both folders, if two runs of one id are not copies of each other.
    """
    chosen: dict[str, Run] = {}
    for run in runs:
        run_id = run.record.run_id
        if run_id not in chosen:
            chosen[run_id] = run
            continue
        first = chosen[run_id]
        if _is_same_folder(first, run) and first.record == run.record:
            continue
        if difference := _difference(first, run):
            raise BenchError(
                f"two different runs have the id {run_id}, {difference}: {first.folder} and "
                f"{run.folder}",
                "name one of them; bench runs FOLDER shows what each is",
            )
        if not has_predictions(first.folder) and has_predictions(run.folder):
            chosen[run_id] = run
    return list(chosen.values())


def _is_same_folder(first: Run, second: Run) -> bool:
    try:
        return os.path.samefile(first.folder, second.folder)
    except OSError:
        return False


def _difference(first: Run, second: Run) -> str:
    """Describe what differs between two runs of one id; "" for two copies of one run."""
    if first.record.scores != second.record.scores:
        return "whose scores differ"
    if first.record != second.record:
        return "whose records differ"
    for score in first.record.scores:
        if score.task == AVERAGE:
            continue
        try:
            content = read_plain_file(first.predictions_file(score.key), PREDICTIONS_BYTES)
            other = read_plain_file(second.predictions_file(score.key), PREDICTIONS_BYTES)
        except OSError:  # one may lack it; an unreadable file is reported when it is needed
            continue
        if content != other:
            return f"whose predictions of {score.task} differ"
    return ""
