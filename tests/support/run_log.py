"""Read the progress lines of runs: an id when a run starts."""

from __future__ import annotations

import re

STARTS = re.compile(r"^(\S+-(?:s\d+|any)-[0-9a-f]{8})(?: \(\d+ of \d+\))?$", re.M)


def started_runs(log: str) -> list[str]:
    """Return the id of each run that the log shows to have started, in order."""
    return STARTS.findall(log)
