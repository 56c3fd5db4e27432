"""Environment variables that show a process that it is one of several.

torchrun sets them, and job systems do, too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from bench.base.errors import BenchError

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


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

    Raises BenchError if one of them is no number.
    """
    values = {name: os.environ.get(name, "") for name in NAMES}
    if not all(values.values()) or values["WORLD_SIZE"].strip() == "1":
        return None
    return Launched(
        rank=_number("RANK", values),
        count=_number("WORLD_SIZE", values),
        local_rank=_number("LOCAL_RANK", values),
        place=f"{values['MASTER_ADDR']}:{values['MASTER_PORT']}",
    )


def _number(name: str, values: dict[str, str]) -> int:
    try:
        return int(values[name])
    except ValueError:
        raise BenchError(
            f"the launcher's variable {name} is {values[name]!r}, not a number",
            f"unset {name}; --on torchrun:2 sets it",
        ) from None
