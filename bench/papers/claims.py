"""The claims in the papers' texts:

``claims.tsv``, a gain a line, with the two cells behind the difference; and ``trained.tsv``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from bench.base.errors import BenchError
from bench.papers import (
    HERE,
    ReferenceResult,
    read_rows,
    results,
)
from bench.papers.bounds import half_unit

CLAIMS = HERE / "claims.tsv"
TRAINED = HERE / "trained.tsv"


@dataclass(frozen=True)
class ClaimedGain:
    """A gain that a paper's text claims, and the two printed cells behind the difference."""

    # "section 6"; "text" if no more is recorded
    place: str
    # as printed: "1.21"
    claimed: str
    cell: ReferenceResult
    less: ReferenceResult

    @property
    def gain(self) -> float:
        """The difference of the cells."""
        return self.cell.value - self.less.value

    @property
    def rounding(self) -> float:
        """The largest error that rounding of the claim and of both cells explains."""
        return math.fsum(map(half_unit, ((self.claimed, self.cell.printed, self.less.printed))))


@cache
def claimed_gains() -> tuple[ClaimedGain, ...]:
    """Return every gain that is recorded, true or not.

    Raises BenchError, naming the file, for a cell that is not printed.
    """
    return tuple(
        ClaimedGain(
            row["place"],
            row["claimed"],
            _printed_cell(row, row["table"], row["label"]),
            _printed_cell(row, row["less_table"], row["less_label"]),
        )
        for row in read_rows(CLAIMS)
    )


def _printed_cell(row: dict[str, str], table: str, label: str) -> ReferenceResult:
    for cell in results(
        paper=row["paper"], setting=row["setting"], backbone=row["backbone"], task=row["task"]
    ):
        if (cell.table, cell.label) == (table, label):
            return cell
    raise BenchError(
        f"{CLAIMS}: {row['paper']} table {table} has no cell {row['task']} of '{label}', "
        f"{row['setting']}, {row['backbone']}"
    )


SIZES = {  # layers, width, parameters without the heads of pretraining
    "bert-base-uncased": (12, 768, 109_482_240),
    "bert-large-uncased": (24, 1024, 335_141_888),
    "roberta-base": (12, 768, 124_645_632),
    "roberta-large": (24, 1024, 355_359_744),
}


def prompt_share(backbone: str, prompt_length: int) -> float:
    """Return what a prompt has in percent of its backbone's parameters, as DCPCSE describes one: a
    vector of the model's width for every layer and position. The authors' code trains more.
    """
    layers, width, parameters = SIZES[backbone]
    return 100 * layers * prompt_length * width / parameters
