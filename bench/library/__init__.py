"""What ``import bench`` offers: evaluate, train, compare_runs, load_runs, load_run.

Each does what the verb of its name does on the command line, with the same code, the same records and the same messages: what a user
did wrong is a :class:`bench.base.errors.BenchError` whose text is one line, with what to do in its ``hint``.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bench.base.errors import BenchError, DataMissing, UnknownName
from bench.compare.statistics.table import Table
from bench.run.recipes import plain_key
from bench.runs import frame as tidy
from bench.runs.record import AVERAGE, RunRecord, Score
from bench.runs.run import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from bench.method import Method
    from bench.run.config import RunConfig
    from bench.run.plan import PlannedRun
    from bench.runs.store import RunsFolder

__all__ = [
    "Comparison",
    "LoadedRun",
    "Result",
    "Results",
    "Tables",
    "compare_runs",
    "evaluate",
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
    text: str = "tokenised",
    runs: PathLike = None,
    device: str = "auto",
    fresh: bool = False,
    offline: bool = False,
    progress: bool = True,
    plugins: Sequence[str | os.PathLike[str]] = (),
) -> Result:
    """Score a finished encoder; the record stands in the runs folder, as that of ``bench run``.

    ``model``: an object with ``encode(list of n str) -> (n, d) numbers``, a function that does so, a mapping of sentences to vectors, or
    what ``bench evaluate`` takes: a hub name, a folder, a run, ``vectors:FILE``, a server's address. ``suites``: names, as
    ``bench suites`` lists them. ``data``: the folder with evaluation data; $BENCH_DATA, or fetched, where it is None. ``prefix`` stands
    before every sentence, or around it where it has "[X]"; ``prompts`` has others by task or suite. ``settings`` are recipe values of
    a folder or hub model ({"pooling": "mean"}); ``server`` is {"model": ..., "batch": ..., "dimensions": ..., "key_env": ...}.
    ``plugins``: Python files with suites, or with the method of a run.

    The same call again repeats nothing: an object is known by its weights (a SentenceTransformer) or by its answers to fixed sentences.
    Raises BenchError: no model, wrong vectors (shape, NaN, a dimension that changes), data that is not here.
    """
    from functools import partial

    from bench.base import devices
    from bench.cli.options import comma_list
    from bench.cli.planning import prepare
    from bench.cli.progress import downloads
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run.config import RunConfig
    from bench.run.models import (
        ServerOptions,
        check_model,
        check_prompts,
        find_model,
        plan_model,
    )

    files, folder, store = _files(plugins), _path(data, "BENCH_DATA"), _store(runs)
    DataFolder(folder).check_root()
    try:
        options = None if server is None else ServerOptions(**server)
    except TypeError:
        raise BenchError(
            f"server={dict(server or {})}: unknown keys", "model, batch, dimensions, key_env"
        ) from None
    config = RunConfig(
        suites=_suites(suites),
        text=",".join(comma_list(text)),
        names=(name,) if name else (),
        plugins=tuple(map(str, files)),
        device=devices.choose_device(device),
        fresh=fresh,
        offline=offline or offline_now(),
        data=None if folder is None else str(folder),
    )
    check_prompts(prompts or {}, config.suites)
    found = find_model(
        model,
        runs=store,
        name=name,
        prompt=prefix,
        prompts=prompts,
        values={k: str(v) for k, v in (settings or {}).items()},
        server=options,
    )
    (run,) = prepare(partial(plan_model, found, config), config, downloads()).runs
    label = found.label if isinstance(model, str | os.PathLike) else type(model).__name__
    named = f", name={name!r}" if name else ""
    command = f"bench.evaluate({label}, suites={list(config.suites)}{named})"
    config = replace(config, command=command)
    return _execute([run], found.store(store), config, progress, check_model(run))[0]


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
    """Train a method, one run a seed, and score each: what ``bench run`` does. ``settings`` are recipe values ({"batch_size": 128}).

    ``options``: other fields of :class:`bench.run.config.RunConfig`, such as ``variant``, ``setting``, ``precision``, ``budget``,
    ``chunk``, ``text``, ``device``, ``fresh``, ``offline``. What is finished is not repeated, what was interrupted goes on.
    Raises BenchError, for the first run that fails.
    """
    from functools import partial

    from bench.cli.planning import prepare
    from bench.cli.progress import downloads
    from bench.data.fetching import offline_now
    from bench.data.sets import DataFolder
    from bench.run import plan
    from bench.run.config import from_table
    from bench.run.plugins import discover
    from bench.run.settle import check_chunks, settled

    backbone, corpus = os.fspath(backbone), None if corpus is None else os.fspath(corpus)
    files, folder = _files(plugins), _path(data, "BENCH_DATA")
    table = options | {
        "methods": [method],
        "backbones": [backbone],
        "seeds": list(seeds),
        "suites": list(_suites(suites)),
        "set": {key: str(value) for key, value in (settings or {}).items()},
        "plugins": [str(file) for file in files],
        "command": f"bench.train({method!r}, backbone={backbone!r}, corpus={corpus!r}, seeds={list(seeds)})",
    }
    table |= {"corpus": corpus, "data": None if folder is None else str(folder)}
    try:
        config = from_table(table)
    except ValueError as error:
        raise BenchError(f"bench.train: {error}") from None
    config = replace(config, offline=config.offline or offline_now())
    plan.check_config(config)
    DataFolder(folder).check_root()
    config = settled(config)
    planned = prepare(partial(plan.make, config, discover(files)), config, downloads())
    check_chunks(planned.runs, config.chunk)
    return Results(_execute(planned.runs, _store(runs), config, progress))


def compare_runs(
    what: Sequence[Result | Results | str | os.PathLike[str]]
    | Results
    | Result
    | str
    | os.PathLike[str],
    baseline: str | Result | None = None,
    *,
    together: bool = False,
    statistics: str = "auto",
    runs: PathLike = None,
) -> Comparison:
    """Runs side by side, with intervals, which rows are better than the baseline, and which may be the best.

    ``what``: results, or ids (their beginnings) and folders of runs, or names of evaluated models; or one of these. ``baseline``: a method, a model's name, or one of the results. The rest is as
    ``bench compare`` has it. Raises BenchError for a run that is not there or not finished, UnknownName for a baseline that is none.
    """
    from bench.compare.tables import TableOptions
    from bench.compare.tables import compare_runs as tables_of

    store = _store(runs)
    results: dict[str, Result] = {}
    for given in [what] if isinstance(what, Result | str | os.PathLike) else what:
        if isinstance(given, Result):
            results[given.run_id] = given
        else:
            results |= {
                result.run_id: result
                for result in (
                    given if isinstance(given, Results) else _named(os.fspath(given), store)
                )
            }
    unfinished = [
        result.run_id for result in results.values() if result.record.status != "finished"
    ]
    if unfinished or not results:
        raise BenchError(
            f"not finished: {', '.join(unfinished)}"
            if unfinished
            else "there is nothing to compare",
            "finished runs",
        )

    def compared(name: str | None) -> Comparison:
        options = TableOptions(
            baseline=name,
            together=together,
            statistics=statistics,
        )
        return Comparison(
            tables_of([Run(result.record, result.folder) for result in results.values()], options)
        )

    if not isinstance(baseline, Result):
        return compared(baseline)
    record = baseline.record
    with contextlib.suppress(UnknownName):  # its run stands in no row
        return compared(record.run_id)
    return compared(record.label)


def load_runs(folder: PathLike = None) -> Results:
    """Every run in a runs folder (./runs, or $BENCH_RUNS), by id; a record that is damaged is told of and left out."""
    store = _store(folder)
    records, damaged = store.records()
    for error in damaged:
        warnings.warn(f"left out, damaged: {error.message}", stacklevel=2)
    return Results([Result(record, store.folder(record.run_id)) for record in records])


def frame(folder: PathLike = None) -> pd.DataFrame:
    """Every run of a runs folder as tidy rows, one for each run and score. Needs pandas."""
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

    Raises BenchError where there is no such run, or it kept no model (an object, vectors or a server were scored).
    """
    from bench.base import devices
    from bench.run import trained_run

    reference = str(run.folder) if isinstance(run, Result) else os.fspath(run)
    trained = trained_run.find_run(reference, _store(runs), [Path(plugin) for plugin in plugins])
    for note in trained.notes:
        warnings.warn(note, stacklevel=2)
    method = trained_run.load_run(trained, device=devices.choose_device(device), offline=offline)
    return LoadedRun(Result(trained.record, trained.folder), method)


