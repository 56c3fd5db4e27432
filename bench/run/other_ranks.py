"""The other processes of a training (``--on torchrun:N``), which follow the first one."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.signals import stop_signals
from bench.method.config import RunConfig
from bench.method.context import SilentReporter
from bench.run.planned import PlannedRun
from bench.run.weights import build_for_run, end_together, prepare_training

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def follow_first_rank(planned: Sequence[PlannedRun], config: RunConfig, ranks: Ranks) -> None:
    """Train the runs that rank 0 names by their folders, until it names none.

    All ranks except the first do this.

    Rank 0 reports a failure of all ranks. A failure of this rank alone is raised, because the
    process has to end.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # rank 0 gets them, too, and decides
        signal.signal(number, signal.SIG_IGN)
    runs = {run.run_id: run for run in planned}
    while (place := ranks.share(None)) is not None:
        folder = Path(place)
        try:
            end_together(partial(_train_rank, runs[folder.name], folder, config, ranks), ranks)
        except (Exception, SystemExit):
            if ranks.broken:
                raise


def _train_rank(run: PlannedRun, folder: Path, config: RunConfig, ranks: Ranks) -> None:
    with stop_signals(insistent=False) as should_stop:
        method = build_for_run(run, config, SilentReporter(), folder, should_stop, ranks)
        prepare_training(method, run)()
