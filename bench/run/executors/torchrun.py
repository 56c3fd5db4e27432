"""Several processes of this machine, one for each GPU, that train a run together: torch's launcher starts the same command as each of them.

Rank 0 does all that one process does, and calls the others when there is something to train. Between two trainings, while it reads,
scores and writes, the others wait for its word: the name of the next run to train, or that there is none.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, RunFailed
from bench.base.package import PLACE
from bench.base.signals import signal_name, stop_signals
from bench.method import SilentReporter, TrainReport
from bench.run.config import RunConfig, Target
from bench.run.executors.build import build, training_corpus

if TYPE_CHECKING:
    from bench.data.corpora.token_cache import TokenisedCorpus
    from bench.method.ranks import Alone, Ranks
    from bench.method.torch_method import TorchMethod
    from bench.run.plan import PlannedRun
    from bench.runs import RunsFolder

TAIL = 20  # lines of the log of a rank that ended on its own
LOST = 4  # exit code of a rank that ended because another one had
OWN_END = (1, 2, 130)  # exit codes with which rank 0 has said itself what there is to say


def is_launched() -> bool:
    """Was this process started as one of several, by torchrun or by what does as it does?"""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    return all(os.environ.get(name) for name in names) and os.environ["WORLD_SIZE"] != "1"


def process_count(target: Target, device: str) -> int:
    """How many processes train together. Raises BenchError where that cannot be."""
    if is_launched():
        return int(os.environ["WORLD_SIZE"])
    if target.name != "torchrun":
        return 1
    if device not in ("cpu", "cuda") or (device == "cpu" and target.gpus is None):
        hint = "--device cuda --on torchrun:N, or --device cpu --on torchrun:2"
        raise BenchError(f"--on torchrun on {device}: how many processes?", hint)
    most = cores_here() if device == "cpu" else gpus_here()
    if (target.gpus or 0) > most:
        text = f"--on torchrun:{target.gpus}: more processes than the {most} cores or GPUs here"
        raise BenchError(text, f"--on torchrun:{most}")
    return target.gpus or most


def gpus_here() -> int:
    import torch

    return torch.cuda.device_count()


def cores_here() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def launch(arguments: Sequence[str], count: int) -> int:
    """Run ``bench ARGUMENTS`` in ``count`` processes; returns the exit code. Where one ends, the others are ended.

    Rank 0 has this process's terminal. What the others print is kept, and shown of one that ended on its own.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    logs = Path(tempfile.mkdtemp(prefix="bench-ranks-"))
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
            log_dir=str(logs), redirects={rank: Std.ALL for rank in range(1, count)}
        ),
    )
    _set_environment(count)
    code = 0
    try:
        elastic_launch(config, sys.executable)("-m", "bench", *arguments)
    except ChildFailedError as error:
        codes = {rank: int(failure.exitcode) for rank, failure in error.failures.items()}
        guilty = [
            rank for rank in sorted(codes) if rank and codes[rank] not in (LOST, -signal.SIGTERM)
        ]
        if guilty or codes.get(0) not in OWN_END:
            rank = guilty[0] if guilty else 0
            code = codes.get(rank, 1)
            _show_log(rank, count, code, logs)
            return 128 - code if code < 0 else 1  # as a shell: an engine starts a killed one again
        code = codes[0]
    except SignalException:
        code = 130
    shutil.rmtree(logs, ignore_errors=True)
    return code


def _set_environment(count: int) -> None:
    """For the workers: this very package, wherever it was started from, and a share of the cores each."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(PLACE) + (os.pathsep + before if before else "")
    os.environ["PYTHONSAFEPATH"] = "1"  # a folder named bench where the user stands is another one
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))


def _show_log(rank: int, count: int, exit_code: int, logs: Path) -> None:
    end = f"by {signal_name(-exit_code)}" if exit_code < 0 else f"with exit code {exit_code}"
    print(f"error: rank {rank} of {count} ended {end}; the other ranks were ended", file=sys.stderr)
    for file in sorted(logs.rglob(f"{rank}/std*.log")):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if lines:
            print(f"the end of {file}:", *lines[-TAIL:], sep="\n  ", file=sys.stderr)
    if rank == 0 or exit_code < 0:  # else rank 0 has said so
        print("try: the same command again; it goes on from the last saved state", file=sys.stderr)


# --- what each rank does ---


def train_on_all(
    method: TorchMethod, corpus: TokenisedCorpus, run: PlannedRun, ranks: Alone | None
) -> TrainReport:
    """``bench.training.loop.train`` on all ranks; called on rank 0, or where there is only one. A method that the training loop does not
    train is fitted here alone."""
    from bench.method.ranks import Ranks
    from bench.training.loop import train

    if not isinstance(ranks, Ranks):
        return train(method, corpus, method.context)
    if method.context.ranks is None:
        method.context.reporter.note(
            f"{run.method} is fitted by one process; the other {ranks.count - 1} wait"
        )
        return train(method, corpus, method.context)
    ranks.share(run.run_id)
    return settle(lambda: train(method, corpus, method.context), ranks)


def settle(work: Callable[[], Any], ranks: Ranks) -> Any:
    """What ``work`` returns or raises, once all ranks are at its end. Where they do not come there, ``ranks.broken`` is set."""
    try:
        value = work()
    except (Exception, SystemExit) as error:  # a plugin may call sys.exit
        ranks.settle(error)
        raise
    if not ranks.settle(None):
        raise RunFailed(
            "another rank ended before the training did",
            "the same command goes on from the last state",
        )
    return value


def follow(
    find: Callable[[str], tuple[PlannedRun, RunsFolder]], config: RunConfig, ranks: Ranks
) -> int:
    """What every rank but the first does: train what rank 0 names, until it names nothing. Returns the exit code.

    ``find`` says what a named run is, and in which folder. A failure that all ranks have is told by rank 0. One of this rank alone is
    raised: the process has to end.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # rank 0 gets them, too, and says when to end
        signal.signal(number, signal.SIG_IGN)
    while True:
        run_id: str | None = ranks.share(None)
        if run_id is None:
            return 0
        try:
            settle(partial(_train_here, find, run_id, config, ranks), ranks)
        except (Exception, SystemExit):
            if ranks.broken:
                raise


def _train_here(
    find: Callable[[str], tuple[PlannedRun, RunsFolder]],
    run_id: str,
    config: RunConfig,
    ranks: Ranks,
) -> None:
    from bench.method.torch_method import TorchMethod
    from bench.training.loop import train

    run, store = find(run_id)
    with stop_signals(insistent=False) as should_stop:
        method = build(run, config, SilentReporter(), store.folder(run_id), should_stop, ranks)
        assert isinstance(method, TorchMethod) and run.corpus is not None
        train(method, training_corpus(run.corpus, method), method.context)
