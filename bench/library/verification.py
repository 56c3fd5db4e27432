"""``bench.verify_runs``: compute stored scores again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult

from bench.base.findings import UNCHECKED, Finding
from bench.base.markup import as_html
from bench.base.printing import draw_grids
from bench.board.verify.findings import RunReport
from bench.board.verify.places import find_folders, verify_folders
from bench.board.verify.verified import report_grids
from bench.library.arguments import (
    PathLike,
    Plugins,
    as_path,
    listed,
    run_reference,
    use_plugins,
)
from bench.library.results import STYLE, Result, print_to_text
from bench.library.terms import in_python_terms
from bench.records.store import RunsFolder

if TYPE_CHECKING:
    import pandas as pd


class Reports(tuple[RunReport, ...]):
    """Reports of a verification: one per run, and two per version, on its files and its tables.

    ``reports.agree`` is the short answer.
    """

    @property
    def agree(self) -> bool:
        """True if nothing differs, and every score could be computed again."""
        unchecked = any(report.count("score", UNCHECKED) for report in self)
        return not self.differences and not unchecked

    @property
    def differences(self) -> list[Finding]:
        """The findings of all runs that differ."""
        return [finding for report in self for finding in report.differences]

    def frame(self) -> pd.DataFrame:
        """Return a row for each finding: run, check, of, result, why."""
        import pandas as pd

        rows = [
            (report.name, finding.kind, finding.what, finding.outcome, finding.why)
            for report in self
            for finding in report.findings
        ]
        return pd.DataFrame(rows, columns=["run", "check", "of", "result", "why"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield draw_grids(report_grids(self), console, options.max_width)

    def __repr__(self) -> str:
        return print_to_text(self)

    def _repr_html_(self) -> str:
        return STYLE + "\n".join(as_html(grid) for grid in report_grids(self))


@in_python_terms
def verify_runs(
    what: PathLike | Result | Sequence[PathLike | Result] = (),
    *,
    runs: PathLike | None = None,
    plugins: Plugins = (),
) -> Reports:
    """Compute every score and hash again from stored files, and every verdict of a published
    version from its scores, as ``bench verify`` does.

        assert bench.verify_runs("leaderboards/v6").agree

    Args:
        what: Ids (or their beginnings), folders, published versions, results; one or several.
            Without any: all runs in ``runs``.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        plugins: Python files with suites.

    Returns:
        One report on each run, and two on each version, of its files and of its tables.

    Raises:
        BenchError: If there is no run.
    """
    use_plugins(plugins)
    places = [run_reference(named, "what") for named in listed(what)]
    folders = list(find_folders(places, RunsFolder(as_path(runs))))
    return Reports(verify_folders(folders))
