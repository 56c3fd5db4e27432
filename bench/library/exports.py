"""``bench.export_run``: write a run's model for other tools."""

from __future__ import annotations

import warnings
from pathlib import Path

from bench.base.errors import BenchError, UnknownName
from bench.export import (
    FOLDERS,
    FORMATS,
    ModelExport,
    describe_export,
    push_model,
    write_model,
    write_scores,
)
from bench.library.arguments import PathLike, Plugins, as_path, path_text, use_plugins
from bench.library.results import Result
from bench.records.store import RunsFolder


def export_run(
    run: PathLike | Result,
    to: PathLike | None = None,
    format: str = "sentence-transformers",
    *,
    push: str | None = None,
    private: bool = False,
    replace: bool = False,
    unmerged: bool = False,
    runs: PathLike | None = None,
    offline: bool = False,
    plugins: Plugins = (),
    progress: bool = True,
) -> Path | str:
    """Write a finished run's model for other tools, with a model card, as ``bench export`` does.

        bench.export_run(result, "my-model")
        bench.export_run(result, push="me/my-model", private=True)

    ``run``: an id, its beginning, a folder or a result. ``to``: a new folder. ``format``:
    "sentence-transformers", "transformers" or "mteb"; "every-eval-ever" and "eval-results" write a
    file of scores. ``push``: send it to this repository of the hub instead, which needs a token
    that may write; ``private``: make a new repository private; ``replace``: replace its content.
    ``unmerged``: of a run with LoRA, write the adapter alone, as peft's files. ``runs``: the folder
    of the runs; None: $BENCH_RUNS, or ./runs. ``offline`` opens no connection.
    ``plugins``: the Python file or the class of the run's method. ``progress``: print a line about
    the export.

    Returns the path, or the address on the hub. The folder is loaded again and compared with the
    run's own vectors before it is put in its place. Raises BenchError; then nothing is written.
    """
    _check_format(format)
    if (to is None) == (push is None):
        raise BenchError("an export needs either to= or push=", 'to="FOLDER", or push="OWNER/NAME"')
    if push is None and (private or replace):
        raise BenchError("private= and replace= need push=", 'push="OWNER/NAME"')
    reference = str(run.folder) if isinstance(run, Result) else path_text(run, "run")
    store = RunsFolder(as_path(runs))
    target = as_path(to, "to")
    files = [Path(file) for file in use_plugins(plugins)]
    if format in FORMATS:
        if unmerged:
            raise BenchError(f"unmerged=: {format} is a file of scores", "leave unmerged= out")
        if target is None:
            raise BenchError(f"the format {format} is a file of scores", 'to="FILE"')
        write_scores(reference, target, format, store)
        return target
    wanted = ModelExport(
        reference, format, store, plugins=files, offline=offline, say=_warn, unmerged=unmerged
    )
    if target is not None:
        exported = write_model(wanted, target)
        _print_lines(describe_export(exported), progress)
        return target
    exported, pushed = push_model(wanted, str(push), private=private, replace=replace)
    _print_lines(describe_export(exported), progress)
    return pushed.url


def _check_format(name: str) -> None:
    formats = [*FOLDERS, *FORMATS]
    if name not in formats:
        raise UnknownName("format", name, formats, "of bench.export_run")


def _warn(text: str) -> None:
    warnings.warn(text.removeprefix("warning: "), stacklevel=4)


def _print_lines(lines: list[str], progress: bool) -> None:
    if progress:
        for line in lines:
            print(line)
