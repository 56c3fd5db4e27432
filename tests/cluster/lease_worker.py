"""A process that owns a folder, writes to it, and finds out whether anybody else did: ``python lease_worker.py FOLDER NAME SEED END``.

As if on a machine of its own: with ``NAME`` for its place, and a file system that refuses locks. It takes the folder, writes a file again and
again, and before each write reads what lies there: as long as it owns the folder that is what it wrote itself. Goes on until there is a
file ``END``, and says each loss of the folder in a line of ``END.lost``. Prints one JSON object.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from bench.base import lease
from bench.base.errors import OwnershipLost
from bench.base.files import write_whole


def main(folder: Path, name: str, seed: int, end: Path) -> None:
    lease.TAKEN_AFTER, lease.RENEWED_EVERY = 0.25, 0.05
    lease.place = lambda: name  # type: ignore[assignment]
    draw, told = random.Random(seed), {"owned": 0, "lost": 0, "writes": 0, "foreign": 0}
    file = folder / "record"
    while not end.exists():
        try:
            held = lease.take(folder, alone=False)
        except lease.Busy:
            time.sleep(0.02)
            continue
        told["owned"] += 1
        wrote = None
        try:
            while not end.exists() and draw.random() > 0.002:
                found = file.read_text() if file.exists() else None
                if wrote is not None and found != wrote:
                    held.check()  # raises, where it was taken over
                    told["foreign"] += 1
                wrote = f"{name} {told['writes']}"
                write_whole(file, wrote.encode())
                told["writes"] += 1
        except OwnershipLost:
            told["lost"] += 1
            with end.with_suffix(".lost").open("a") as losses:
                losses.write(f"{name}\n")
        finally:
            held.release()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
