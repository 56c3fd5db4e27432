"""The page of one run: what it scored, how it was trained, what it cost, where it comes from, and how to repeat it.

Its drawings are points: the training curves, and how its cosines spread over pairs that people rated alike, as in PromCSE's Figure 3.
``parts.html`` has the frames. They are drawn by hand rather than by matplotlib: every run has them, and a thousand take a few seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.base.errors import BenchError
from bench.base.text import plural
from bench.board.board import FROM_SOURCE, Board, link, run_file
from bench.board.repeat import repeat
from bench.compare.answer import verdict_of
from bench.compare.formatting import score
from bench.compare.statistics.table import INCONCLUSIVE, Row, Table
from bench.compare.statistics.table import Cell as ScoreCell
from bench.records.arrays import NAME, has_predictions
from bench.records.record import RunRecord
from bench.records.store import Run, read_curve, series
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import form_text, render_template, run_link
from bench.show.tables import report
from bench.show.tables.scores import spread_text

UP = 2  # folders between a run's page and its version


def render(board: Board, run: Run) -> str:
    """The page ``runs/<run-id>/index.html`` as HTML, a function of the board, the run's curve and its predictions."""
    return render_template("run.html", board=board, up=UP, one=about(board, run, UP))


def about(board: Board, run: Run, up: int = 0) -> dict[str, Any]:
    """All about a run, as ``parts.html`` draws it on a page that lies ``up`` folders deep."""
    record = run.record
    return {
        "record": record,
        "by": board.senders.get(record.run_id),
        "described": board.described.get(record.method),
        "remarks": remarks(board, record.method),
        "heads": list(heads(board, record)),
        "again": repeat([record]),
        "files": files(board, run, up),
        "scores": [*score_grids(board, record), *seed_grids(board, record, up)],
        "curves": curves(run),
        "cosines": cosines(run),
        "recipe": report.recipe(record),
        "sections": [
            part
            for part in (
                report.facts_grid("training", report.training(record)),
                report.facts_grid("cost", report.cost(record)),
                report.overlap_grid(record.provenance.corpus.overlap),
                report.facts_grid(  # the version of code that was never released says nothing: its commit does
                    "provenance",
                    [fact for fact in report.provenance(record) if FROM_SOURCE not in fact],
                ),
            )
            if part.rows
        ],
    }


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[^.\s][^.\s][.!?])\s+", text.strip()) if part]


def remarks(board: Board, method: str) -> list[str]:
    """The sentences of the version's note that name a method: they stand at its rows and on its pages."""
    return [
        sentence
        for sentence in sentences(board.note or "")
        if re.search(rf"(?<![\w-]){re.escape(method)}(?![\w-])", sentence)
    ]


def heads(board: Board, record: RunRecord) -> Iterator[dict[str, str]]:
    """Of each table that it is in: its number in the column that ranks, the interval of its row, and the row's verdict."""
    for shown, row in board.rows_of(record.run_id):
        table, cell = shown.table, row.cells[-1]
        head = record.score(table.suite, table.head or "", table.protocol, table.text)
        if head is None or cell is None:
            continue
        spread = cell.spread
        yield {
            "name": table.suite,
            "task": f"{head.task}, {form_text(table)}",
            "value": score(head.value, cell.decimals),
            "around": f"{' to '.join(score(end, cell.decimals) for end in (spread.low, spread.high))} ({100 * spread.level:g} %) over {plural(len(cell.values), 'seed')}"
            if spread
            else "",
            "verdict": _verdict(table, row),
            "anchor": shown.anchor,
        }


def _verdict(table: Table, row: Row) -> str:
    """ "worse than simcse", "inconclusive against simcse, may be the best"; "" where the row was not compared."""
    found, best = verdict_of(row), "may be the best" * row.may_be_best
    word = "against" if found == INCONCLUSIVE else "than"
    return ", ".join(filter(None, (found and f"{found} {word} {table.baseline}", best)))


