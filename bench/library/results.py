"""The results of ``import bench``: scores with a table, a plot, HTML and a pandas frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult

from bench.base.errors import DataMissing, UnknownName
from bench.base.markup import as_html
from bench.base.printing import draw_grids, drawn_text
from bench.compare.forms.data import HEADING, cell_rows
from bench.compare.forms.forms import format_tables
from bench.compare.forms.scores import score_grid
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table
from bench.compare.words.finding import find
from bench.library.plots import plot_tables
from bench.method.recipe_checks import plain_key
from bench.records.copies import distinct_runs
from bench.records.record import AVERAGE, RunRecord, Score
from bench.records.run import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes


WIDTH = 120
"""Characters of a table if the terminal's width is unknown."""

STYLE = "<style>th, td { text-align: left } th.number, td.number { text-align: right }</style>"


def print_to_text(drawn: Any) -> str:
    """Return what rich prints of an object, without colours and blanks at the ends of lines.

    In a notebook, too, although a console of rich would display it there instead of writing it.
    """
    console = Console(
        file=StringIO(),
        width=WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,
        force_terminal=False,
    )
    return drawn_text(drawn, console)


@dataclass(frozen=True, repr=False)
class Tables:
    """Score tables: drawn by rich in a terminal, HTML in a notebook, text by ``print``.

    Attributes:
        tables: The tables as data: rows, columns, cells.
    """

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield draw_grids(map(score_grid, self.tables), console, options.max_width)

    def __repr__(self) -> str:
        return print_to_text(self)

    def _repr_html_(self) -> str:
        return STYLE + "\n".join(as_html(score_grid(table)) for table in self.tables)

    @property
    def finding(self) -> str:
        """The first table in sentences: which rows beat the baseline, and which may be the best."""
        return find(self.tables).text

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        return format_tables(self.tables, "md")

    def frame(self) -> pd.DataFrame:
        """Return a row for each cell, with interval, difference, p and verdict.

        The columns are the same as in ``bench compare --format csv``.
        """
        import pandas as pd

        return pd.DataFrame(list(cell_rows(self.tables)), columns=list(HEADING))

    def plot(self, task: str | None = None, axes: Axes | None = None) -> list[Axes]:
        """Draw each table on axes of matplotlib: a point for each row, with its 95 % interval.

        Args:
            task: The column that is drawn. None: the one that ranks, such as the average, or all
                columns of a table of one row.
            axes: Draw one table on these axes of matplotlib. None: new ones.

        Returns:
            The axes, one for each table.

        Raises:
            BenchError: If matplotlib is not installed.
            UnknownName: For the task, with the nearest names.
        """
        return plot_tables(self.tables, task, axes)


class Results(tuple["Result", ...]):
    """Several runs, in order.

    ``results[0]`` is the first, ``results["RUN"]`` the one with this id or name.
    """

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
        """Return the tables of these runs: a row is a method, its value the mean over seeds.

        In a script ``print(results.table())`` shows them.
        """
        records = [result.record for result in distinct_results(self).values()]
        return Tables(summarise(records))

    def frame(self) -> pd.DataFrame:
        """Return a row for each score.

        Columns: run, name, method, ..., suite, task, protocol, text, metric, value, std, n, and
        costs.
        """
        import pandas as pd

        runs = [result.run for result in distinct_results(self).values()]
        return pd.DataFrame(tidy_rows(runs), columns=list(COLUMNS))

    def plot(self, task: str | None = None, axes: Axes | None = None) -> list[Axes]:
        """Draw the tables of these runs: a point for each method, with its 95 % interval.

        Args:
            task: The column that is drawn. None: the one that ranks, such as the average, or all
                columns of a table of one row.
            axes: Draw one table on these axes of matplotlib. None: new ones.

        Returns:
            The axes, one for each table.

        Raises:
            BenchError: If matplotlib is not installed.
            UnknownName: For the task, with the nearest names.
        """
        return self.table().plot(task, axes)

    def __repr__(self) -> str:
        return str(self.table()) or f"{len(self)} runs, none with a score"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, repr=False)
