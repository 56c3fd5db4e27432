"""Every table and figure of the papers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError, UnknownName
from bench.papers.printed import results
from bench.papers.reading import HERE, find_paper, read_every, read_tsv


@dataclass(frozen=True)
class PaperPart:
    """A table or figure of a paper."""

    paper: str
    part: str  # "table 6", "figure 2"
    shows: str
    why: str  # the reason why it cannot be run again or shown; "" if it can
    open: str  # questions that the sources leave open

    @property
    def short(self) -> str:
        """ "6" of a table, "figure2" of a figure."""
        kind, number = self.part.split()
        return number if kind == "table" else kind + number

    @property
    def name(self) -> str:
        return f"{self.paper}:{self.short}"

    @property
    def plan(self) -> Path | None:
        """The plan that runs it again; None if nothing is to be run, or if it cannot be."""
        file = HERE / self.paper / f"{self.short}.toml"
        return file if file.exists() else None

    @property
    def command(self) -> str:
        """The command that runs it again, or ""."""
        return f"bench run --paper {self.name}" if self.plan else ""

    @property
    def prints_scores(self) -> bool:
        """True for a table of scores."""
        return bool(results(paper=self.paper, table=self.short))

    @property
    def words(self) -> list[dict[str, str]]:
        """The rows of a table of words, such as templates; empty for any other part."""
        file = HERE / self.paper / f"{self.short}.tsv"
        return read_tsv(file) if file.exists() else []


PART = re.compile(r"(table|figure) \S+")


@cache
def contents() -> tuple[PaperPart, ...]:
    """Return every table and figure of the papers, in the papers' order.

    Raises BenchError for a part with another name than "table 1" or "figure 1".
    """
    found = []
    for row in read_every("contents.tsv"):
        part = PaperPart(**row)
        if not PART.fullmatch(part.part):
            raise BenchError(
                f"{HERE / part.paper / 'contents.tsv'}: '{part.part}' is no table or figure",
                'write "table 1" or "figure 1"',
            )
        found.append(part)
    return tuple(found)


@dataclass(frozen=True)
class PrintedPoint:
    """A point of a paper's figure that a source gives."""

    paper: str
    part: str  # "figure 2"
    # the run that it belongs to
    setting: str
    method: str
    variant: str
    backbone: str
    panel: str  # the task
    key: str  # the recipe key of the x axis
    x: float
    y: float
    read: str  # from what


@cache
def printed_points() -> tuple[PrintedPoint, ...]:
    """Return every point that a source gives; most figures have none."""
    found = []
    for row in read_every("points.tsv"):
        x, y = float(row.pop("x")), float(row.pop("y"))
        found.append(PrintedPoint(x=x, y=y, **row))
    return tuple(found)


def find_part(name: str) -> PaperPart:
    """Return the part that "promcse:6", "promcse:figure2" or "promcse:table 6" names.

    Raises UnknownName for a paper or a part that is not listed.
    """
    paper = find_paper(name.lower().partition(":")[0]).name
    parts = {part.name.lower(): part for part in contents()}
    key = re.sub(r"\s|(?<=:)table", "", name.lower())
    if key not in parts:
        of_paper = [part.name for part in contents() if part.paper == paper]
        raise UnknownName("table or figure", name, of_paper, hint=f"bench papers {paper}")
    return parts[key]
