"""Signals: a request to stop, and their names."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def signal_name(number: int) -> str:
    """ "SIGILL (Illegal instruction)"; "signal 99" for one that has no name."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    text = (signal.strsignal(number) or "").partition(":")[0]  # macOS has "Illegal instruction: 4"
    return f"{name} ({text})" if text else name


@contextlib.contextmanager
def stop_signals(insistent: bool = True) -> Iterator[Callable[[], bool]]:
    """While open, the first SIGINT or SIGTERM requests a stop at the next step; a second one ends
    the process as usual.

    Not ``insistent``: later ones are ignored, and so is a SIGTERM after an error. One of several
    ranks gets the terminal's signal and the launcher's, which also ends this rank when another one
    has ended; its own error must be printed first.
    """
    received: list[int] = []
    before: Mapping[int, Any] = {}

    def handler(number: int, frame: Any) -> None:
        received.append(number)
        for of_number, old in before.items() if insistent else ():
            signal.signal(of_number, old)

    with contextlib.suppress(ValueError):  # only the main thread can handle signals
        before = {
            number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
        }
    try:
        yield lambda: bool(received)
    except BaseException:
        if before and not insistent:
            before = {**before, signal.SIGTERM: signal.SIG_IGN}
        raise
    finally:
        for number, old in before.items():
            signal.signal(number, old)
