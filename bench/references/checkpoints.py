"""Checkpoints that authors released: which printed row each is, and how it is scored here without any training.

``checkpoints.tsv`` has a line for each. ``paper``, ``table``, ``method``, ``setting``, ``backbone`` and ``variant`` name a row of
``results.tsv``, in the tables' own names, which has its printed value. ``ours`` is the method that scores it, in the setting "none",
with the recipe values ``set``: pooling (``mlp`` is the head on CLS), or template; none if its folder says it. ``prefix`` is the length
of the prefix that it holds. ``scored_in`` are the tables in which the paper took its row from this checkpoint, and did not train.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.references.printed import ReferenceResult, Row, line_of, results, rows
from bench.references.reading import HERE, read_rows


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
    ours: str
    set: Mapping[str, str]
    prefix: int | None
    scored_in: tuple[str, ...]  # "promcse:2"
    note: str

    @property
    def row(self) -> Row:
        """The printed row that it is. Raises LookupError where that is not one row of ``results.tsv``."""
        (row,) = rows(
            [
                cell
                for cell in results(self.method, paper=self.paper)
                if cell.table == self.table and self.made(cell)
            ]
        )
        return row

    @property
    def printed(self) -> str:
        """The average of its row, as printed."""
        return average.printed if (average := self.row.average) else ""

    def is_scored_by(self, method: str, recipe: Mapping[str, object] | None) -> bool:
        """Whether a run of a method with this recipe scores it as its authors do."""
        # without values here, the folder says itself how it pools
        return method == self.ours and all(
            (recipe or {}).get(key) == value
            for key, value in (self.set.items() or (("pooling", None),))
        )

    def made(self, cell: ReferenceResult) -> bool:
        """Whether a printed cell is of a model of this kind: the same method, variant, setting and backbone, scored after training
        (metrics that end in "-dev" are scores on the sets by which a training selects its checkpoint)."""
        return (cell.method, cell.variant, cell.setting, cell.backbone) == (
            self.method,
            self.variant,
            self.setting,
            self.backbone,
        ) and not cell.metric.endswith("-dev")


@cache
def released_checkpoints() -> tuple[Checkpoint, ...]:
    """All released released_checkpoints, in the file's order."""
    return tuple(
        Checkpoint(
            **{
                name: row[name]
                for name in (
                    "hub",
                    "paper",
                    "table",
                    "method",
                    "setting",
                    "backbone",
                    "variant",
                    "ours",
                    "note",
                )
            },
            set=dict([row["set"].split("=", 1)]) if row["set"] else {},
            prefix=int(row["prefix"]) if row["prefix"] else None,
            scored_in=tuple(row["scored_in"].split()),
        )
        for row in read_rows(HERE / "checkpoints.tsv")
    )


def scored_from(cell: ReferenceResult) -> Checkpoint | None:
    """The checkpoint that the paper itself took this printed cell from; None where it trained, or does not say so."""
    return next(
        (
            checkpoint
            for checkpoint in released_checkpoints()
            if f"{cell.paper}:{cell.table}" in checkpoint.scored_in and checkpoint.made(cell)
        ),
        None,
    )


def released_for(cell: ReferenceResult) -> Checkpoint | None:
    """The released checkpoint of the model that this printed cell is of; None where none is known.

    A line of print is of one model. It is the authors' own where their own paper prints it or another one quotes it; what another
    paper ran again is another training.
    """
    theirs = (
        checkpoint
        for checkpoint in released_checkpoints()
        if checkpoint.made(cell) and line_of(cell) in _theirs()
    )
    return scored_from(cell) or next(theirs, None)


@cache
def _theirs() -> frozenset[tuple[str, ...]]:
    return frozenset(
        line_of(cell) for cell in results() if cell.paper == cell.method or not cell.own_result
    )


def released_as(method: str, setting: str, backbone: str) -> Checkpoint | None:
    """The released checkpoint of a method without a variant in a setting on a backbone; None where none is known."""
    return next(
        (
            checkpoint
            for checkpoint in released_checkpoints()
            if (method, setting, backbone, "")
            == (checkpoint.method, checkpoint.setting, checkpoint.backbone, checkpoint.variant)
        ),
        None,
    )


@cache
def find_checkpoint(name: str) -> Checkpoint | None:
    """The listed checkpoint that a backbone's name means: owner/name, with or without @revision, or a folder of that name."""
    last = Path(name).name.partition("@")[0]
    return next(
        (checkpoint for checkpoint in released_checkpoints() if Path(checkpoint.hub).name == last),
        None,
    )
