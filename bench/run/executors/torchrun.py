"""Several processes of this machine, one for each GPU, that train a run together: torch's launcher starts the same command as each of them.

Rank 0 does all that one process does, and calls the others when there is something to train. Between two trainings, while it reads,
scores and writes, the others wait for its word: the name of the next run to train, or that there is none.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.package import PLACE
from bench.base.signals import signal_name
from bench.run.config import Target

TAIL = 4000  # characters that are shown of the output of a rank that failed
LOST = 4  # exit code of a rank that ended because another one had


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
    if device == "cpu" and target.gpus is not None:
        return target.gpus
    if device != "cuda":
        hint = "--device cuda --on torchrun:N, or --device cpu --on torchrun:2"
        raise BenchError(f"--on torchrun on {device}: how many processes?", hint)
    import torch

    count = torch.cuda.device_count()
    if (target.gpus or 0) > count:
        text = f"--on torchrun:{target.gpus}: more processes than the {count} GPUs here"
        raise BenchError(text, f"--on torchrun:{count}")
    return target.gpus or count


def launch(arguments: Sequence[str], count: int) -> int:
    """Run ``bench ARGUMENTS`` in ``count`` processes; returns the exit code. Where one ends early, the others are ended.

    Rank 0 has this process's terminal. The output of another rank is shown only where that rank is the one that failed.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    before = os.environ.get("PYTHONPATH")  # of the workers: this very package
    os.environ["PYTHONPATH"] = str(PLACE) + (os.pathsep + before if before else "")
    os.environ["PYTHONSAFEPATH"] = "1"  # a folder named bench where the user stands is another one
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
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


def _exit_code(codes: Mapping[int, int], count: int, logs: Path) -> int:
    """Of the launcher, from those of the ranks that ended early; prints why, unless rank 0 has done that."""
    for rank, code in sorted(codes.items(), reverse=True):
        if code in (LOST, -signal.SIGTERM):  # because another rank had ended
            continue
        if rank == 0 and code > 0:
            return code
        end = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        print(f"error: rank {rank} of {count} ended {end}", file=sys.stderr)
        for file in sorted(logs.rglob(f"{rank}/std*.log")):
            sys.stderr.write(file.read_text(encoding="utf-8", errors="replace")[-TAIL:])
        print("try: the same command; it goes on from the last saved state", file=sys.stderr)
        return 128 - code if code < 0 else code  # as a shell: an engine starts a killed one again
    return 1
