"""Environment variables that show a process that it is one of several.

torchrun sets them, and job systems do, too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

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
    """Read a launcher's variables; None if this process is not one of several."""
    values = {name: os.environ.get(name, "") for name in NAMES}
    if not all(values.values()) or values["WORLD_SIZE"].strip() == "1":
        return None
    return Launched(
        rank=int(values["RANK"]),
        count=int(values["WORLD_SIZE"]),
        local_rank=int(values["LOCAL_RANK"]),
        place=f"{values['MASTER_ADDR']}:{values['MASTER_PORT']}",
    )
