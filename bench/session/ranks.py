"""Several processes, one for each GPU, that train a run together."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.base import PLACE
from bench.base.devices import choose_device, signal_name
from bench.base.errors import BenchError
from bench.cli import show_error
from bench.run.estimates import is_launched

if TYPE_CHECKING:
    from bench.method.ranks import Ranks

TAIL = 4000  # characters that are shown of the output of a rank that failed
LOST = 4  # exit code of a rank that ended because another one had


def launch(arguments: Sequence[str], count: int) -> int:
    """Run ``bench ARGUMENTS`` in ``count`` processes; returns the exit code. If one ends early, the others are ended.

    Rank 0 has this process's terminal. The output of another rank is shown only if that rank failed.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch.distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    os.environ["PYTHONPATH"] = os.pathsep.join(  # of the workers: this very package
        filter(None, (str(PLACE), os.environ.get("PYTHONPATH")))
    )
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
            return _exit_code(
                {rank: int(failure.exitcode) for rank, failure in error.failures.items()},
                count,
                Path(logs),
            )
        except SignalException:
            return 130
    return 0


def _exit_code(codes: Mapping[int, int], count: int, logs: Path) -> int:
    """The launcher's exit code, from those of the ranks that ended early; prints why, unless rank 0 has done so."""
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
        return 128 - code if code < 0 else code  # as a shell: an engine starts a killed one again
    return 1


@contextmanager
def rank_process(device: str) -> Iterator[tuple[str, Ranks | None]]:
    """The device of this process and its ranks; None if it was not started as one of several.

    As one of several, the process ends with this context: gloo's threads can outlive the interpreter, which then aborts although
    nothing was wrong.
    """
    if not is_launched():
        yield device, None
        return
    rank, code, ranks = os.environ["RANK"], 1, None
    try:
        from bench.method.ranks import join, rank_device

        device = rank_device(choose_device(device))
        ranks = join(device)
        yield device, ranks
        code = 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BenchError as error:
        code = error.exit_code
        if ranks is not None and ranks.lost and rank != "0":
            code = LOST
        elif ranks is not None and not ranks.broken and rank != "0":
            code = 0  # rank 0 has the same error and prints it
        else:
            show_error(error)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if rank == "0" and ranks is not None and not ranks.broken:
            with suppress(BenchError):
                ranks.share(None)  # there is nothing more to train
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
