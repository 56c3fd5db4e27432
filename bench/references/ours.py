"""Which run of the harness a printed row means, and the printed number that belongs to a run.

``ours.tsv`` has a line for every printed (method, variant) that is called otherwise here, or that is no method here at all; all
others have the same name on both sides. ``*`` stands for the number in a variant's name, as in "eh,m=0.1". Before a method's name may
stand a setting: "supervised:consert" is printed in that setting alone; on our side it is the one that is run. Behind it may stand a
backbone: "unsupervised:dcpcse@roberta-base" is called otherwise on that backbone alone, because its recipe there is another one. ``set``
of such a line is what the recipe has there; by it a run is known that was made under the printed name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.base.errors import BenchError
from bench.references import HERE, WEIGHTED, ReferenceResult, Row, read_rows, results, rows

FILE = HERE / "ours.tsv"
DEV = (
    "spearman-dev"  # of STS-B dev: no suite's score, but what a training selects its checkpoint by
)
SUITES = {
    "spearman": "sts",
    DEV: "sts",
    "spearman-bootstrap": "cxc",
    "accuracy": "transfer",
    "accuracy-dev": "transfer",
    "clustering-accuracy": "clustering",
    "alignment": "geometry",
    "uniformity": "geometry",
}
"""The suite that a printed metric belongs to."""


@dataclass(frozen=True)
class Meaning:
    """A run of the harness. ``why_not`` is said where there is none: then ``method`` is empty."""

    method: str
    variant: str = ""
    setting: str = ""  # in which it is run, where that is not the printed one
    set: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe values that the print names: --set
    on: str = ""  # the method whose run is its backbone
    on_setting: str = ""  # in which that one is run; "": the first that it has
    holds: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe values that tell this run from one of the other name
    uses: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe key -> the method whose run is its value
    why_not: str = ""
    doubt: str = ""  # what the print leaves open

    @property
    def name(self) -> str:
        """With the variant: "promcse+eh"; empty where no run is meant."""
        return f"{self.method}+{self.variant}" if self.variant else self.method


@cache
def meaning(method: str, variant: str, setting: str = "", backbone: str = "") -> Meaning:
    """What a printed method and variant are called here, in the setting and on the backbone that they are printed in."""
    for row in _lines():
        number = _number(variant, row["variant"])
        name, _, only_on = row["method"].partition("@")
        if (
            name in (method, f"{setting}:{method}")
            and only_on in ("", backbone)
            and number is not None
        ):
            changes, uses = (_pairs(row[name].replace("*", number)) for name in ("set", "uses"))
            run_in, _, ours = row["ours"].rpartition(":")  # "unsupervised:consert", "simcse"
            below_in, _, below = row["on"].rpartition(":")
            return Meaning(
                ours,
                row["our_variant"],
                run_in,
                {} if only_on else changes,
                below,
                below_in,
                changes if only_on else {},
                uses,
                row["why_not"],
                row["doubt"],
            )
    return Meaning(method, variant)


def _pairs(text: str) -> dict[str, str]:
    """ "m=0.1,eh=1" -> {"m": "0.1", "eh": "1"}."""
    return dict(pair.split("=") for pair in text.split(",") if pair)


def find_printed(
    method: str,
    task: str,
    *,
    suite: str,
    setting: str,
    backbone: str,
    variant: str = "",
    protocol: str | None = None,
    recipe: Mapping[str, object] | None = None,
) -> tuple[ReferenceResult, ...]:
    """The printed numbers of what the harness calls so, the one to compare with first; empty where no table has it.

    ``backbone`` may be a folder or a full name of the hub: its last part counts. ``protocol`` leaves out what was scored by
    another one (without it, the weighted means alone, which are no suite's score); ``recipe`` adds rows whose print names the
    recipe values that the run had. First comes a paper's number of its own method (a mean before a best one, one of a run before
    a rerun by others), or the quotation of it; then reruns by others. Of a checkpoint that authors released and that is scored as
    they do, it is the printed numbers of the model that it is.
    """
    checkpoint = find_checkpoint(backbone)
    if checkpoint is not None and checkpoint.is_scored_by(method, recipe):
        candidates = [
            r for r in results(checkpoint.method, task=task) if released_for(r) == checkpoint
        ]
    else:
        candidates = [
            r
            for r in results(task=task, backbone=Path(backbone).name)
            if _is(r, method, variant, recipe) and (r.setting == setting or setting == "none")
        ]
    printed = [
        r
        for r in candidates
        if SUITES[r.metric] == suite
        and (r.protocol == protocol if protocol else r.protocol != WEIGHTED)
    ]
    return tuple(sorted(printed, key=lambda r: _rank(r, printed)))


def _is(r: ReferenceResult, method: str, variant: str, recipe: Mapping[str, object] | None) -> bool:
    means = meaning(r.method, r.variant, r.setting, r.backbone)
    names = {means.variant, r.variant} if means.holds else {means.variant}
    if means.method != method or variant not in names or means.on:
        return False
    having = {**means.set, **means.holds}.items()
    return all(
        recipe is not None and key in recipe and _same(recipe[key], value) for key, value in having
    )


def _same(value: object, text: str) -> bool:
    try:
        return float(str(value)) == float(text)
    except ValueError:
        return str(value).lower() == text.lower()


def _rank(r: ReferenceResult, printed: list[ReferenceResult]) -> tuple[object, ...]:
    """What stands first: what the method's own paper prints, as a mean; among equals, what most papers print."""
    rerun = r.own_result and r.paper != r.method
    swept = bool(meaning(r.method, r.variant, r.setting).set) or r.variant == "reproduced"
    agreeing = sum(other.value == r.value for other in printed)
    return rerun, swept, r.runs.startswith("best"), not r.own_result, -agreeing


