"""What a figure is: a drawing, and everything that a reader who does not see it needs."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from typing import Any

SUITES = {
    "shift": ("sts", "cxc"),
    "papers": (),
    "search": (),
    "geometry": ("geometry",),
    "frequent-words": ("geometry",),
    "few-shot": ("fewshot",),
}
"""Kind of figure -> the suites that it shows, where they are not the STS sets alone."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing of a version, with the data that it was drawn from."""

    name: str  # "cost-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    kind: (
        str  # "gains", "cost", "parameters", "shift", "papers", "geometry", "spectrum", "frequent-words", "few-shot", "ablation", "groups"
    )
    title: str  # a heading
    caption: str  # the finding, computed; then how it was made
    alt: str  # what is to be seen, in one or two sentences
    svg: str  # a whole <svg> element: to be put into a page, or to be a file of its own
    header: tuple[str, ...]  # of the data
    data: tuple[tuple[str | float, ...], ...]  # a row for every mark; "" where something was not recorded
    of: tuple[str, ...] = ()  # the suites that it shows; none: those of its kind
    paper_figure: str = field(default="")  # the paper's figure or table that it corresponds to: "PromCSE, Figure 1"; "" for none

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that it shows; none where it shows whatever a paper printed, or dev scores: it stands beside tables of any suite."""
        return self.of or SUITES.get(self.kind, ("sts",))

    @property
    def csv(self) -> str:
        """The data as CSV; no spreadsheet takes a name for a formula."""
        from bench.compare.formatting import csv_text

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows([csv_text(cell) if isinstance(cell, str) else cell for cell in row] for row in self.data)
        return text.getvalue()


# --- numbers out of what records keep freely: a detail or a recipe may be anybody's ---

BIGGEST = 1e12


def number(value: Any) -> float | None:
    """A finite number of a size that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < BIGGEST and math.isfinite(value) else None


def numbers(values: Any) -> list[float]:
    """A list of such numbers; empty where any of it is none."""
    if not isinstance(values, list):
        return []
    found = [one for value in values if (one := number(value)) is not None]
    return found if len(found) == len(values) else []


def parsed(text: str) -> float | None:
    """The number that a recipe value is, else None."""
    try:
        return number(float(text))
    except ValueError:
        return None
