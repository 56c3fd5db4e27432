"""Runs, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.base.devices import device_line
from bench.base.errors import OutOfMemory, RunFailed, RunLocked
from bench.cli import show_error
from bench.cli.options import (
    print_json,
)
from bench.compare.formatting import heads
from bench.method import Value
from bench.records import RunRecord, RunsFolder
from bench.run.config import (
    RunConfig,
)
from bench.run.execute import execute
from bench.run.plan import PlannedRun, with_value
from bench.session.progress import RunReporter

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def run_all(
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    as_json: bool,
    *,
    ranks: Ranks | None = None,
) -> tuple[list[RunRecord], int]:
    """Do every planned run in turn; a failure is reported, and the next run starts. Returns the records and the exit code.

    A run that another process works on is put last, so that several processes with the same runs do each of them once. What then is still
    worked on is waited for, ``config.wait_seconds``, and left to that process, with a line. Raises DeviceLost, and RunFailed if the ranks of
    a training no longer agree: this process can then do no other run.
    """
    records: list[RunRecord] = []
    worst, noted = 0, set[str]()
    turns = list(enumerate(planned, 1))
    reporter.plan(planned)
    for is_last_round in (False, True):
        wait = config.wait_seconds if is_last_round else 0.0
        locked = []
        for number, run in turns:
            reporter.start(run.run_id, number)
            reporter.note(device_line(config.device, run.precision))
            for note in dict.fromkeys(note for note in run.notes if note not in noted):
                reporter.note(note)
            noted.update(run.notes)
            try:
                record, worked = execute_with_less_memory(
                    run, store, replace(config, wait_seconds=wait), reporter, ranks
                )
            except (RunFailed, RunLocked) as error:
                if ranks and ranks.broken:
                    raise
                if isinstance(error, RunFailed):
                    worst = max(worst, error.exit_code)
                    show_error(error)
                elif is_last_round:
                    reporter.done(f"{error.message}, which does it")
                else:
                    locked.append((number, run))
            else:
                records.append(record)
                reporter.done(outcome(record, worked))
                if as_json:
                    print_json([record.to_json()])
        turns = locked
    return records, worst


def execute_with_less_memory(
    run: PlannedRun,
    store: RunsFolder,
    config: RunConfig,
    reporter: RunReporter,
    ranks: Ranks | None,
) -> tuple[RunRecord, bool]:
    """Execute a run. With ``--chunk auto``, a run whose batch does not fit and cannot be split becomes one with a smaller batch."""
    try:
        return execute(run, store, config, reporter, ranks)
    except OutOfMemory:
        size, can_be_cut = run.recipe["batch_size"], run.plugin.cls.is_split()
        if config.chunk != "auto" or can_be_cut or size == 1 or ranks is not None:
            raise
    smaller = with_value(
        run,
        "batch_size",
        Value(size // 2, "--chunk auto", f"{size} did not fit into memory"),
    )
    reporter.note(
        f"batch_size {size} does not fit; trying {size // 2}, a different recipe (fewer negatives)"
    )
    reporter.start(smaller.run_id)
    return execute_with_less_memory(smaller, store, config, reporter, ranks)


def outcome(record: RunRecord, worked: bool) -> str:
    """ "done: sts 76.25; STS-B dev 82.50 at step 875" """
    trained = record.training
    text = f"{'done' if worked else 'was done already, nothing repeated'}: {heads(record)}"
    return (
        text
        if trained is None or trained.dev_score is None
        else f"{text}; {trained.dev_task} {trained.dev_score:.2f} at step {trained.best_step}"
    )
