"""Signals: the request to stop, and the names of signals."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def signal_name(number: int) -> str:
    """Return "SIGILL (Illegal instruction)", or "signal 99" if the number has no name."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    text = (signal.strsignal(number) or "").partition(":")[0]  # macOS has "Illegal instruction: 4"
    return f"{name} ({text})" if text else name


@contextlib.contextmanager
def stop_signals(insistent: bool = True) -> Iterator[Callable[[], bool]]:
    """Ask for a stop at the next step at the first SIGINT or SIGTERM; yield whether one came.

    A second signal ends the process as usual. If not ``insistent``, which is for one of several
    ranks, later signals are ignored, because a rank gets the terminal's signal and the launcher's.
    A SIGTERM after an error is ignored, too: the launcher sends it once another rank has ended, and
    this rank must print its own error first.
    """
    received: list[int] = []
    before: Mapping[int, Any] = {}

    def handler(number: int, frame: Any) -> None:
        received.append(number)
        if insistent:
            for caught, old in before.items():
                signal.signal(caught, old)

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
