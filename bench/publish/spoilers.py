"""Find the runs that cannot be drawn.

A record may be wrong in ways that nobody thought of; then only its run is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.base.errors import one_line
from bench.records.run import Run

Draw = Callable[[Sequence[Run]], object]
"""Makes everything that a version has of these runs."""


def find_spoilers(runs: Sequence[Run], submitted: Sequence[Run], draw: Draw) -> dict[str, str]:
    """Return run id -> the problem, for each run that keeps all of them from being drawn.

    Empty if no single run does. First each run is drawn alone. If all can be, ``submitted`` ones
    are added to the others one by one, and then own ones are left out one by one.
    """
    spoilers: dict[str, str] = {}
    for run in runs:
        why = _problem([run], draw)
        if why:
            spoilers[run.record.run_id] = why
    if spoilers:
        return spoilers
    submitted_ids = {run.record.run_id for run in submitted}
    fitting = [run for run in runs if run.record.run_id not in submitted_ids]
    why = _problem(fitting, draw) if fitting else ""
    if why:
        for run in fitting:
            others = [other for other in fitting if other is not run]
            if others and not _problem(others, draw):
                return {run.record.run_id: why}
        return {}
    for run in submitted:
        why = _problem([*fitting, run], draw)
        if why:
            spoilers[run.record.run_id] = why
        else:
            fitting.append(run)
    return spoilers


def _problem(runs: Sequence[Run], draw: Draw) -> str:
    """Say why these runs cannot be drawn; "" if they can."""
    try:
        draw(runs)
    except Exception as error:  # no error here may end the command
        return one_line(error)
    return ""