def _execute(
    planned: Sequence[PlannedRun],
    store: RunsFolder,
    config: RunConfig,
    progress: bool,
    first: str | None = None,
) -> list[Result]:
    """Every run in turn; the first that fails is raised, and what was done before it stays."""
    from bench.cli.progress import reporting
    from bench.cli.run_all import outcome
    from bench.method import SilentReporter
    from bench.run.executors.local import execute

    for message in dict.fromkeys(error.message for run in planned for error in run.missing):
        warnings.warn(f"left out: {message}", stacklevel=3)
    if not progress:
        return [
            Result(execute(run, store, config, SilentReporter())[0], store.folder(run.run_id))
            for run in planned
        ]
    results = []
    with reporting(False) as shown:
        shown.plan(planned)
        for i, run in enumerate(planned, 1):
            shown.start(run.run_id, i)
            for note in ((first,) if first and i == 1 else ()) + run.notes:
                shown.note(note)
            record, worked = execute(run, store, config, shown)
            shown.done(outcome(record, worked))
            results.append(Result(record, store.folder(record.run_id)))
    return results


def _suites(suites: Sequence[str] | str) -> tuple[str, ...]:
    from bench.score.suites import split_names

    return split_names(suites if isinstance(suites, str) else ",".join(suites))


def _files(plugins: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The plugin files; their suites are known from now on."""
    from bench.score.suites import use_files

    files = [Path(plugin) for plugin in plugins]
    if files:
        use_files(files)
    return files


def _path(place: PathLike, variable: str) -> Path | None:
    named = os.environ.get(variable) if place is None else os.fspath(place)
    return Path(named).expanduser() if named else None


def _store(place: PathLike) -> RunsFolder:
    from bench.runs.store import RunsFolder

    return RunsFolder(_path(place, "BENCH_RUNS"))


def _named(reference: str, store: RunsFolder) -> list[Result]:
    from bench.runs.store import read_record

    return [Result(read_record(file), file.parent) for file in store.record_files(reference)]


# --- what the public functions return: scores with a table, an HTML form and a pandas frame. All of it is read from records ---

WIDTH = 120  # characters of a table where nobody says how wide the terminal is


@dataclass(frozen=True)
class Tables:
    """Score tables to look at: drawn by rich in a terminal, HTML in a notebook, text by ``print``."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from bench.show.tables.scores import drawn

        yield drawn(self.tables, options.max_width, console.encoding, styled=console.is_terminal)

    def __str__(self) -> str:
        from rich.console import Console

        drawn = io.StringIO()
        Console(file=drawn, width=WIDTH, highlight=False, markup=False, emoji=False).print(self)
        return "\n".join(line.rstrip() for line in drawn.getvalue().rstrip("\n").split("\n"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from bench.show.grid import as_html
        from bench.show.tables.scores import score_grid

        return "\n".join(as_html(score_grid(table)) for table in self.tables)

    def markdown(self) -> str:
        """The tables as Markdown."""
        from bench.show.tables.scores import render

        return render(self.tables, "md")


class Results(Sequence["Result"]):
    """Several runs, in their order. ``results[0]`` is the first, ``results["RUN"]`` the one whose id, or name, that is."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = tuple(results)

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, which: int | str) -> Result: ...
    @overload
    def __getitem__(self, which: slice) -> Results: ...
    def __getitem__(self, which: int | str | slice) -> Result | Results:
        if isinstance(which, slice):
            return Results(self._results[which])
        if isinstance(which, int):
            return self._results[which]
        named = [result for result in self if which in (result.run_id, result.name)]
        named += [result for result in self if result.run_id.startswith(which)]
        if not named:
            raise UnknownName(
                "run", which, [result.run_id for result in self], "among these", begins=True
            )
        return named[0]

    def table(self) -> Tables:
        """The tables that these runs make, as the papers print them: a row is a method, its value the mean over seeds. In a script
        ``print(results.table())`` shows them."""
        from bench.compare.statistics.summary import summarise

        return Tables(summarise([result.record for result in self]))

    def frame(self) -> pd.DataFrame:
        """One row a score: run, name, method, ..., suite, task, protocol, text, metric, value, std, n, and what it cost. Needs pandas."""
        rows = tidy.frame(Run(result.record, result.folder) for result in self)
        return _pandas().DataFrame(rows, columns=list(tidy.COLUMNS))

    def __repr__(self) -> str:
        return (
            str(self.table())
            if any(result.record.scores for result in self)
            else f"{len(self)} runs, none with a score"
        )

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Result:
    """One run: its record, and the folder with its predictions. ``result["STS-B"].value`` is a score on the papers' scale (x 100)."""

    record: RunRecord
    folder: Path

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def name(self) -> str:
        """What tables call the model."""
        return self.record.backbone_name

    @property
    def scores(self) -> tuple[Score, ...]:
        return self.record.scores

    @property
    def model(self) -> dict[str, Any]:
        """What the record says of the model that was scored: kind, dimension, normalisation, pooling, prompts, dtype. Empty of a method."""
        return dict(self.record.provenance.backbone.model)

    def __getitem__(self, task: str) -> Score:
        """The score of a task: "STS-B", or "sts/Avg." where several suites have one of that name; "STS-B@raw" in that text form.

        "stsb" is "STS-B", too: case and punctuation may be left out. The first text form where none is named. Raises UnknownName.
        """
        what, _, text = task.partition("@")
        scores = [score for score in self.scores if text in ("", score.text)]
        for same in (str, plain_key):  # a name as it is before one that is only written differently
            for score in scores:
                if same(what) in (same(score.task), same(f"{score.suite}/{score.task}")):
                    return score
        known = [
            f"{score.suite}/{AVERAGE}" if score.task == AVERAGE else score.task
            for score in self.scores
        ]
        raise UnknownName("task", task, known, f"among the scores of {self.run_id}")

    def predictions(self, task: str) -> dict[str, np.ndarray]:
        """What the run said of every item of a task, named as for ``result[task]``: "prediction", "gold", "subset", each (N,), and what
        else the suite keeps, in the data's order. Raises UnknownName; DataMissing for an average, or where the file is gone."""
        from bench.runs.store import RunsFolder

        score, folder = self[task], self.folder.resolve()
        if score.task == AVERAGE:
            raise DataMissing(
                f"{AVERAGE} is a mean over tasks and has no predictions",
                "the name of a task: result.predictions(...)",
            )
        return RunsFolder(folder.parent).read_predictions(
            folder.name, score.task, score.text, score.suite
        )

    def table(self) -> Tables:
        """Its scores, one table a suite, protocol and text form. In a script ``print(result.table())`` shows it."""
        return Results([self]).table()

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a score, with the columns of :meth:`frame`."""
        return tidy.frame([Run(self.record, self.folder)])

    def frame(self) -> pd.DataFrame:
        """One row a score, see :meth:`Results.frame`."""
        return Results([self]).frame()

    def __repr__(self) -> str:
        return f"{self.run_id} ({self.record.status})\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class Comparison:
    """Runs side by side: means over seeds, 95 % intervals, and what is better than the baseline (docs/statistics.md)."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self.tables = tables

    def table(self) -> Tables:
        return Tables(self.tables)

    def frame(self) -> pd.DataFrame:
        """One row a cell, with interval, difference, p and verdict: the columns of ``bench compare --format csv``."""
        from bench.show.tables.data import HEADING, cell_rows

        return _pandas().DataFrame(list(cell_rows(self.tables)), columns=list(HEADING))

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class LoadedRun:
    """A finished run's model, ready to encode."""

    def __init__(self, result: Result, method: Method) -> None:
        self.result, self._method = result, method

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, d) float32, row i for sentence i: the vectors that the run was scored with."""
        from bench.score.suites import check_vectors

        if isinstance(sentences, str):
            raise BenchError("encode takes a list of sentences, not one string", 'encode(["..."])')
        texts = list(sentences)
        if not texts:
            raise BenchError("there is no sentence to encode", 'encode(["..."])')
        return check_vectors(self._method.encode(texts), texts, self.result.run_id)

    def __repr__(self) -> str:
        return f"{self.result.run_id}, ready to encode"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise BenchError(
            "a frame needs pandas, which is not installed",
            "pip install pandas; or rows() for plain mappings",
        ) from None
    return pandas
