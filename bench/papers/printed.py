"""The results that papers printed, row by row.

``results.tsv`` of a paper's folder holds a printed row per line, its cells under ``scores``
("STS12=55.14", "Avg.=79.90±0.32"), with as many decimals as its table prints. ``by`` is "own" if
the paper says, or its marks say, that it ran the method itself, and "copied" if it quotes somebody
else: ``source`` names the other paper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import stdev

from bench.papers.reading import read_every, read_scores

WHOLE, WEIGHTED = "senteval-all/1", "senteval-wmean/1"
"""Protocols of STS prints: all pairs of a year at once; the mean over its sub-datasets, weighted by
size (SimCSE, appendix B)."""


README = "README"
"""The ``table`` of numbers that were read from the README of a paper's repository."""


UNKNOWN = "unknown"
"""The protocol of a print that nobody published."""


def format_printed(value: float, metric: str = "") -> str:
    """Format a value with as many decimals as the metric's tables print."""
    return f"{value:.{DECIMALS.get(metric, 2)}f}"


DECIMALS = {
    "spearman-bootstrap": 1,
    "spearman-dev": 1,
    "accuracy-dev": 1,
    "alignment": 3,
    "uniformity": 3,
}
"""Decimals as printed; 2 for all other metrics."""


@dataclass(frozen=True)
class ReferenceResult:
    """One printed number. Scores are in the papers' scale; ``std`` is None if none is printed."""

    # who printed it: the name of a folder here
    paper: str
    table: str
    # the row's own words
    label: str
    setting: str
    method: str
    backbone: str
    variant: str
    task: str
    metric: str
    value: float
    # the value as printed, with its zeros: "74.40"
    printed: str
    std: float | None
    # False: copied from an earlier paper
    own_result: bool
    # the paper that it was copied from; "" for an own result
    source: str
    # "one run", "mean of 10 runs", "best of 4 seeds"; "" if nothing says it
    runs: str
    # our protocol name; UNKNOWN if the paper used an unpublished one
    protocol: str
    # "tokenised", "unknown", or "" if nothing depends on it or nothing is said
    text: str = ""
    # training text that its neighbours did not have, such as the scored sentences; "" for all
    # others
    corpus: str = ""
    # the footnote, the place, and remarks for readers of the published table
    note: str = ""
    # from what the value was read, if that is known and not the paper itself: "README", "model
    # card", "picture" (read by eye), "conversion" (of the paper, by a third party), "transcription"
    # (of one table), "issue", "result files"
    read: str = ""

    @property
    def shown(self) -> str:
        """The number as printed, with its standard deviation if it has one: "79.90 ± 0.32"."""
        if self.std is None:
            return self.printed
        return f"{self.printed} ± {format_printed(self.std, self.metric)}"

    @property
    def repeats(self) -> int:
        """How many runs the number summarises, as far as ``runs`` says it; else 1."""
        number = re.search(r"\d+", self.runs)
        return 1 if number is None else int(number.group())


@cache
def results(
    method: str | None = None, backbone: str | None = None, **fields: str | None
) -> tuple[ReferenceResult, ...]:
    """Return the printed numbers that fit all conditions, in the papers' order.

    ``fields``: other fields of ReferenceResult, such as ``task``; None fits all.
    """
    wanted = {"method": method, "backbone": backbone, **fields}
    given = {name: value for name, value in wanted.items() if value is not None}
    found = []
    for result in _all_results():
        if all(getattr(result, name) == value for name, value in given.items()):
            found.append(result)
    return tuple(found)


@cache
def _all_results() -> tuple[ReferenceResult, ...]:
    found = []
    for row in read_every("results.tsv"):
        texts = {name: text for name, text in row.items() if name not in ("by", "scores")}
        for task, printed, value, std in read_scores(row):
            found.append(
                ReferenceResult(
                    task=task,
                    value=value,
                    printed=printed,
                    std=std,
                    own_result=row["by"] == "own",
                    **texts,
                )
            )
    return tuple(found)


