"""``bench run`` as one of several processes that torchrun has started: its device, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from bench.base.devices import choose_device
from bench.base.errors import BenchError
from bench.cli import show_error
from bench.run.executors.torchrun import LOST, is_launched

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


@contextmanager
def rank_process(device: str) -> Iterator[tuple[str, Ranks | None]]:
    """The device of this process and its ranks; None where it was not started as one of several.

    As one of several the process ends with this context: gloo's threads can outlive the interpreter, which then aborts although
    everything was right.
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
