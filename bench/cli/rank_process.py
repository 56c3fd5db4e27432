"""``bench run`` as one of several processes that torchrun has started: rank 0 speaks, and the exit codes are told apart."""

from __future__ import annotations

import io
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
    everything was right. Only rank 0 prints; what another rank wrote is shown where it ends on its own.
    """
    if not is_launched():
        yield device, None
        return
    lead, code, ranks = os.environ["RANK"] == "0", 1, None
    output = sys.stderr if lead else io.StringIO()
    if not lead:
        sys.stdout = sys.stderr = output
    try:
        from bench.method.ranks import join, rank_device

        device = rank_device(choose_device(device))
        ranks = join(device)
        yield device, ranks
        code = 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BenchError as error:
        code = 0  # rank 0 tells of it
        if lead or ranks is None or ranks.broken:
            show_error(error, label="error" if lead else f"rank {os.environ['RANK']}")
            code = error.exit_code
        if not lead and ranks is not None and ranks.lost:
            code = LOST
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if lead and ranks is not None and not ranks.broken:
            with suppress(BenchError):
                ranks.share(None)  # there is nothing more to train
        if code and isinstance(output, io.StringIO) and sys.__stderr__ is not None:
            sys.__stderr__.write(output.getvalue())
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        os._exit(code)
