"""The runs of a command: settled, planned with all that they need, and executed in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_config

from bench.backbones import Reference, fetch_backbone
from bench.base.devices import device_line
from bench.base.errors import BenchError, RunFailed, RunLocked
from bench.base.terminal import warn
from bench.compare.formatting import heads
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder, Later, fetched_folder
from bench.data.sets.fetch import Fetcher
from bench.method.config import RunConfig
from bench.method.plugins import Registry, discover
from bench.records import RunRecord, RunsFolder
from bench.run.execute import execute
from bench.run.needs import PreparedRuns, announce_fetches, note_backbone
from bench.run.plan import plan_configs
from bench.run.plan_toml import Plan
from bench.run.planned import PlannedRun
from bench.run.progress import QuietReporter, RunReporter
from bench.run.settle import check_batches, settle_config
from bench.run.target import Target, parse_target

if TYPE_CHECKING:
    from bench.method.ranks import Ranks

FOR_EVER = 1e9
"""Seconds to wait for another process."""

MakeRuns = Callable[[DataFolder, Callable[[Reference], Reference]], Sequence[PlannedRun]]
"""Plans runs, given the data folder and a function that gets a backbone onto this machine."""


@dataclass(frozen=True)
class RunEnd:
    """How a run of a session ended: with a record, or with an error."""

    run: PlannedRun

    record: RunRecord | None = None

    error: BenchError | None = None
    """RunFailed; or RunLocked, if another process still works on the run."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """The runs of one command or call, from its plan to their records.

    session = Session.begin(Plan((config,)), terminal_reporter(plain=False))
    prepared = session.plan_runs()
    with session.reporter.display():
        records = [end.record for end in session.run_all(prepared.runs)]
    """

    plan: Plan
    """The plan, with a device, a precision and a number of processes."""

    store: RunsFolder
    """Where the records are written."""

    reporter: RunReporter | QuietReporter = field(default_factory=QuietReporter)
    """Shows the progress."""

    ranks: Ranks | None = None
    """The processes that train each run together; None if this one trains alone."""

    only_look: bool = False
    """Plan the runs without fetching or writing anything."""

    @classmethod
    def begin(
        cls,
        plan: Plan,
        reporter: RunReporter | QuietReporter | None = None,
        *,
        ranks: Ranks | None = None,
        only_look: bool = False,
    ) -> Session:
        """Settle device, precision and processes of a plan. The arguments are the fields.

        Raises BenchError for a data folder that does not exist, and for options that this machine
        cannot fulfil.
        """
        if offline_now():
            plan = plan.with_values(offline=True)
        with plan.terms():
            DataFolder(plan.runs[0].data).check_root()
            configs = [settle_config(config, ranks=ranks) for config in plan.runs]
        return cls(
            plan=replace(plan, runs=tuple(configs)),
            store=RunsFolder(configs[0].runs),
            reporter=reporter or QuietReporter(),
            ranks=ranks,
            only_look=only_look,
        )

    @property
    def config(self) -> RunConfig:
        """The options of the first run; all runs share the options of the whole command."""
        return self.plan.runs[0]

    @property
    def target(self) -> Target:
        """The place where the runs are done."""
        return parse_target(self.config.on)

    def prepare(self, make: MakeRuns) -> PreparedRuns:
        """Plan the runs of ``make``, and fetch what they need.

        ``make`` first runs without fetching anything, so that the user sees the names, sizes and
        licences of all that is missing before the first byte arrives, and a machine without a
        network fails at once. Raises BenchError if something cannot be fetched.
        """
        config = self.config
        root = Path(config.data) if config.data else None
        get_backbone = partial(
            fetch_backbone, offline=config.offline, allow_pickle=config.allow_pickle, say=warn
        )
        later = Later(beside_root=self.only_look)
        if config.offline and not self.only_look:
            runs = make(DataFolder(root, offline=True), get_backbone)
        else:
            note = partial(note_backbone, later, config=config, ask_hub=self.only_look)
            runs = make(DataFolder(root, fetcher=later), note)
        if self.only_look:
            return PreparedRuns(tuple(runs), later.pending)
        if later.pending:
            announce_fetches(later.pending, fetched_folder())
            fetcher = Fetcher(fetched_folder(), warn)
            runs = make(DataFolder(root, fetcher=fetcher), get_backbone)
        return PreparedRuns(tuple(runs))

    def plan_runs(self) -> PreparedRuns:
        """Plan the runs of the plan, see :meth:`prepare`; the ranks do so in turn.

        Raises BenchError also if a method cannot split its batches.
        """
        with self.plan.terms():
            if self.ranks is not None:
                return self.ranks.in_turn(self._plan_runs)
            return self._plan_runs()

    def _plan_runs(self) -> PreparedRuns:
        methods = known_methods(self.config.plugins)
        prepared = self.prepare(partial(plan_configs, self.plan.runs, methods))
        check_batches(prepared.runs, self.config)
        return prepared

    def run_all(self, runs: Sequence[PlannedRun]) -> Iterator[RunEnd]:
        """Execute the runs in turn, and yield how each ended; after a failure comes the next run.

        A run that another process works on is put last, so that several processes with the same
        runs do each of them once. If it is still worked on then, it is waited for,
        ``config.wait_seconds``, and left to that process. Raises DeviceLost, Interrupted, and
        RunFailed if the ranks of a training no longer agree: this process can then do no other run.
        """
        self.reporter.plan(runs)
        notes_shown: set[str] = set()
        to_do = list(enumerate(runs, 1))
        for is_last_round in (False, True):
            config = self.config
            if not is_last_round:
                config = replace_config(config, wait_seconds=0.0)
            locked = []
            for number, run in to_do:
                self._show_start(run, number, notes_shown)
                end = self._end_of(run, config)
                if not isinstance(end.error, RunLocked):
                    yield end
                elif is_last_round:
                    self.reporter.done(f"{end.error.message}, which does it")
                    yield end
                else:
                    locked.append((number, run))
            to_do = locked

    def _show_start(self, run: PlannedRun, number: int, notes_shown: set[str]) -> None:
        """Show the run, and its device and notes if no earlier run had them."""
        self.reporter.start(run.run_id, number)
        for note in (device_line(self.config.device, run.precision), *run.notes):
            if note not in notes_shown:
                self.reporter.note(note)
            notes_shown.add(note)

    def _end_of(self, run: PlannedRun, config: RunConfig) -> RunEnd:
        """Execute a run, and show its end if it has a record."""
        try:
            record, worked = execute(
                run, self.store, config, self.reporter, self.ranks, self.plan.question
            )
        except (RunFailed, RunLocked) as error:
            if self.ranks is not None and self.ranks.broken:
                raise
            return RunEnd(run, error=error)
        self.reporter.done(describe_end(record, worked))
        return RunEnd(run, record=record)


def known_methods(files: Sequence[Path | str]) -> Registry:
    """Return all methods, with those in ``files``; prints a line for each that cannot be loaded."""
    registry = discover([Path(file) for file in files])
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    return registry


def describe_end(record: RunRecord, worked: bool) -> str:
    """Write "done: sts 76.25; STS-B dev 82.50 at step 875". ``worked``: there was work to do."""
    begin = "done" if worked else "was done already, nothing repeated"
    text = f"{begin}: {heads(record)}"
    training = record.training
    if training is not None and training.dev_score is not None:
        text += f"; {training.dev_task} {training.dev_score:.2f} at step {training.best_step}"
    return text
