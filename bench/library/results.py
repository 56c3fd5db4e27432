"""What the public functions return: scores with a table, an HTML form and a pandas frame. All of it is read from records."""

from __future__ import annotations

import html
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.table import Table
from bench.runs.record import AVERAGE, RunRecord, Score

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from bench.method import Method

WIDTH = 120  # characters of a table where nobody says how wide the terminal is


@dataclass(frozen=True)
class Tables:
    """Score tables to look at: drawn by rich in a terminal, HTML in a notebook, text by ``print``."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from bench.show.tables.terminal import draw

        yield draw(self.tables, options.max_width, console.encoding, styled=console.is_terminal)

    def __str__(self) -> str:
        from rich.console import Console

        drawn = io.StringIO()
        Console(file=drawn, width=WIDTH, highlight=False, markup=False, emoji=False).print(self)
        return "\n".join(line.rstrip() for line in drawn.getvalue().rstrip("\n").split("\n"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "\n".join(_html(table) for table in self.tables)

    def markdown(self) -> str:
        """The tables as Markdown."""
        from bench.show.tables import render

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
        found = [result for result in self if which in (result.run_id, result.name)] or [
            one for one in self if one.run_id.startswith(which)
        ]
        if not found:
            raise UnknownName("run", which, [result.run_id for result in self], "among these", begins=True)
        return found[0]

    def table(self) -> Tables:
        """The tables that these runs make, as the papers print them: a row is a method, its value the mean over seeds."""
        from bench.compare.statistics.summary import summarise

        return Tables(summarise([result.record for result in self]))

    def frame(self) -> pd.DataFrame:
        """One row a score: run, name, method, ..., suite, task, protocol, text, metric, value, std, n. Needs pandas."""
        pandas = _pandas()
        columns = [*FACTS, *SCORE]
        return pandas.DataFrame([row for result in self for row in result.rows()], columns=columns)

    def __repr__(self) -> str:
        return str(self.table()) if any(result.record.scores for result in self) else f"{len(self)} runs, none with a score"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


FACTS = ("run", "name", "method", "variant", "setting", "backbone", "seed", "status")
SCORE = ("suite", "task", "protocol", "text", "metric", "value", "std", "n")


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
        about = (self.record.provenance.backbone or {}).get("model")
        return dict(about) if isinstance(about, dict) else {}

    def __getitem__(self, task: str) -> Score:
        """The score of a task: "STS-B", or "sts/Avg." where several suites have one of that name; "STS-B@raw" in that text form.

        The first text form where none is named. Raises UnknownName.
        """
        what, _, text = task.partition("@")
        suite, slash, name = what.partition("/")
        for score in self.scores:
            if (score.task, score.suite) in ((what, score.suite), (name, suite) if slash else ("", "")) and text in (
                "",
                score.text,
            ):
                return score
        known = [f"{own_score.suite}/{AVERAGE}" if own_score.task == AVERAGE else own_score.task for own_score in self.scores]
        raise UnknownName("task", task, known, f"among the scores of {self.run_id}")

    def table(self) -> Tables:
        """Its scores, one table a suite, protocol and text form."""
        return Results([self]).table()

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a score, with the columns of :meth:`frame`."""
        record = self.record
        facts = (
            self.run_id,
            self.name,
            record.method,
            record.variant,
            record.setting,
            record.backbone,
            record.seed,
            record.status,
        )
        return [{**dict(zip(FACTS, facts, strict=True)), **{key: getattr(score, key) for key in SCORE}} for score in self.scores]

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
        from bench.score.suites.vectors import check_vectors

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
        raise BenchError("a frame needs pandas, which is not installed", "pip install pandas; or rows() for plain mappings") from None
    return pandas


def _html(table: Table) -> str:
    """One table for a notebook: no style but bold for the best."""
    from bench.compare.formatting import headline, score, spread, variant_words

    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("method", *table.columns))
    lines = [f"<tr>{head}</tr>"]
    for row in table.rows:
        words = variant_words(row, table)
        cells = [f'<td style="text-align:left">{html.escape(row.method + (f" ({words})" if words else ""))}</td>']
        for cell in row.cells:
            if cell is None:
                cells.append("<td></td>")
                continue
            beside = spread(cell)
            text = score(cell.mean, cell.decimals) + ("" if beside is None else f" ± {score(beside, cell.decimals)}")
            cells.append(f"<td>{f'<b>{text}</b>' if cell.mark == 'best' else text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in table.notes)
    return f"<div>{html.escape(headline(table))}</div><table>{''.join(lines)}</table>{notes}"
