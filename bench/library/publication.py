"""``bench.publish_runs``: write a version of the leaderboards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from bench.base.collector import no_collection
from bench.base.files import expand_home
from bench.base.text import comma_list
from bench.board.publish.build import Outcome, PublishOptions, publish_version
from bench.library.arguments import (
    PathLike,
    Plugins,
    as_path,
    check_argument,
    listed,
    path_text,
    use_plugins,
)
from bench.library.terms import in_python_terms

SHOWN = 20
"""Warnings about runs that are left out."""


@in_python_terms
def publish_runs(
    out: PathLike = "leaderboards",
    *,
    runs: PathLike | None = None,
    submissions: PathLike | None = None,
    baseline: str | None = None,
    title: str | None = None,
    note: str | None = None,
    preview: bool = False,
    leave_out: str | Sequence[str] = (),
    plugins: Plugins = (),
) -> Outcome:
    """Write a new version of the leaderboards into ``out``, as ``bench publish`` does.

        bench.publish_runs(preview=True).folder

    Warnings name the runs that are left out, and own data with gold values that are published.

    Args:
        out: The folder of the versions.
        runs: The folder of the runs, perhaps of a version. None: $BENCH_RUNS, or ./runs.
        submissions: Also publish the runs in this folder, each checked.
        baseline: The row that the others are compared with. None: as in the last version; "":
            simcse.
        title: Heading of the pages. None: the last version's.
        note: The first thing that readers should know. None: the last version's.
        preview: Write ``out``/preview, which the next preview replaces, and no version.
        leave_out: Suites whose scores and predictions are not published.
        plugins: Python files with suites, or with methods that pages should describe.

    Returns:
        What was written, and what was left out.

    Raises:
        BenchError: If a version cannot be made; then nothing is written.
    """
    for argument, text in (("baseline", baseline), ("title", title), ("note", note)):
        if text is not None:
            check_argument(argument, text, str)
    check_argument("leave_out", listed(leave_out), list[str])
    files = use_plugins(plugins)
    options = PublishOptions(
        title=title,
        note=note,
        baseline=baseline,
        preview=preview,
        leave_out=comma_list(",".join(listed(leave_out))),
        plugins=[Path(file) for file in files],
    )
    with no_collection():
        outcome = publish_version(
            as_path(runs),
            expand_home(path_text(out, "out")),
            options,
            submissions=as_path(submissions, "submissions"),
        )
    lines = [*outcome.own_data, *outcome.refused]
    lines += [f"left out: {line}" for line in outcome.board.left_out]
    for line in lines[:SHOWN]:
        warnings.warn(line, stacklevel=3)
    if len(lines) > SHOWN:
        warnings.warn(f"and {len(lines) - SHOWN} more", stacklevel=3)
    return outcome
