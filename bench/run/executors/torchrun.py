"""Several processes of this machine, one for each GPU, through torch's launcher; each runs the same command as one of the ranks."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.package import PLACE
from bench.base.signals import signal_name
from bench.run.config import Target

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
