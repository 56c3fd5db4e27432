"""The papers' tables of hyperparameters: a line per cell of
``hyperparameters.tsv``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from bench.papers.parts import PaperPart
from bench.papers.reading import read_every


@dataclass(frozen=True)
class PrintedHyperparameter:
    """A cell of a paper's table of hyperparameters."""

    paper: str
    table: str
    setting: str
    backbone: str
    key: str  # the recipe key that means it
    printed: str
    source: str  # as recipes name it: "PromCSE Table 6"

    @property
    def value(self) -> bool | int | float:
        """The cell as a recipe has it: "3e-2" is 0.03, "True" is True."""
        value: bool | int | float = json.loads(self.printed.lower())
        return value


@cache
def hyperparameters() -> tuple[PrintedHyperparameter, ...]:
    """Return every cell, in the papers' order."""
    return tuple(PrintedHyperparameter(**row) for row in read_every("hyperparameters.tsv"))


def printed_hyperparameters(part: PaperPart) -> tuple[PrintedHyperparameter, ...]:
    """Return the cells of a table; empty for one that prints no hyperparameters."""
    place = (part.paper, part.short)
    return tuple(cell for cell in hyperparameters() if (cell.paper, cell.table) == place)
