"""``bench.load_runs`` and ``bench.frame``: read the runs of a folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.library.arguments import PathLike, as_path, listed, run_reference
from bench.library.results import Result, Results, distinct_results
from bench.library.terms import in_python_terms
from bench.records.record import read_record
from bench.records.store import RunsFolder

if TYPE_CHECKING:
    import pandas as pd


@in_python_terms
def load_runs(folder: PathLike | Sequence[PathLike] | None = None) -> Results:
    """Read every run of a runs folder, or of several, by id.

        bench.load_runs().frame()
        bench.load_runs(["runs", "leaderboards/v6/runs"]).table()

    Copies of a run count once. A damaged record is left out, with a warning.

    Args:
        folder: One folder, or several. None: $BENCH_RUNS, or ./runs.

    Returns:
        The runs, each once.

    Raises:
        BenchError: If two different runs have one id.
    """
    results = []
    for path in listed(folder):
        store = RunsFolder(as_path(path, "folder"))
        records, damaged = store.records()
        for error in damaged:
            warnings.warn(f"left out, damaged: {error.message}", stacklevel=3)
        results += [Result(record, store.folder(record.run_id)) for record in records]
    return Results(distinct_results(results).values())


@in_python_terms
def frame(folder: PathLike | Sequence[PathLike] | None = None) -> pd.DataFrame:
    """Return every run of a runs folder, or of several, as tidy rows, one for each run and score.

    Args:
        folder: One folder, or several. None: $BENCH_RUNS, or ./runs.

    Returns:
        A data frame of pandas with the columns of ``Results.frame``.

    Raises:
        BenchError: If two different runs have one id.
    """
    return load_runs(folder).frame()


def find_results(what: Any, store: RunsFolder) -> list[Result]:
    """Find the results that results, ids (or their beginnings), folders or models' names mean.

    ``what``: one of these, or several. Raises BenchError for anything else, and UnknownName if
    there is no such run.
    """
    if isinstance(what, Result):
        return [what]
    if isinstance(what, str | os.PathLike):
        files = store.record_files(run_reference(what))
        return [Result(read_record(file), file.parent) for file in files]
    if not isinstance(what, Iterable):
        raise BenchError(
            f"{what!r:.60}, of type {type(what).__name__}, is no run",
            "results, ids, folders of runs, or names of evaluated models",
        )
    results = []
    for part in what:
        results += find_results(part, store)
    return results
