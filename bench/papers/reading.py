"""The files of the papers: a folder per paper, with tables of cells between tabs.

======================  ===========================================================================
paper.toml              ``citation``, ``year``, ``arxiv`` if it is there
contents.tsv            a line per table and figure: its subject; why it cannot be run again
results.tsv             a line per printed row of scores
hyperparameters.tsv     a line per printed hyperparameter
points.tsv              points of figures that a source gives
claims.tsv              a line per claim of the text, with the comparison that tests it
trained.tsv             shares of trained weights that a text claims, for the remarks
checkpoints.tsv         models that the authors released
ours.tsv                printed methods that have another name here, or none
remarks.tsv             contradictions in the tables (made by ``tools/make_remarks.py``)
NUMBER.toml             the plan that runs a table again; ``figureNUMBER.toml`` a figure
NUMBER.tsv              a table of words, such as templates
======================  ===========================================================================

Only ``paper.toml`` and ``contents.tsv`` are needed. docs/papers.md adds one.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError, UnknownName

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Paper:
    """A paper with a folder here. ``name`` is the folder's."""

    name: str
    citation: str
    year: int
    # "2203.06875"; "" for a paper that is not at arXiv
    arxiv: str = ""

    @property
    def folder(self) -> Path:
        return HERE / self.name


@cache
def papers() -> Mapping[str, Paper]:
    """Return the papers by name: first the papers with recorded claims, then the older first.

    Raises BenchError for a folder without a citation or a year.
    """
    found = []
    for file in HERE.glob("*/paper.toml"):
        facts = tomllib.loads(file.read_text(encoding="utf-8"))
        try:
            found.append(Paper(name=file.parent.name, **facts))
        except TypeError:
            raise BenchError(
                f"{file}: expected citation, year and, if there is one, arxiv; found "
                f"{', '.join(facts)}"
            ) from None
    found.sort(key=lambda paper: (not _has_claims(paper), paper.year, paper.name))
    return {paper.name: paper for paper in found}


def find_paper(name: str) -> Paper:
    """Return the paper of that name. Raises UnknownName."""
    if name not in papers():
        raise UnknownName("paper", name, papers(), hint="bench papers")
    return papers()[name]


def _has_claims(paper: Paper) -> bool:
    return (paper.folder / "claims.tsv").exists()


def read_every(name: str) -> list[dict[str, str]]:
    """Return the rows of the tables of that name in all folders, paper after paper, each with its
    ``paper``."""
    found = []
    for paper in papers().values():
        file = paper.folder / name
        if file.exists():
            found += [{"paper": paper.name, **row} for row in read_tsv(file)]
    return found


def read_tsv(file: Path) -> list[dict[str, str]]:
    """Return the rows of a table with tabs and a header; nothing is quoted.

    Raises BenchError, naming the line, for one with too many or too few cells.
    """
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise BenchError(f"{file}, line {number}: not as many cells as the first line has")
    return rows


def read_scores(row: Mapping[str, str]) -> Iterator[tuple[str, str, float, float | None]]:
    """Yield each score of a printed row: task, value as printed, value, standard deviation or None.

    Raises BenchError, naming the row.
    """
    for score in row["scores"].split(" "):
        try:
            task, printed = score.split("=")
            value, *std = printed.split("±")
            number = float(value)
            spread = float(std[0]) if std else None
        except ValueError:
            raise BenchError(
                f"{row.get('paper', 'tools/quoted.tsv')}, results.tsv: '{score}' in the row "
                f"'{row['label']}' is not a score"
            ) from None
        yield task, value, number, spread
