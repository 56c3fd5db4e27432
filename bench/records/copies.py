"""One run id in several folders: copies of one run count once, two different runs are refused.

An id covers what determines a result, but not completely: a budget in minutes, another machine or
another library gives other numbers under the same id.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.base.errors import BenchError
from bench.records.packed import has_predictions
from bench.records.run import Run


def distinct_runs(runs: Iterable[Run]) -> list[Run]:
    """Return each run once, in the order of the first appearance of its id; of several copies the
    first that has predictions.

    Copies have equal records, which have the hashes of their predictions. Raises BenchError, with
    both folders, if two runs of one id are not copies of each other.
    """
    chosen: dict[str, Run] = {}
    for run in runs:
        first = chosen.setdefault(run.record.run_id, run)
        if first is run:
            continue
        if first.record != run.record:
            raise BenchError(
                f"two different runs have the id {run.record.run_id}: {first.folder} and "
                f"{run.folder}",
                "name one of them; bench runs FOLDER shows what each is",
            )
        if not has_predictions(first.folder) and has_predictions(run.folder):
            chosen[run.record.run_id] = run
    return list(chosen.values())
