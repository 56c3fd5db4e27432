"""Stopping from outside: at the next step, with everything kept."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_signals(insistent: bool = True) -> Iterator[Callable[[], bool]]:
    """While open, the first SIGINT or SIGTERM asks for a stop at the next step; a second one ends the process as usual.

    Not ``insistent``: more of them ask for nothing more. One of several ranks gets the terminal's signal and the launcher's.
    """
    asked: list[int] = []
    before: Mapping[int, Any] = {}

    def handler(number: int, frame: Any) -> None:
        asked.append(number)
        for one, old in before.items() if insistent else ():
            signal.signal(one, old)

    try:
        before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: whoever owns it handles signals
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, old in before.items():
            signal.signal(number, old)
