"""Every table and figure of the papers, and how it is done again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bench.base.errors import BenchError, UnknownName
from bench.papers.printed import PAPERS, tables
from bench.papers.reading import HERE, read_rows

SCORES = "scores"
RECIPES = "recipes"
TEMPLATES = "templates"
RUNS = "runs"
FORMULA = "formula"
NO = "no"
"""How a part of a paper is done again: its scores next to ours; our recipes next to its
hyperparameters; our templates next to its own; a figure drawn from runs; one drawn from a formula;
not.
"""


@dataclass(frozen=True)
class PaperPart:
    """A table or figure of a paper."""

    paper: str
    part: str  # "table 6", "figure 2"
    shows: str
    how: str  # SCORES, RECIPES, TEMPLATES, RUNS, FORMULA or NO
    why: str  # of NO: the reason

    @property
    def short(self) -> str:
        """ "6" of a table, "figure2" of a figure."""
        kind, number = self.part.split()
        return number if kind == "table" else kind + number

    @property
    def name(self) -> str:
        return f"{self.paper}:{self.short}"

    @property
    def command(self) -> str:
        """The command that reruns it, or ""."""
        return "" if self.how == NO else f"bench reproduce {self.name}"


@dataclass(frozen=True)
class FigureRuns:
    """The runs that a figure is drawn from. ``series`` is as ``--set`` takes it."""

    part: PaperPart
    draws: str  # the kind of our figure: "ablation", "shift", ...
    backbones: tuple[str, ...]
    suites: tuple[str, ...]
    runs: tuple[tuple[str, str, str], ...]  # (setting, method, variant)
    series: Mapping[str, str]  # recipe key -> values; empty without one
    open: str  # questions that the sources leave open


@dataclass(frozen=True)
class PrintedPoint:
    """A point of a paper's figure that a source gives."""

    panel: str  # the task
    key: str
    x: float
    y: float
    read: str  # from what


@cache
def contents() -> tuple[PaperPart, ...]:
    """Return every table and figure of the papers, in the papers' order."""
    return tuple(PaperPart(**row) for row in read_rows(HERE / "contents.tsv"))


@cache
def figure_runs() -> tuple[FigureRuns, ...]:
    """Return the runs of every figure that is drawn from runs."""
    parts = {(part.paper, part.part): part for part in contents()}
    return tuple(
        FigureRuns(
            part=parts[row["paper"], row["part"]],
            draws=row["draws"],
            backbones=tuple(row["backbones"].split(",")),
            suites=tuple(row["suites"].split(",")),
            runs=tuple(_figure_run(text) for text in row["runs"].split()),
            series=dict([row["set"].split("=", 1)]) if row["set"] else {},
            open=row["open"],
        )
        for row in read_rows(HERE / "figures.tsv")
    )


def _figure_run(text: str) -> tuple[str, str, str]:
    """Split "supervised:simcse+eh" into (setting, method, variant)."""
    setting, _, name = text.partition(":")
    method, _, variant = name.partition("+")
    return setting, method, variant


def printed_points(part: PaperPart) -> tuple[PrintedPoint, ...]:
    """Return the points of a figure that a source gives; empty for most."""
    return tuple(
        PrintedPoint(row["panel"], row["key"], float(row["x"]), float(row["y"]), row["read"])
        for row in read_rows(HERE / "points.tsv")
        if (row["paper"], row["part"]) == (part.paper, part.part)
    )


def find_part(name: str) -> PaperPart:
    """Return the part that "promcse:6", "promcse:figure2" or "promcse:table 6" names.

    Raises UnknownName for one that is not listed.
    """
    parts = {part.name.lower(): part for part in contents()}
    key = re.sub(r"\s|(?<=:)table", "", name.lower())
    if key not in parts:
        raise UnknownName(
            "table or figure", name, parts, hint="bench reproduce: lists every table and figure"
        )
    return parts[key]


def split_name(name: str) -> tuple[str, str | None]:
    """Split "promcse:1" into ("promcse", "1"), and "promcse" into ("promcse", None).

    Raises BenchError for one that has no printed scores here.
    """
    paper, colon, table = name.partition(":")
    if paper not in PAPERS:
        raise UnknownName("paper", paper, PAPERS, "with published tables here", "bench references")
    if not colon or (paper, table) in tables():
        return paper, table if colon else None
    part = find_part(name)
    raise BenchError(
        f"{part.part} of {paper} has no scores that can be compared: it shows {part.shows}",
        part.command or part.why,
    )