def files(board: Board, run: Run, up: int = 0) -> list[tuple[str, str, str]]:
    """(name, link, what it holds) of what can be downloaded."""
    if board.one_file:
        return []
    linked = [
        (name, link(run_file(run.record.run_id, name), up), what)
        for name, what in {"run.json": "the record", "curve.jsonl": "the training curve"}.items()
        if name == "run.json" or (run.folder / name).is_file()
    ]
    if has_predictions(run.folder):
        address = (
            board.predictions
            if re.match(r"https?://", board.predictions)
            else link(board.predictions, up)
        )
        linked.append((NAME, address, "predictions of all runs"))
    return linked


# --- tables: scores with what the row of all seeds has and what a paper printed; and what a record says ---


def score_grids(board: Board, record: RunRecord) -> Iterator[Grid]:
    """A table of each suite, protocol and text form; the sub-datasets of a task stand indented below it."""
    cells_of = {
        (table.suite, table.protocol, table.text): dict(zip(table.columns, row.cells, strict=True))
        for table, row in ((shown.table, row) for shown, row in board.rows_of(record.run_id))
    }
    for form, table in zip(report.by_form(record), report.score_grids(record), strict=True):
        rows, task, cells = [], "", cells_of.get(form, {})
        for line in table.rows:
            name, value, *rest = (one.text for one in line)
            task = task if name.startswith(" ") else name
            cell = cells.get(name)
            paper = score(cell.printed.value, cell.decimals) if cell and cell.printed else ""
            if name != f"  {task}":  # a sub-dataset that is the whole task would repeat it
                rows.append((name, value, over_seeds(cell), paper, *rest))
        yield grid(
            [
                *table.columns[:2],
                *(Column(name, right=True) for name in ("mean of seeds", "paper")),
                *table.columns[2:],
            ],
            rows,
            title=table.title,
        )


def seed_grids(board: Board, record: RunRecord, up: int) -> Iterator[Grid]:
    """The values of every seed of its rows, a column for each run; none where there is no other seed."""
    for shown, row in board.rows_of(record.run_id):
        if len(row.runs) < 2:
            continue
        columns = [
            Column(f"seed {seed}" + " (this)" * (run == record.run_id), right=True)
            for seed, run in zip(row.seeds, row.runs, strict=True)
        ]
        lines: list[list[Cell | str]] = [
            [task, *(score(value, cell.decimals) for value in cell.values)]
            for task, cell in zip(shown.table.columns, row.cells, strict=True)
            if cell is not None and len(cell.values) == len(row.runs)
        ]
        lines.append(["", *(Cell(text="run", link=_seed_link(board, run, up)) for run in row.runs)])
        yield grid(
            ["task", *columns], lines, title=f"{shown.table.suite}, {form_text(shown.table)}"
        )


def _seed_link(board: Board, run: str, up: int) -> str:
    """To the page of a run, or to its record where it has no page of its own."""
    if board.page_of[run] == run:
        return run_link(board, run, up)
    return "" if board.one_file else link(run_file(run, "run.json"), up)


def over_seeds(cell: ScoreCell | None) -> str:
    """ "60.85 ±1.58"; "" for one seed."""
    if cell is None or len(cell.values) < 2:
        return ""
    half = spread_text(cell)
    return score(cell.mean, cell.decimals) + (f" ±{half}" if half else "")


# --- training curves ---

CURVE = (256, 102)  # width and height of a curve, whose corner is at 0, 0
MOST = 240  # points of a line, about one per unit of its width
Points = Sequence[tuple[float, float]]


def curves(run: Run) -> list[dict[str, Any]]:
    """Loss and dev score over steps, as far as ``curve.jsonl`` has at least two points of them."""
    entries, done = read_curve(run.folder), run.record.training
    best: Points = (
        [(done.best_step, done.dev_score)]
        if done and done.best_step is not None and done.dev_score is not None
        else ()
    )
    parts: list[tuple[str, Points, str, Points]] = [
        ("loss", series(entries, "loss"), "{:.3g}", ()),
        ((done and done.dev_task) or "dev", series(entries, "dev_score"), "{:.2f}", best),
    ]
    return [curve(*part) for part in parts if len(part[1]) > 1]


