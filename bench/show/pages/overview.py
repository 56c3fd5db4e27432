"""One row per method over all suites, as the main page shows it: averages, and a profile of dots, a dot a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, sqrt
from typing import TYPE_CHECKING

from bench.base.text import slug
from bench.board.content import Overview, SuiteRow, overviews
from bench.board.names import link, method_page
from bench.compare.formatting import (
    SEVERAL,
    score,
    setting_words,
    signed_number,
)
from bench.show.pages.engine import minus

if TYPE_CHECKING:
    from bench.board.board import Board

HEIGHT, STEP, GAP, ROOM = 44, 9, 8, 5
"""Of a profile in pixels: height, from task to task, more between suites, above and below the outermost dots."""


@dataclass(frozen=True, kw_only=True)
class OverviewCell:
    """A row in a suite."""

    mean: str  # of the suite's own average
    top: bool  # it may be the best


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Dots of a row as a path of points: ``M4 12h0``."""

    dots: str
    words: str  # what is to be seen


@dataclass(frozen=True, kw_only=True)
class OverviewRow:
    """One method."""

    method: str
    beside: str
    page: str
    cells: tuple[OverviewCell | None, ...]
    profile: Profile | None  # None for the baseline


@dataclass(frozen=True, kw_only=True)
class PageOverview:
    """One section of the page."""

    anchor: str
    setting: str
    backbone: str
    title: str
    suites: tuple[tuple[str, str], ...]  # name, id of its table
    rows: tuple[OverviewRow, ...]
    width: int  # of a profile
    zero: float  # height of the baseline's line
    cuts: tuple[int, ...]  # between the suites
    low: str  # what lies lowest and highest: "-21.34"
    high: str
    baseline: str
    left_out: int


def page_overviews(board: Board) -> tuple[PageOverview, ...]:
    """Those of a board, in its order."""
    return tuple(_page(overview) for overview in overviews(board.tables))


def _page(overview: Overview) -> PageOverview:
    tasks = [
        max((len(standing.steps) for row in overview.standings if (standing := row[j])), default=0)
        for j in range(len(overview.suites))
    ]
    starts = [ROOM + STEP * sum(tasks[:j]) + GAP * j for j in range(len(tasks))]
    order = [suite.table.columns for suite in overview.suites]
    found = [
        step.difference
        for row in overview.standings
        for standing in row
        if standing
        for step in standing.steps
    ]
    low, high = min([*found, 0.0]), max([*found, 0.0])
    between = _root(high) - _root(low) or 1.0

    def y(difference: float) -> float:
        return round(ROOM + (HEIGHT - 2 * ROOM) * (_root(high) - _root(difference)) / between, 1)

    def profile(row: Sequence[SuiteRow | None]) -> Profile | None:
        steps, dots = [], ""
        for start, columns, standing in zip(starts, order, row, strict=True):
            for step in standing.steps if standing else ():
                steps.append(step)
                dots += f"M{start + STEP * columns.index(step.task)} {y(step.difference):g}h0"
        if not steps:
            return None
        above = sum(step.difference > 0 for step in steps)
        least, most = (pick(steps, key=lambda step: step.difference) for pick in (min, max))
        words = (
            f"{len(steps)} task{'s' * (len(steps) != 1)}, {above} above the baseline; "
            f"from {_points(least.difference)} ({least.task}) to {_points(most.difference)} ({most.task})"
        )
        return Profile(dots=dots, words=words)

    setting = overview.setting or ""
    return PageOverview(
        anchor=f"all-suites-{slug('untrained' if setting == 'none' else setting, overview.backbone)}",
        setting=setting,
        backbone=overview.backbone or SEVERAL,
        title=f"All suites, {setting_words(setting)}, {overview.backbone or SEVERAL}",
        suites=tuple((suite.table.suite, suite.anchor) for suite in overview.suites),
        rows=tuple(
            OverviewRow(
                method=method,
                beside=beside,
                page=link(method_page(method)),
                cells=tuple(map(_cell, row)),
                profile=profile(row),
            )
            for (method, beside), row in zip(overview.names, overview.standings, strict=True)
        ),
        width=starts[-1] + STEP * tasks[-1],
        zero=y(0.0),
        cuts=tuple(start - (STEP + GAP) // 2 for start in starts[1:]),
        low=_points(low),
        high=_points(high),
        baseline=" and ".join(overview.baselines),
        left_out=overview.left_out,
    )


def _points(difference: float) -> str:
    return minus(signed_number(difference))


def _root(difference: float) -> float:
    """Signed: one point is still seen beside twenty."""
    return copysign(sqrt(abs(difference)), difference)


def _cell(standing: SuiteRow | None) -> OverviewCell | None:
    if standing is None or (last := standing.row.cells[-1]) is None:
        return None
    return OverviewCell(
        mean=score(last.mean, last.decimals),
        top=standing.row.may_be_best,
    )
