"""Runs of a call, with a display that suits a terminal or a log."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from bench.base.errors import BenchError
from bench.library.results import Result
from bench.run.needs import missing_sets
from bench.run.planned import PlannedRun
from bench.run.progress import QuietReporter, RunReporter, terminal_reporter
from bench.run.session import Session


def choose_reporter(progress: bool) -> RunReporter | QuietReporter:
    """Return the display of the progress; one that shows nothing if none is wanted."""
    if not progress:
        return QuietReporter()
    return terminal_reporter(plain=False)


def collect_results(session: Session, runs: Sequence[PlannedRun]) -> list[Result]:
    """Execute the runs in turn. Raises the error of the first that fails; earlier runs are kept.

    Data sets that are missing are warnings.
    """
    for error in missing_sets(runs):
        warnings.warn(f"left out: {error.message}", stacklevel=4)
    results = {}
    with session.reporter.display():
        try:
            for end in session.run_all(runs):
                if end.record is None:
                    raise end.error or BenchError(f"{end.run.run_id} has no record")
                folder = session.store.folder(end.record.run_id)
                results[end.run.run_id] = Result(end.record, folder)
        except BenchError as error:
            session.reporter.done(f"failed: {error.message}")
            raise
    return [results[run.run_id] for run in runs]
