"""``bench.export_run``: write a run's model for other tools."""

from __future__ import annotations

import warnings
from pathlib import Path

from bench.base.files import expand_home
from bench.export import describe_export, write_model
from bench.library.arguments import (
    PathLike,
    Plugins,
    as_path,
    path_text,
    run_reference,
    use_plugins,
)
from bench.library.results import Result
from bench.library.terms import in_python_terms
from bench.records.store import RunsFolder


@in_python_terms
def export_run(
    run: PathLike | Result,
    to: PathLike,
    *,
    unmerged: bool = False,
    runs: PathLike | None = None,
    offline: bool = False,
    plugins: Plugins = (),
    progress: bool = True,
) -> Path:
    """Write a finished run's model for other tools, with a model card, as ``bench export`` does.

        bench.export_run(result, "my-model")

    The folder is loaded again and compared with the run's own vectors before it is put in its
    place.

    Args:
        run: An id, its beginning, a folder or a result.
        to: A new folder.
        unmerged: Of a run with LoRA, write only the adapter, as peft's files.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        offline: Open no connection.
        plugins: The Python file or the class of the run's method.
        progress: Print a line about the export.

    Returns:
        The new folder.

    Raises:
        BenchError: If there is no such run, or if its model cannot be exported; then nothing is
            written.
    """
    target = expand_home(path_text(to, "to"))
    files = [Path(file) for file in use_plugins(plugins)]
    exported = write_model(
        run_reference(run),
        target,
        store=RunsFolder(as_path(runs)),
        plugins=files,
        offline=offline,
        say=_warn,
        unmerged=unmerged,
    )
    if progress:
        for line in describe_export(exported):
            print(line)
    return target


def _warn(text: str) -> None:
    warnings.warn(text.removeprefix("warning: "), stacklevel=5)
