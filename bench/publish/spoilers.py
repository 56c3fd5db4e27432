"""Which runs cannot be drawn: a record may be wrong in ways that nobody thought of, and then it
costs that run alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.base.errors import one_line
from bench.records.run import Run

Draw = Callable[[Sequence[Run]], object]
"""Makes everything that a version has of these runs."""


def find_spoilers(runs: Sequence[Run], submitted: Sequence[Run], draw: Draw) -> dict[str, str]:
    """Run id -> what is wrong, of the runs that keep all of them from being drawn; empty if no
    single run does.

    First each run is drawn alone. If all can be, ``submitted`` ones are added to the others one by
    one, and then own ones are left out one by one.
    """
    spoilers: dict[str, str] = {}
    for run in runs:
        if why := _problem([run], draw):
            spoilers[run.record.run_id] = why
    if spoilers:
        return spoilers
    of_others = {run.record.run_id for run in submitted}
    fitting = [run for run in runs if run.record.run_id not in of_others]
    if fitting and (why := _problem(fitting, draw)):
        for run in fitting:
            others = [other for other in fitting if other is not run]
            if others and not _problem(others, draw):
                return {run.record.run_id: why}
        return {}
    for run in submitted:
        if why := _problem([*fitting, run], draw):
            spoilers[run.record.run_id] = why
        else:
            fitting.append(run)
    return spoilers


def _problem(runs: Sequence[Run], draw: Draw) -> str:
    """Why these runs cannot be drawn; "" if they can."""
    try:
        draw(runs)
    except Exception as error:  # no error here may end the command
        return one_line(error)
    return ""
