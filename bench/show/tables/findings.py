"""What verify found of runs and versions, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.base.findings import UNCHECKED
from bench.show.grid import Column, Grid, grid
from bench.verify.scores import KINDS, RunReport


def report_grids(reports: Sequence[RunReport]) -> Iterator[Grid]:
    """How many checks agree in each run; what differs and which scores could not be computed; what else was not checked."""
    agree = [
        [report.name, _result(report), *(f"{report.count(kind) or ''}" for kind in KINDS)]
        for report in reports
    ]
    counts = (Column(kind, right=True, drop=i) for i, kind in enumerate(KINDS, 1))
    columns: list[Column | str] = [Column("run", wrap=30), "result", *counts]
    yield grid(columns, agree)
    wrong = [
        (report.name, finding.kind, finding.what, finding.why)
        for report in reports
        for finding in [*report.differences, *report.select(UNCHECKED, "score")]
    ]
    if wrong:
        columns = ["run", "check", Column("of", wrap=16), Column("why", wrap=24)]
        yield grid(columns, wrong, title="Differs, or cannot be computed")
    unchecked = Counter(
        (finding.kind, finding.why)
        for report in reports
        for finding in report.unchecked
        if finding.kind != "score"
    )
    if unchecked:
        rows = [(kind, f"{count:,}", why) for (kind, why), count in sorted(unchecked.items())]
        columns = ["check", Column("times", right=True), Column("why", wrap=24)]
        yield grid(columns, rows, title="Not checked")


def _result(report: RunReport) -> str:
    if report.differences:
        return "differs"
    checked = report.count() and not report.count("score", UNCHECKED)
    return "agrees" if checked else "not checked"
