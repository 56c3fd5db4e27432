"""Runs, one after the other, with a display that suits a terminal, a log or a notebook."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.base.errors import BenchError
from bench.library.notebook import NotebookReporter, in_notebook
from bench.library.results import Result
from bench.method import SilentReporter
from bench.records.store import RunsFolder
from bench.run.config import RunConfig
from bench.run.execute import execute
from bench.run.plan import PlannedRun
from bench.session.progress import RunReporter, reporting
from bench.session.runs import outcome


class QuietReporter(SilentReporter):
    """Shows nothing of several runs."""

    def plan(self, runs: Sequence[object]) -> None:
        """Begin a list of runs."""

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run."""

    def done(self, line: str) -> None:
        """End a run."""


@contextmanager
def show_progress(progress: bool) -> Iterator[RunReporter | None]:
    """A display of the progress; None if none is wanted."""
    if not progress:
        yield None
    elif in_notebook():
        reporter = NotebookReporter()
        try:
            yield reporter
        finally:
            reporter.finish()
    else:
        with reporting(False) as terminal:
            yield terminal


def execute_runs(
    planned: Sequence[PlannedRun], store: RunsFolder, config: RunConfig, progress: bool
) -> list[Result]:
    """Every run in turn; the error of the first that fails is raised, and the runs before it are kept."""
    for message in dict.fromkeys(error.message for run in planned for error in run.missing):
        warnings.warn(f"left out: {message}", stacklevel=3)
    results = []
    with show_progress(progress) as shown:
        if shown is not None:
            shown.plan(planned)
        for number, run in enumerate(planned, 1):
            if shown is not None:
                shown.start(run.run_id, number)
                for note in run.notes:
                    shown.note(note)
            try:
                record, worked = execute(run, store, config, shown or SilentReporter())
            except BenchError as error:
                if shown is not None:
                    shown.done(f"failed: {error.message}")
                raise
            if shown is not None:
                shown.done(outcome(record, worked))
            results.append(Result(record, store.folder(record.run_id)))
    return results
