"""Several processes, one for each GPU, that train a run together (``--on torchrun:N``): their start,
their work, and their end.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base import PLACE
from bench.base.devices import choose_device
from bench.base.errors import BenchError
from bench.base.launched import launched
from bench.base.signals import signal_name, stop_signals
from bench.method.config import RunConfig
from bench.method.context import SilentReporter
from bench.run.planned import PlannedRun
from bench.run.weights import build_for_run, end_together, prepare_training

if TYPE_CHECKING:
    from bench.method.ranks import Ranks

TAIL = 4000
"""Characters that are shown of the output of a rank that failed."""

LOST = 4
"""Exit code of a rank that ended because another rank ended."""


def launch(arguments: Sequence[str], count: int) -> int:
    """Run ``bench ARGUMENTS`` in ``count`` processes, and return the exit code.

    If one ends early, the others are ended. Rank 0 has this process's terminal; the output of
    another rank is shown only if that rank failed.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    _set_worker_environment(count)
    with tempfile.TemporaryDirectory(prefix="bench-ranks-") as logs:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=uuid.uuid4().hex,
            max_restarts=0,
            monitor_interval=0.1,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            logs_specs=DefaultLogsSpecs(
                log_dir=logs, redirects={rank: Std.ALL for rank in range(1, count)}
            ),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "bench", *arguments)
        except ChildFailedError as error:
            codes = {rank: int(failure.exitcode) for rank, failure in error.failures.items()}
            return _exit_code(codes, count, Path(logs))
        except SignalException:
            return 130
    return 0


def _set_worker_environment(count: int) -> None:
    """Set the variables that make the processes import this same package, and share the cores."""
    paths = [str(PLACE)]
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    # a folder named bench in the working directory would shadow the package
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))


def _exit_code(codes: Mapping[int, int], count: int, logs: Path) -> int:
    """Return the launcher's exit code, and print why, unless rank 0 has done so.

    ``codes``: rank -> exit code, of the ranks that ended early.
    """
    for rank, code in sorted(codes.items(), reverse=True):
        if code in (LOST, -signal.SIGTERM):  # because another rank had ended
            continue
        if rank == 0 and code > 0:
            return code
        end = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        print(f"error: rank {rank} of {count} ended {end}", file=sys.stderr)
        for file in sorted(logs.rglob(f"{rank}/std*.log")):
            sys.stderr.write(file.read_text(encoding="utf-8", errors="replace")[-TAIL:])
        print("try: the same command; it resumes from the last saved state", file=sys.stderr)
        if code < 0:  # as a shell says it: an engine starts a killed process again
            return 128 - code
        return code
    return 1


@dataclass
class RankProcess:
    """This process: its device, its ranks, and how it ends."""

    device: str

    ranks: Ranks | None = None
    """The processes that train together; None if this one was not started as one of several."""

    exit_code: int = 0
    """The exit code of a process that is one of several."""


@contextmanager
def rank_process(device: str, show_error: Callable[[BenchError], None]) -> Iterator[RankProcess]:
    """Join the other ranks, if this process was started as one of several.

    Then the process ends with this context, with the exit code that was set: gloo's threads can
    outlive the interpreter, which then aborts although nothing was wrong. ``show_error`` prints an
    error, which is not raised.
    """
    if launched() is None:
        yield RankProcess(device)
        return
    is_first = os.environ["RANK"] == "0"
    process = RankProcess(device)
    code = 1
    try:
        from bench.method.ranks import meet_ranks, rank_device

        process.device = rank_device(choose_device(device))
        process.ranks = meet_ranks(process.device)
        yield process
        code = process.exit_code
    except BenchError as error:
        code = error.exit_code
        if is_first or process.ranks is None:
            show_error(error)
        elif process.ranks.lost:
            code = LOST
        elif not process.ranks.broken:
            code = 0  # rank 0 has the same error and prints it
        else:
            show_error(error)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if is_first and process.ranks is not None and not process.ranks.broken:
            with suppress(BenchError):
                process.ranks.share(None)  # there is nothing more to train
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


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
