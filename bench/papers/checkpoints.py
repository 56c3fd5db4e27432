"""Checkpoints that authors released: which printed row each is, and how it is scored here without
any training.

``checkpoints.tsv`` of a paper's folder has a line for each. ``table``, ``method``, ``setting``,
``backbone`` and ``variant`` name a row of its ``results.tsv``, in the tables' own names, which has
its printed value. ``ours`` is the method that scores it, in the setting "none", with the recipe
values ``set``: pooling (``mlp`` is the head on CLS), or template; none if its folder says it.
``prefix`` is the length of its prefix. ``scored_in`` are the tables in which the paper took its row
from this checkpoint, and did not train.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.papers.printed import PrintedRow, ReferenceResult, line_of, results, rows
from bench.papers.reading import read_every


@dataclass(frozen=True)
class Checkpoint:
    """A model of the hub. The names of its printed row are the tables' own."""

    hub: str
    paper: str
    table: str
    method: str
    setting: str
    backbone: str
    variant: str
    # the method that scores it, and its recipe values
    ours: str
    set: Mapping[str, str]
    # the length of the prefix that it holds
    prefix: int | None
    # tables that took their row from it: "promcse:2"
    scored_in: tuple[str, ...]
    note: str

    @property
    def row(self) -> PrintedRow:
        """The printed row that it is. Raises ValueError if that is not one row of results.tsv."""
        cells = [
            cell
            for cell in results(self.method, paper=self.paper)
            if cell.table == self.table and self.made(cell)
        ]
        (row,) = rows(cells)
        return row

    @property
    def printed(self) -> str:
        """The average of its row, as printed."""
        average = self.row.average
        return "" if average is None else average.printed

    def is_scored_by(self, method: str, recipe: Mapping[str, object] | None) -> bool:
        """Return whether a run of a method with this recipe scores it as its authors do."""
        if method != self.ours:
            return False
        values = recipe or {}
        if not self.set:  # the folder says itself how it pools
            return values.get("pooling") is None
        return all(values.get(key) == value for key, value in self.set.items())

    def made(self, cell: ReferenceResult) -> bool:
        """Return whether a printed cell belongs to a model of this kind, scored after training.

        That is the same method, variant, setting and backbone; metrics that end in "-dev" are
        scores on the sets that choose the checkpoint of a training.
        """
        return (
            self.is_of(cell) and cell.variant == self.variant and not cell.metric.endswith("-dev")
        )

    def is_of(self, cell: ReferenceResult) -> bool:
        """Return whether a printed cell has its method, setting and backbone."""
        printed = (cell.method, cell.setting, cell.backbone)
        return printed == (self.method, self.setting, self.backbone)


_TEXTS = ("hub", "paper", "table", "method", "setting", "backbone", "variant", "ours", "note")


@cache
def released_checkpoints() -> tuple[Checkpoint, ...]:
    """Return all released checkpoints, in the file's order."""
    found = []
    for row in read_every("checkpoints.tsv"):
        values = {}
        if row["set"]:
            key, value = row["set"].split("=", 1)
            values[key] = value
        found.append(
            Checkpoint(
                **{name: row[name] for name in _TEXTS},
                set=values,
                prefix=int(row["prefix"]) if row["prefix"] else None,
                scored_in=tuple(row["scored_in"].split()),
            )
        )
    return tuple(found)


def scored_from(cell: ReferenceResult) -> Checkpoint | None:
    """Return the checkpoint that the paper itself took a printed cell from.

    None if the paper trained, or does not say so.
    """
    for checkpoint in released_checkpoints():
        if f"{cell.paper}:{cell.table}" in checkpoint.scored_in and checkpoint.made(cell):
            return checkpoint
    return None


def released_for(cell: ReferenceResult) -> Checkpoint | None:
    """Return the released checkpoint behind a published cell, or None.

    A row belongs to the authors' model if their own paper reports it or another paper copies it; a
    rerun by others is a different model.
    """
    source = scored_from(cell)
    if source is not None or line_of(cell) not in _lines_of_authors():
        return source
    for checkpoint in released_checkpoints():
        if checkpoint.made(cell):
            return checkpoint
    return None


@cache
def _lines_of_authors() -> frozenset[tuple[str, ...]]:
    """Return the printed lines that belong to the authors' own models."""
    return frozenset(
        line_of(cell) for cell in results() if cell.paper == cell.method or not cell.own_result
    )


@cache
def find_checkpoint(name: str) -> Checkpoint | None:
    """Return the listed checkpoint that a backbone's name means, or None.

    The name is owner/name, with or without @revision, or a folder of that name.
    """
    last = Path(name).name.partition("@")[0]
    for checkpoint in released_checkpoints():
        if Path(checkpoint.hub).name == last:
            return checkpoint
    return None