class Result:
    """One run: its record, and the folder with its predictions.

    ``result["STS-B"].value`` is a score on the papers' scale (x 100).

    Attributes:
        record: Everything that is known about the run, as run.json has it.
        folder: The run's folder.
        smaller: The same encoder with smaller vectors, if ``bench.evaluate`` was asked for
            dimensions or precisions. ``bench.compare_runs([result, *result.smaller],
            baseline=result)`` says what they cost.
    """

    record: RunRecord
    folder: Path
    smaller: Results = Results()

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
        """Facts about a scored model: kind, dimension, normalisation, pooling, prompts, dtype.

        Empty for a method.
        """
        return dict(self.record.provenance.backbone.model)

    def __getitem__(self, task: str) -> Score:
        """Return the score of a task.

        Case and punctuation may be omitted: "stsb" is "STS-B".

        Args:
            task: "STS-B", or "sts/Avg." if suites share the name. "stsb-languages/1/Avg." and
                "senteval-all-raw/1/STS-B" name a protocol; else it is the first.

        Returns:
            The score, with ``value`` (x 100), ``n`` items, ``std``, ``metric``, ``protocol`` and
            ``detail``.

        Raises:
            UnknownName: If the run has no such score.
        """
        task = str(task)
        named = []
        by_protocol = []
        for score in self.scores:
            named += [(score.task, score), (f"{score.suite}/{score.task}", score)]
            by_protocol.append((f"{score.protocol}/{score.task}", score))
        for same in (str, plain_key):  # exact names first
            for label, score in (*named, *by_protocol):
                if same(task) == same(label):
                    return score
        # averages are suggested with their suites, tasks without
        known = [label for label, score in named if ("/" in label) == (score.task == AVERAGE)]
        raise UnknownName("task", task, known, f"among the scores of {self.run_id}")

    def predictions(self, task: str) -> dict[str, np.ndarray]:
        """Read the predictions of every item of a task.

        Args:
            task: Named as for ``result[task]``.

        Returns:
            Arrays "prediction", "gold", "subset", each (N,), and others of the suite, in the data's
            order.

        Raises:
            UnknownName: If the run has no such score.
            DataMissing: For an average, or if the file is missing.
        """
        score = self[task]
        if score.task == AVERAGE:
            raise DataMissing(
                f"{AVERAGE} is a mean over tasks: it has no predictions", "name a task"
            )
        return self.run.predictions(score.key)

    def table(self) -> Tables:
        """Return the scores, one table for each suite and protocol.

        In a script ``print(result.table())`` shows them.
        """
        return Results([self]).table()

    def frame(self) -> pd.DataFrame:
        """Return a row for each score, with the columns of ``Results.frame``."""
        return Results([self]).frame()

    def plot(self, task: str | None = None, axes: Axes | None = None) -> list[Axes]:
        """Draw the scores: a point for each task.

        Args:
            task: The column that is drawn. None: the one that ranks, such as the average, or all
                columns of a table of one row.
            axes: Draw one table on these axes of matplotlib. None: new ones.

        Returns:
            The axes, one for each table.

        Raises:
            BenchError: If matplotlib is not installed.
            UnknownName: For the task, with the nearest names.
        """
        return self.table().plot(task, axes)

    def __repr__(self) -> str:
        return f"{self.run_id} ({self.record.status})\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def distinct_results(results: Sequence[Result]) -> dict[str, Result]:
    """Return run id -> result, copies once. Raises BenchError if two different runs have one id."""
    runs = distinct_runs(result.run for result in results)
    return {run.record.run_id: Result(run.record, run.folder) for run in runs}


FACTS = ("method", "variant", "setting", "backbone", "seed", "status")
SCORE = ("suite", "task", "protocol", "metric", "value", "std", "n")
COST = ("trainable_parameters", "train_seconds", "peak_memory_bytes", "encode_sentences_per_second")
COLUMNS = ("run", "name", *FACTS, *SCORE, *COST)


def tidy_rows(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return one mapping with the keys of ``COLUMNS`` for each run and score, in the runs' order.

    ``value`` has the papers' scale: correlation and accuracy x 100; a value that was not recorded
    is None.
    """
    rows = []
    for record, _ in runs:
        for score in record.scores:
            row: dict[str, Any] = {"run": record.run_id, "name": record.backbone_name}
            for keys, source in ((FACTS, record), (SCORE, score), (COST, record.cost)):
                for key in keys:
                    row[key] = getattr(source, key)
            rows.append(row)
    return rows
