"""What ``import bench`` offers: evaluate, train, compare_runs, load_runs, load_run, frame.

Each does what the verb of the same name does on the command line, with the same code, records and messages: a user's mistake is a
:class:`bench.base.errors.BenchError` whose text is one line, with a fix in its ``hint``.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench.base import devices
from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.base.paths import recorded_path, recorded_word
from bench.cli.planning import checked, plan_runs, prepare, reporting
from bench.cli.run import outcome
from bench.compare import tables
from bench.compare.senders import with_senders
from bench.compare.statistics.table import Table, summarise
from bench.data.fetching import offline_now
from bench.data.sets import DataFolder
from bench.method import Method, SilentReporter
from bench.models import (
    ServerOptions,
    check_model,
    check_prompts,
    find_model,
    plan_model,
)
from bench.models.identity import tell_apart
from bench.run.config import Plan, RunConfig, from_table
from bench.run.execute import execute
from bench.run.plan import PlannedRun, find_run
from bench.run.plan import load_run as load_method
from bench.run.recipes import plain_key
from bench.runs.copies import distinct_runs
from bench.runs.record import AVERAGE, RunRecord, Score
from bench.runs.store import COLUMNS, Run, RunsFolder, read_record, tidy_rows
from bench.score.suites import check_vectors, split_names, use_files
from bench.show.grid import as_html
from bench.show.tables.scores import HEADING, cell_rows, drawn, render, score_grid

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = [
    "LoadedRun",
    "Result",
    "Results",
    "Tables",
    "compare_runs",
    "evaluate",
    "frame",
    "load_run",
    "load_runs",
    "train",
]
PathLike = str | os.PathLike[str] | None


def evaluate(
    model: Any,
    suites: Sequence[str] | str = ("sts",),
    data: PathLike = None,
    name: str = "",
    *,
    prefix: str = "",
    prompts: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
    runs: PathLike = None,
    progress: bool = True,
    plugins: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> Result:
    """Score a finished encoder; its record goes to the runs folder, as with ``bench run``.

    ``model``: an object with ``encode(list of n str) -> (n, d) numbers``, a function that does so, a mapping of sentences to vectors, or
    what ``bench evaluate`` takes: a hub name, a folder, a run, ``vectors:FILE``, a server's address. ``suites``: names, as
    ``bench suites`` lists them. ``data``: the folder with evaluation data; None: $BENCH_DATA, or fetched. ``prefix`` is put before
    every sentence, or around it with "[X]"; ``prompts`` has others by task or suite. ``settings`` are recipe values of
    a folder or hub model ({"pooling": "mean"}); ``server`` is {"model": ..., "batch": ..., "dimensions": ..., "key_env": ..., "empty_text": ...}.
    ``plugins``: Python files with suites, or with the method of a run. ``options``: other fields of
    :class:`bench.run.config.RunConfig`: ``text``, ``device``, ``fresh``, ``offline``, ``allow_pickle``.

    The same call again repeats nothing, unless the object has changed: it is identified by its weights (a SentenceTransformer), or by its
    vectors of fixed sentences and of some thousand of those that are scored. Raises BenchError: no model, wrong vectors (shape, NaN, a dimension that changes), missing data.
    """
    config, store = _config(options, suites, data, plugins), RunsFolder(_path(runs))
    try:
        of_server = None if server is None else ServerOptions(**server)
    except TypeError:
        raise BenchError(
            f"server={dict(server or {})}: unknown keys",
            "model, batch, dimensions, key_env, empty_text",
        ) from None
    check_prompts(prompts or {}, config.suites)
    encoder = find_model(
        model,
        runs=store,
        name=name,
        prompt=prefix,
        prompts=prompts,
        values={key: str(value) for key, value in (settings or {}).items()},
        server=of_server,
    )
    is_named = isinstance(model, str | os.PathLike)
    label = recorded_word(encoder.label) if is_named else type(model).__name__
    named = f", name={name!r}" if name else ""
    config = replace(
        config,
        device=devices.choose_device(config.device),
        names=(name,) if name else (),
        command=f"bench.evaluate({label}, suites={list(config.suites)}{named})",
    )
    (run,) = prepare(partial(plan_model, encoder, config), config).runs
    if note := check_model(run):
        run = replace(run, notes=(note, *run.notes))
    run = tell_apart(run, encoder.store(store), config)
    return _execute([run], encoder.store(store), config, progress)[0]


def train(
    method: str,
    backbone: str = "builtin",
    corpus: PathLike = None,
    seeds: Sequence[int] = (42,),
    *,
    suites: Sequence[str] | str = ("sts",),
    data: PathLike = None,
    settings: Mapping[str, Any] | None = None,
    plugins: Sequence[str | os.PathLike[str]] = (),
    runs: PathLike = None,
    progress: bool = True,
    **options: Any,
) -> Results:
    """Train a method, one run for each seed, and score each: what ``bench run`` does. ``settings`` are recipe values ({"batch_size": 128}).

    ``options``: other fields of :class:`bench.run.config.RunConfig`, such as ``variant``, ``setting``, ``precision``, ``budget``,
    ``chunk``, ``text``, ``device``, ``fresh``, ``offline``. Finished runs are not repeated, interrupted ones resume.
    Raises BenchError for the first run that fails.
    """
    backbone, corpus = os.fspath(backbone), None if corpus is None else os.fspath(corpus)
    options |= {
        "methods": [method],
        "backbones": [backbone],
        "seeds": list(seeds),
        "corpus": corpus,
        "set": {key: str(value) for key, value in (settings or {}).items()},
        "command": _train_command(method, backbone, corpus, seeds),
    }
    plan = checked(Plan((_config(options, suites, data, plugins),)))
    return Results(_execute(plan_runs(plan).runs, RunsFolder(_path(runs)), plan.runs[0], progress))


def _train_command(method: str, backbone: str, corpus: str | None, seeds: Sequence[int]) -> str:
    """The call as a record holds it: files and folders relative to the working directory, or by their names."""
    known = None if corpus is None else recorded_path(corpus)
    return f"bench.train({method!r}, backbone={recorded_path(backbone)!r}, corpus={known!r}, seeds={list(seeds)})"


def _config(
    options: Mapping[str, Any],
    suites: Sequence[str] | str,
    data: PathLike,
    plugins: Sequence[str | os.PathLike[str]],
) -> RunConfig:
    """Raises BenchError for an unknown option or one of the wrong type, and for a folder without data."""
    folder = _path(data or os.environ.get("BENCH_DATA") or None)
    DataFolder(folder).check_root()
    table = {
        **options,
        "suites": list(split_names(suites if isinstance(suites, str) else ",".join(suites))),
        "data": folder and str(folder),
        "plugins": [str(file) for file in _files(plugins)],
        "offline": options.get("offline", False) or offline_now(),
    }
    try:
        return from_table(table)
    except ValueError as error:
        raise BenchError(f"an option has the wrong type: {error}") from None


def compare_runs(
    what: Any,
    baseline: str | Result | None = None,
    *,
    together: bool = False,
    runs: PathLike = None,
) -> Tables:
    """Runs side by side: means over seeds, intervals, which rows are better than the baseline, and which may be the best.

    ``what``: results, ids (or their beginnings), folders of runs, names of evaluated models; one of these, or several. ``baseline``: a
    method, a model's name, or one of the results. Everything else is as in ``bench compare`` (docs/statistics.md). Raises BenchError for
    a run that is missing or not finished and for two different runs of one id, UnknownName for an unknown baseline.
    """
    results = _distinct(_results(what, RunsFolder(_path(runs))))
    unfinished = [run for run, result in results.items() if result.record.status != "finished"]
    if unfinished or not results:
        raise BenchError(
            f"not finished: {', '.join(unfinished)}" if unfinished else "no run was named",
            "name finished runs",
        )
    if isinstance(baseline, Result):
        baseline = baseline.run_id if baseline.run_id in results else baseline.record.label
    return Tables(
        tables.compare_runs(
            with_senders([result.run for result in results.values()]),
            tables.TableOptions(baseline=baseline, together=together),
        )
    )


def load_runs(folder: PathLike | Sequence[str | os.PathLike[str]] = None) -> Results:
    """Every run in a runs folder (./runs, or $BENCH_RUNS) or in several, by id; a damaged record is omitted with a warning.

    Copies of a run count once. Raises BenchError if two different runs have one id.
    """
    folders = [folder] if folder is None or isinstance(folder, str | os.PathLike) else folder
    results = []
    for one in folders:
        store = RunsFolder(_path(one))
        records, damaged = store.records()
        for error in damaged:
            warnings.warn(f"left out, damaged: {error.message}", stacklevel=2)
        results += [Result(record, store.folder(record.run_id)) for record in records]
    return Results(_distinct(results).values())


def frame(folder: PathLike | Sequence[str | os.PathLike[str]] = None) -> pd.DataFrame:
    """Every run of a runs folder, or of several, as tidy rows, one for each run and score; see :func:`load_runs`. Needs pandas."""
    return load_runs(folder).frame()


def load_run(
    run: str | os.PathLike[str] | Result,
    *,
    runs: PathLike = None,
    device: str = "auto",
    offline: bool = False,
    plugins: Sequence[str | os.PathLike[str]] = (),
) -> LoadedRun:
    """The model of a finished run, by id, folder or result: ``load_run(...).encode([...])`` is (n, d) float32.

    Raises BenchError where there is no such run, or it has no model (it scored an object, vectors or a server).
    """
    trained = find_run(
        str(run.folder) if isinstance(run, Result) else os.fspath(run),
        RunsFolder(_path(runs)),
        _files(plugins),
    )
    for note in trained.notes:
        warnings.warn(note, stacklevel=2)
    return LoadedRun(
        Result(trained.record, trained.folder),
        load_method(trained, device=devices.choose_device(device), offline=offline),
    )


def _execute(
    planned: Sequence[PlannedRun], store: RunsFolder, config: RunConfig, progress: bool
) -> list[Result]:
    """Every run in turn; the error of the first that fails is raised, and the runs before it are kept."""
    for message in dict.fromkeys(error.message for run in planned for error in run.missing):
        warnings.warn(f"left out: {message}", stacklevel=3)
    results = []
    with reporting(False) if progress else nullcontext() as shown:
        if shown:
            shown.plan(planned)
        for i, run in enumerate(planned, 1):
            if shown:
                shown.start(run.run_id, i)
                for note in run.notes:
                    shown.note(note)
            record, worked = execute(run, store, config, shown or SilentReporter())
            if shown:
                shown.done(outcome(record, worked))
            results.append(Result(record, store.folder(record.run_id)))
    return results


def _files(plugins: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The plugin files, after registering their suites."""
    if files := [Path(plugin) for plugin in plugins]:
        use_files(files)
    return files


