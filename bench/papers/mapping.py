"""The run of the harness that a printed row means.

``ours.tsv`` of a paper's folder has a line for every printed (method, variant) with another name
here, or that is not a method here at all; it holds in all papers. All others have the same name on
both sides. ``*`` matches the number in a
variant's name, as in "eh,m=0.1". A setting may precede a method's name: "supervised:consert" is
printed only in that setting; on our side it is the one that is run. A backbone may follow:
"unsupervised:dcpcse@roberta-base" has another name only on that backbone, because its recipe there
is another one. ``set`` of such a line is the recipe's value there; it identifies runs that were
made under the printed name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from bench.base.text import with_variant
from bench.papers.reading import read_every

DEV = "spearman-dev"
"""The metric of STS-B dev: no suite's score; training selects its checkpoint by it."""
BY_MTEB = "cosine_spearman"
"""The metric of STS as mteb scores it: SICK-R on all pairs, most models with an instruction."""
SUITES = {
    "spearman": "sts",
    DEV: "sts",
    "spearman-bootstrap": "cxc",
    "accuracy": "transfer",
    "accuracy-dev": "transfer",
    "clustering-accuracy": "clustering",
    BY_MTEB: "mteb",
    "alignment": "geometry",
    "uniformity": "geometry",
}
"""The suite that a printed metric belongs to."""


@dataclass(frozen=True)
class Meaning:
    """A run of the harness. If no single run means it, ``why_not`` is the reason; ``method`` is
    empty if there is none at all."""

    method: str
    variant: str = ""
    # the setting to run it in, if it is not the printed one
    setting: str = ""
    # recipe values that the print names: --set
    set: Mapping[str, str] = field(default_factory=dict)
    # recipe values that tell this run from one of the other name
    holds: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""
    # questions that the paper leaves open
    doubt: str = ""

    @property
    def name(self) -> str:
        """The method with the variant: "promcse+eh"; empty if no run is meant."""
        return with_variant(self.method, self.variant)


@cache
def meaning(method: str, variant: str, setting: str = "", backbone: str = "") -> Meaning:
    """Return the run that a printed method and variant mean in a setting and on a backbone."""
    for line in _lines():
        name, _, only_on = line["method"].partition("@")
        number = _match_variant(variant, line["variant"])
        if number is None or only_on not in ("", backbone):
            continue
        if name in (method, f"{setting}:{method}"):
            return _meaning_of_line(line, number, changes_hold=bool(only_on))
    return Meaning(method, variant)


def _meaning_of_line(line: Mapping[str, str], number: str, *, changes_hold: bool) -> Meaning:
    """Return the meaning of a line of ours.tsv. ``number``: the text matched by ``*``.

    ``changes_hold``: its values tell runs apart, and are not to be set.
    """
    changes = _pairs(line["set"], number)
    setting, _, method = line["ours"].rpartition(":")
    return Meaning(
        method=method,
        variant=line["our_variant"],
        setting=setting,
        set={} if changes_hold else changes,
        holds=changes if changes_hold else {},
        why_not=line["why_not"],
        doubt=line["doubt"],
    )


def _pairs(text: str, number: str) -> dict[str, str]:
    """Return "m=*,eh=1" with the number 0.1 as {"m": "0.1", "eh": "1"}."""
    pairs = {}
    for pair in text.replace("*", number).split(","):
        if pair:
            key, value = pair.split("=")
            pairs[key] = value
    return pairs


def _match_variant(variant: str, pattern: str) -> str | None:
    """Return the text matched by ``*`` ("" if the pattern has none); None if it does not match."""
    match = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), variant)
    if match is None:
        return None
    return "".join(match.groups())


@cache
def _lines() -> list[dict[str, str]]:
    """Return the lines of ours.tsv; lines for one setting or backbone come first."""
    return sorted(read_every("ours.tsv"), key=lambda line: not re.search("[:@]", line["method"]))
