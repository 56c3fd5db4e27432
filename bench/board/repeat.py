"""The command that makes published runs again, from the plan beside each record."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from bench.base.reading import PLAN_BYTES, is_plain_file, read_plain_file
from bench.base.text import seed_ranges
from bench.records.names import PLAN
from bench.records.run import Run

NOT_REPEATABLE = "not repeatable from here"
"""Of runs without a plan: only their owner has the model."""


def repeat(runs: Sequence[Run], place: str = "runs") -> str:
    """Return the command that makes these runs again, which differ only in the seed.

    ``place``: the folder of runs as the command's user names it. NOT_REPEATABLE if the first run
    has no plan.
    """
    first = runs[0]
    if not is_plain_file(first.folder / PLAN):
        return NOT_REPEATABLE
    words = ["bench", "run", "--plan", str(PurePath(place, first.record.run_id, PLAN))]
    if len(runs) > 1:
        words += ["--seeds", seed_ranges(run.record.seed for run in runs)]
    return shlex.join(words)


def plan_text(run: Run) -> str:
    """Return the plan of a run as it is in its folder; "" if it has none, or it is no plain file
    of its size.
    """
    try:
        return read_plain_file(run.folder / PLAN, PLAN_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