def _path(path: PathLike) -> Path | None:
    return None if path is None else Path(path).expanduser()


def _distinct(results: Sequence[Result]) -> dict[str, Result]:
    """Run id -> result, copies once. Raises BenchError if two different runs have one id."""
    runs = distinct_runs(result.run for result in results)
    return {run.record.run_id: Result(run.record, run.folder) for run in runs}


def _results(what: Any, store: RunsFolder) -> list[Result]:
    if isinstance(what, Result):
        return [what]
    if isinstance(what, str | os.PathLike):
        return [
            Result(read_record(file), file.parent) for file in store.record_files(os.fspath(what))
        ]
    return [result for one in what for result in _results(one, store)]


# --- what the public functions return: scores with a table, an HTML form and a pandas frame, all read from records ---

WIDTH = 120  # characters of a table where the terminal's width is unknown
STYLE = "<style>th, td { text-align: left } th.number, td.number { text-align: right }</style>"


@dataclass(frozen=True, repr=False)
class Tables:
    """Score tables: drawn by rich in a terminal, HTML in a notebook, text by ``print``."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield drawn(self.tables, options.max_width, console.encoding, styled=console.is_terminal)

    def __repr__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=WIDTH, highlight=False, markup=False, emoji=False).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n"))

    def _repr_html_(self) -> str:
        return STYLE + "\n".join(as_html(score_grid(table)) for table in self.tables)

    def markdown(self) -> str:
        """The tables as Markdown."""
        return render(self.tables, "md")

    def frame(self) -> pd.DataFrame:
        """One row for each cell, with interval, difference, p and verdict: the columns of ``bench compare --format csv``. Needs pandas."""
        import pandas as pd

        return pd.DataFrame(list(cell_rows(self.tables)), columns=list(HEADING))


class Results(tuple["Result", ...]):
    """Several runs, in order. ``results[0]`` is the first, ``results["RUN"]`` the one with this id or name."""

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return Results(super().__getitem__(which))
        if not isinstance(which, str):
            return super().__getitem__(which)
        for result in self:
            if which in (result.run_id, result.name):
                return result
        raise UnknownName("run", which, [result.run_id for result in self], "among these")

    def table(self) -> Tables:
        """The tables of these runs, in the papers' form: a row is a method, its value the mean over seeds. In a script
        ``print(results.table())`` shows them."""
        records = [result.record for result in _distinct(self).values()]
        return Tables(summarise(records, code=tables.CODE_HERE))

    def frame(self) -> pd.DataFrame:
        """One row for each score: run, name, method, ..., suite, task, protocol, text, metric, value, std, n, and costs. Needs pandas."""
        import pandas as pd

        runs = [result.run for result in _distinct(self).values()]
        return pd.DataFrame(tidy_rows(runs), columns=list(COLUMNS))

    def __repr__(self) -> str:
        return str(self.table()) or f"{len(self)} runs, none with a score"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, repr=False)
class Result:
    """One run: its record, and the folder with its predictions. ``result["STS-B"].value`` is a score on the papers' scale (x 100)."""

    record: RunRecord
    folder: Path

    @property
    def run(self) -> Run:
        return Run(self.record, self.folder)

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def name(self) -> str:
        """The model's name in tables."""
        return self.record.backbone_name

    @property
    def scores(self) -> tuple[Score, ...]:
        return self.record.scores

    @property
    def model(self) -> dict[str, Any]:
        """What the record says about a scored model: kind, dimension, normalisation, pooling, prompts, dtype. Empty for a method."""
        return dict(self.record.provenance.backbone.model)

    def __getitem__(self, task: str) -> Score:
        """The score of a task: "STS-B", or "sts/Avg." where several suites have one of that name; "STS-B@raw" for a text form, else
        the first. "stsb" is "STS-B", too: case and punctuation may be omitted. Raises UnknownName.
        """
        name, _, text = task.partition("@")
        named = [
            (label, score)
            for score in self.scores
            if text in ("", score.text)
            for label in (score.task, f"{score.suite}/{score.task}")
        ]
        for same in (str, plain_key):  # exact names first
            for label, score in named:
                if same(name) == same(label):
                    return score
        raise UnknownName(
            "task",
            task,
            [label for label, score in named if ("/" in label) == (score.task == AVERAGE)],
            f"among the scores of {self.run_id}",
        )

    def predictions(self, task: str) -> dict[str, np.ndarray]:
        """The predictions of every item of a task, named as for ``result[task]``: "prediction", "gold", "subset", each (N,), and other
        arrays of the suite, in the data's order. Raises UnknownName; DataMissing for an average, or where the file is missing."""
        score = self[task]
        if score.task == AVERAGE:
            raise DataMissing(
                f"{AVERAGE} is a mean over tasks: it has no predictions", "name a task"
            )
        return self.run.predictions(score.key)

    def table(self) -> Tables:
        """Its scores, one table for each suite, protocol and text form. In a script ``print(result.table())`` shows it."""
        return Results([self]).table()

    def frame(self) -> pd.DataFrame:
        """One row for each score, see :meth:`Results.frame`."""
        return Results([self]).frame()

    def __repr__(self) -> str:
        return f"{self.run_id} ({self.record.status})\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A finished run's model, ready to encode."""

    result: Result
    method: Method

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, d) float32, row i for sentence i: the vectors by which the run was scored."""
        if isinstance(sentences, str) or not len(sentences):
            raise BenchError("encode takes a list of sentences, at least one", 'encode(["..."])')
        texts = list(sentences)
        return check_vectors(self.method.encode(texts), texts, self.result.run_id)

    def __repr__(self) -> str:
        return f"{self.result.run_id}, ready to encode"
