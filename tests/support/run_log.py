"""Read the progress lines of runs: an id when a run starts, and indented lines about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

STARTS = re.compile(r"^(\S+-(?:s\d+|any)-[0-9a-f]{8})(?: \(\d+ of \d+\))?$", re.M)


def started_runs(log: str) -> list[str]:
    """Return the id of each run that the log shows to have started, in order."""
    return STARTS.findall(log)


def done_runs(log: str) -> Iterator[str]:
    """Yield the id of each run that the log shows to have been done here."""
    current = ""
    for line in log.splitlines():
        if STARTS.match(line):
            current = line.split()[0]
        elif line.startswith("  done: "):
            yield current