def curve(title: str, points: Points, form: str, best: Points) -> dict[str, Any]:
    """The line through (step, value), thinned; ``best``: the checkpoint that was kept, if it is
    known."""
    steps, values = zip(*points, *best, strict=True)
    low, high, first, last = min(values), max(values), points[0][0], max(steps)

    def at(step: float, value: float) -> tuple[float, float]:
        x = (step - first) / ((last - first) or 1) * CURVE[0]
        return round(x, 1), round((high - value) / ((high - low) or 1) * CURVE[1], 1)

    thinned = [*points[: -1 : len(points) // MOST + 1], points[-1]]
    return {
        "title": title,
        "points": " ".join("{},{}".format(*at(*point)) for point in thinned),
        "low": form.format(low),
        "high": form.format(high),
        "first": f"step {first:,.0f}",
        "last": f"{last:,.0f}",
        "best": [(*at(*point), form.format(point[1])) for point in best],
    }


# --- cosines by level of human rating ---

RIDGE = (304, 46)  # width of a density, and height of the tallest, whose corner is at 0, 0
LEVELS = 5  # of gold values from 0 to 5; the last one includes its upper end
FEWEST = 5  # pairs of a level that has a density
SOURCES = (("sts", "STS-B"), ("geometry", "alignment"))
"""Suites and tasks whose predictions have the cosines of STS-B, in the order of preference."""


def density(values_N: np.ndarray, places_P: np.ndarray) -> np.ndarray:
    """(P,) Gaussian kernel density with Scott's width: that of scipy.stats.gaussian_kde, in a tenth of its time, for a thousand pages."""
    width = values_N.std(ddof=1) * len(values_N) ** -0.2
    kernels_PN: np.ndarray = np.exp(-0.5 * ((places_P[:, None] - values_N) / width) ** 2)
    return kernels_PN.mean(axis=1) / (width * math.sqrt(2 * math.pi))


def cosines(run: Run) -> dict[str, Any] | None:
    """A density for each level of human rating of the pairs of STS-B, the highest level first. None
    where the run has no predictions of them."""
    rated = next(filter(None, (rated_pairs(run, *source) for source in SOURCES)), None)
    if rated is None:
        return None
    cosine, gold = rated
    level = np.minimum(gold.astype(int), LEVELS - 1)
    groups = {
        k: one
        for k in reversed(range(LEVELS))
        if len(one := cosine[level == k]) >= FEWEST and one.std() > 1e-6
    }
    if len(groups) < 2:
        return None
    low = min(math.floor(5 * cosine.min()) / 5, 0.0)
    places = np.linspace(low, 1, RIDGE[0] // 4 + 1)
    densities = {k: density(values, places) for k, values in groups.items()}
    tallest = max(density.max() for density in densities.values()) / RIDGE[1]

    def x(value: float) -> float:
        return round(float((value - low) / (1 - low) * RIDGE[0]), 1)

    ridges = []
    for k, values in groups.items():
        heights = densities[k] / tallest
        mean = float(values.mean())
        ridges.append(
            {
                "label": f"{k} to {k + 1}",
                "mean": mean,
                "x": x(mean),
                "height": round(float(np.interp(mean, places, heights)), 1),
                "path": "L".join(
                    [f"{x(at)} {-height:.1f}" for at, height in zip(places, heights, strict=True)]
                ),
            }
        )
    return {
        "ridges": ridges,
        "ticks": [(x(tick / 5), f"{tick / 5:.1f}") for tick in range(round(5 * low), 6)],
    }


def rated_pairs(run: Run, suite: str, task: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(cosines (N,), gold scores (N,)); None where they are not stored, or are something
    else."""
    score = run.record.score(suite, task)
    try:
        arrays = run.predictions(score.key) if score else {}
        name = "cosine" if "cosine" in arrays else "prediction"
        cosine, gold = arrays[name].astype(float), arrays["gold"].astype(float)
    except (BenchError, KeyError, ValueError):
        return None
    if cosine.ndim != 1 or cosine.shape != gold.shape:
        return None
    inside = (abs(cosine) <= 1 + 1e-6) & (gold >= 0) & (gold <= LEVELS)  # false of nan
    return (cosine, gold) if inside.all() else None