def half_unit(printed: str) -> float:
    """Return half a unit of the last printed decimal: the largest change by rounding."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


AVERAGE = "Avg."


@dataclass(frozen=True)
class PrintedRow:
    """Printed cells that belong together, in the table's order."""

    cells: tuple[ReferenceResult, ...]

    @property
    def first(self) -> ReferenceResult:
        """The first cell: it has what all cells share.

        That is paper, table, label, setting, method, backbone and variant; if the row has one
        metric, also the rest but task and value.
        """
        return self.cells[0]

    @property
    def average(self) -> ReferenceResult | None:
        return next((cell for cell in self.cells if cell.task == AVERAGE), None)

    @property
    def parts(self) -> tuple[ReferenceResult, ...]:
        """The cells that the average is taken of."""
        return tuple(cell for cell in self.cells if cell.task != AVERAGE)


def rows(
    found: Sequence[ReferenceResult] | None = None, *, by_metric: bool = True
) -> tuple[PrintedRow, ...]:
    """Return all printed rows, or those that these results make, in the papers' order.

    ``by_metric``: cells of two metrics, which one line of print may hold, are two rows; without it
    they are one.
    """
    groups: dict[tuple[str, ...], list[ReferenceResult]] = {}
    if found is None:
        found = results()
    for cell in found:
        key: tuple[str, ...] = (
            cell.paper,
            cell.table,
            cell.label,
            cell.setting,
            cell.backbone,
            cell.variant,
        )
        if by_metric:
            key += (cell.metric, cell.source)
        groups.setdefault(key, []).append(cell)
    return tuple(PrintedRow(tuple(cells)) for cells in groups.values())


def tables() -> tuple[tuple[str, str], ...]:
    """Return (paper, table) of every table in ``results.tsv``."""
    return tuple(dict.fromkeys((cell.paper, cell.table) for cell in results()))


def line_of(cell: ReferenceResult) -> tuple[str, ...]:
    """Return the names that the cells of one printed line share."""
    return (
        cell.paper,
        cell.table,
        cell.label,
        cell.setting,
        cell.method,
        cell.backbone,
        cell.variant,
    )


BASE = "simcse"
"""The method over which later papers print their gains, and its own paper."""


REPORTED = {
    "its paper": 76.25,
    "Focal-InfoNCE's own run": 75.68,
    "issue 53 of its repository": 73.47,
    "issue 258 of its repository": 74.84,
    "issue 246 of its repository": 75.99,
}
"""Averages of unsupervised SimCSE on BERT-base as five parties report them. They differ in seeds,
and in code and hardware, too."""


def reported_sd() -> float:
    """Return the standard deviation of ``REPORTED``, in points."""
    return stdev(REPORTED.values())


def claimed_gain(
    method: str, variant: str, setting: str, backbone: str
) -> tuple[float, ReferenceResult] | None:
    """Return a method's gain on the STS average over SimCSE and the result that it comes from.

    Both are from one paper; None if no paper reports both.

    A paper's own result comes before one that another paper copied. SimCSE's number is
    from the same paper, its own run or a copied one, or else from SimCSE's paper.
    """
    world = {"setting": setting, "backbone": backbone, "task": "Avg."}
    averages = [cell for cell in results(**world) if cell.metric.startswith("spearman")]
    bases: dict[str, float] = {}
    for cell in averages:
        if _is_base(cell) and cell.protocol == WHOLE and cell.table != README:
            bases.setdefault(cell.paper, cell.value)
    if method == BASE:
        return None
    found = []
    for cell in averages:
        named = (cell.method, cell.variant) == (method, variant)
        if named and cell.protocol == WHOLE and (cell.paper in bases or BASE in bases):
            found.append(cell)
    if not found:
        return None
    found.sort(key=lambda cell: not cell.own_result)
    first = found[0]
    base = bases[first.paper if first.paper in bases else BASE]
    return round(first.value - base, 2), first


def _is_base(result: ReferenceResult) -> bool:
    return result.method == BASE and result.variant in ("", "reproduced")
