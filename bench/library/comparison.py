"""``bench.compare_runs``: tables of runs, with verdicts."""

from __future__ import annotations

from typing import Any

from bench.base.errors import BenchError
from bench.board.publish.versions import judged_as
from bench.compare import tables
from bench.compare.senders import with_senders
from bench.library.arguments import PathLike, as_path, check_argument
from bench.library.results import Result, Tables, distinct_results
from bench.library.stored import find_results
from bench.library.terms import in_python_terms
from bench.method import Method
from bench.records.store import RunsFolder


@in_python_terms
def compare_runs(
    what: Any,
    baseline: str | Result | type[Method] | None = None,
    *,
    together: bool = False,
    runs: PathLike | None = None,
) -> Tables:
    """Compare runs as ``bench compare`` does: means over seeds, intervals, verdicts.

        bench.compare_runs(results, baseline="simcse").plot()

    How verdicts are decided: docs/statistics.md.

    Args:
        what: Results, ids (or their beginnings), folders of runs, names of evaluated models; one of
            these, or several.
        baseline: A method (its name or its class), a model's name, or one of the results. None:
            that of the version which the runs are in, else simcse.
        together: Put all settings and backbones into one table.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.

    Returns:
        Tables of rows that may be compared, with intervals and verdicts.

    Raises:
        BenchError: For a run that is missing or not finished, and for two different runs of one id.
        UnknownName: For an unknown baseline, with the nearest names.
    """
    results = distinct_results(find_results(what, RunsFolder(as_path(runs))))
    unfinished = [run for run, result in results.items() if result.record.status != "finished"]
    if unfinished:
        raise BenchError(f"not finished: {', '.join(unfinished)}", "name finished runs")
    if not results:
        raise BenchError("no run was named", "name finished runs")
    if isinstance(baseline, Result):
        baseline = baseline.run_id if baseline.run_id in results else baseline.record.label
    elif isinstance(baseline, type):
        baseline = str(baseline.name)
    elif baseline is not None:
        check_argument("baseline", baseline, str)
    compared = [result.run for result in results.values()]
    published = judged_as(compared)
    made = tables.make_tables(
        with_senders(compared),
        baseline=baseline or published.baseline,
        together=together,
        main_budget=published.main_budget,
    )
    return Tables(made)
