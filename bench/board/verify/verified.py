"""Findings of verify on runs and versions, as grids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.base.findings import UNCHECKED
from bench.base.grid import Grid, GridColumn, grid
from bench.base.text import list_names
from bench.board.verify.findings import KINDS, RunReport


def report_grids(reports: Sequence[RunReport]) -> Iterator[Grid]:
    """Yield the checks that agree in each run, then what differs or could not be computed, then
    what was not checked."""
    yield grid(
        [
            GridColumn("run", wrap=30),
            "result",
            *(GridColumn(kind, right=True, drop=i) for i, kind in enumerate(KINDS, 1)),
        ],
        [
            [report.name, _result(report), *(f"{report.count(kind) or ''}" for kind in KINDS)]
            for report in reports
        ],
    )
    wrong: dict[tuple[str, str, str], list[str]] = {}
    for report in reports:
        for finding in [*report.differences, *report.select(UNCHECKED, "score")]:
            key = (finding.kind, finding.what, finding.why)
            wrong.setdefault(key, []).append(report.name)
    if wrong:
        yield grid(
            [
                GridColumn("run", wrap=30),
                "check",
                GridColumn("of", wrap=16),
                GridColumn("why", wrap=24),
            ],
            [(list_names(names, 1), *key) for key, names in wrong.items()],
            title="Differs, or cannot be computed",
        )
    unchecked: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for finding in report.unchecked:
            if finding.kind != "score":
                unchecked[finding.kind, finding.why] += 1
    if unchecked:
        yield grid(
            ["check", GridColumn("times", right=True), GridColumn("why", wrap=24)],
            [(kind, f"{count:,}", why) for (kind, why), count in sorted(unchecked.items())],
            title="Not checked",
        )


def _result(report: RunReport) -> str:
    if report.differences:
        return "differs"
    # of a published version the files are compared, and no scores
    if report.status not in ("finished", "published") and not report.count("score"):
        return "not finished"
    if report.count("score", UNCHECKED) or is_not_judged(report) or not report.count():
        return "not checked"
    return "agrees"


def is_not_judged(report: RunReport) -> bool:
    """Say if none of a version's tables could be judged again."""
    return bool(report.count("tables", UNCHECKED)) and not report.count("tables")
