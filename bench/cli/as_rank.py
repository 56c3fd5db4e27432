"""``bench run`` as one of several processes that torchrun has started: rank 0 speaks, and the exit codes are told apart."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from bench.errors import BenchError

if TYPE_CHECKING:
    from bench.training.ranks import Ranks


def one_of_several(command: Callable[..., None]) -> Callable[..., None]:
    """A command with ``device`` among its arguments gets that of its process, and ``ranks``, see :func:`rank_process`."""

    @wraps(command)
    def wrapped(*, device: str, **arguments: Any) -> None:
        with rank_process(device) as (here, ranks):
            command(device=here, ranks=ranks, **arguments)

    return wrapped


@contextmanager
def rank_process(device: str) -> Iterator[tuple[str, Ranks | None]]:
    """The device of this process and its ranks; None where it was not started as one of several.

    As one of several the process ends with this context: gloo's threads can outlive the interpreter, which then aborts although
    everything was right. Only rank 0 prints; what another rank said is shown where it ends on its own.
    """
    from bench.executors.torchrun import LOST, launched

    if not launched():
        yield device, None
        return
    lead, code, ranks = os.environ["RANK"] == "0", 1, None
    said = sys.stderr if lead else io.StringIO()
    if not lead:
        sys.stdout = sys.stderr = said
    try:
        from bench.devices import choose_device
        from bench.training.ranks import join, rank_device

        device = rank_device(choose_device(device))
        ranks = join(device)
        yield device, ranks
        code = 0
    except click.exceptions.Exit as end:
        code = end.exit_code
    except BenchError as error:
        code = _tell(error) if lead or ranks is None or ranks.broken else 0  # else rank 0 tells of it
        code = LOST if not lead and ranks is not None and ranks.lost else code
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        if lead and ranks is not None and not ranks.broken:
            with suppress(BenchError):
                ranks.share(None)  # there is nothing more to train
        if code and isinstance(said, io.StringIO) and sys.__stderr__ is not None:
            sys.__stderr__.write(said.getvalue())
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        os._exit(code)


def _tell(error: BenchError) -> int:
    from bench.cli import show_error

    rank = int(os.environ["RANK"])
    show_error(error, label=f"rank {rank}" if rank else "error")
    return error.exit_code
