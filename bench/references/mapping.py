"""The run of the harness that a printed row means.

``ours.tsv`` has a line for every printed (method, variant) that has another name here, or that is not a method here at all; all others
have the same name on both sides. ``*`` stands for the number in a variant's name, as in "eh,m=0.1". A setting may precede a method's
name: "supervised:consert" is printed in that setting alone; on our side it is the one that is run. A backbone may follow:
"unsupervised:dcpcse@roberta-base" has another name on that backbone alone, because its recipe there is another one. ``set`` of such a
line is the recipe's value there; it identifies runs that were made under the printed name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from bench.base.errors import BenchError
from bench.references.reading import HERE, read_rows

OURS = HERE / "ours.tsv"


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
    """A run of the harness. If there is none, ``method`` is empty and ``why_not`` is the reason."""

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
            changes, uses = (  # "m=0.1,eh=1": {"m": "0.1", "eh": "1"}
                dict(pair.split("=") for pair in row[name].replace("*", number).split(",") if pair)
                for name in ("set", "uses")
            )
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


def _number(variant: str, pattern: str) -> str | None:
    """What ``*`` stands for, "" where there is none; None where the names differ."""
    match = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), variant)
    return "".join(match.groups()) if match else None


@cache
def _lines() -> list[dict[str, str]]:
    lines = read_rows(OURS)
    for row in lines:
        if None in row or None in row.values():
            raise BenchError(
                f"{OURS}: the line of '{row['method']}' does not have {len(lines[0])} cells"
            )
    return lines
