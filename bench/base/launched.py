"""Environment variables that show a process that it is one of several.

torchrun sets them, and job systems do, too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from bench.base.errors import BenchError

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
HINT = (
    "for one process: unset RANK WORLD_SIZE; "
    "for several, start them with --on torchrun:N, or torchrun"
)


@dataclass(frozen=True)
class Launched:
    """One process of several."""

    rank: int
    count: int
    local_rank: int
    # the meeting point of the processes: HOST:PORT of the first one
    place: str


def launched() -> Launched | None:
    """Read a launcher's variables; None if this process is not one of several.

    Raises BenchError if the variables make no sense.
    """
    values = {name: os.environ.get(name, "") for name in NAMES}
    if not all(values.values()) or values["WORLD_SIZE"].strip() == "1":
        return None
    count = _number("WORLD_SIZE", 1, 1 << 20)
    rank = _number("RANK", 0, count - 1)
    local_rank = _number("LOCAL_RANK", 0, count - 1)
    port = _number("MASTER_PORT", 1, 65535)
    return Launched(rank, count, local_rank, f"{values['MASTER_ADDR']}:{port}")


def _number(name: str, least: int, most: int) -> int:
    """Return the whole number in a variable. Raises BenchError if it is none, or out of range."""
    text = os.environ[name].strip()
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise BenchError(
            f"{name}={text[:40]} in the environment is not a whole number from {least} to {most:,}",
            HINT,
        )
    return int(text)