def _number(variant: str, pattern: str) -> str | None:
    """What ``*`` stands for, "" where there is none; None where the names differ."""
    match = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), variant)
    return "".join(match.groups()) if match else None


@cache
def _lines() -> list[dict[str, str]]:
    rows = read_rows(FILE)
    for row in rows:
        if None in row or None in row.values():
            raise BenchError(f"{FILE}: the line of '{row['method']}' has not {len(rows[0])} cells")
    return rows


TRAINED_WITH = "-dev"  # how the metrics end that only a training has: scores on the sets that it selects its checkpoint by


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
        average = self.row.average
        return average.printed if average else ""

    def is_scored_by(self, method: str, recipe: Mapping[str, object] | None) -> bool:
        """Whether a run of a method with this recipe scores it as its authors do."""
        wanted: Mapping[str, str | None] = self.set or {
            "pooling": None
        }  # the folder says itself how it pools
        return method == self.ours and all(
            (recipe or {}).get(key) == value for key, value in wanted.items()
        )

    def made(self, cell: ReferenceResult) -> bool:
        """Whether a printed cell is of a model of this kind: the same method, variant, setting and backbone, scored after training."""
        return (cell.method, cell.variant, cell.setting, cell.backbone) == (
            self.method,
            self.variant,
            self.setting,
            self.backbone,
        ) and not cell.metric.endswith(TRAINED_WITH)


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """All of them, in the file's order."""
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
            for checkpoint in checkpoints()
            if f"{cell.paper}:{cell.table}" in checkpoint.scored_in and checkpoint.made(cell)
        ),
        None,
    )


def released_for(cell: ReferenceResult) -> Checkpoint | None:
    """The released checkpoint of the model that this printed cell is of; None where none is known.

    A line of print is of one model. It is the authors' own where their own paper prints it or another one quotes it; what another
    paper ran again is another training.
    """
    if (taken := scored_from(cell)) is not None:
        return taken
    return next(
        (
            checkpoint
            for checkpoint in checkpoints()
            if checkpoint.made(cell) and line_of(cell) in _theirs()
        ),
        None,
    )


def line_of(cell: ReferenceResult) -> tuple[str, ...]:
    """What the cells of one line of print share."""
    return (
        cell.paper,
        cell.table,
        cell.label,
        cell.setting,
        cell.method,
        cell.backbone,
        cell.variant,
    )


@cache
def _theirs() -> frozenset[tuple[str, ...]]:
    return frozenset(
        line_of(cell) for cell in results() if cell.paper == cell.method or not cell.own_result
    )


def released_as(method: str, setting: str, backbone: str) -> Checkpoint | None:
    """The released checkpoint of a method without a variant in a setting on a backbone; None where none is known."""
    names = (method, setting, backbone, "")
    return next(
        (
            checkpoint
            for checkpoint in checkpoints()
            if names
            == (checkpoint.method, checkpoint.setting, checkpoint.backbone, checkpoint.variant)
        ),
        None,
    )


@cache
def find_checkpoint(name: str) -> Checkpoint | None:
    """The listed one that a backbone's name means: owner/name, with or without @revision, or a folder called so."""
    last = Path(name).name.partition("@")[0]
    return next(
        (checkpoint for checkpoint in checkpoints() if Path(checkpoint.hub).name == last), None
    )
