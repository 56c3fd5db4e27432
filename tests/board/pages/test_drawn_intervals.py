"""The drawn intervals: one scale with zero for all rows of a table, and equal to the numbers."""

from __future__ import annotations

import re

import pytest
from html5lib import HTMLParser
from made_runs import made_run, made_runs

from bench.board.board import Board, build_board
from bench.board.pages.board import render_board
from bench.board.pages.intervals import draw_interval, interval_scale
from bench.records import Run, RunsFolder

USUAL = [(-0.1, -1.0, 0.8), (0.4, -0.6, 1.4), (-0.5, -1.5, 0.5), (0.0, -1.2, 1.2)]
NEAR = (-1.2, -2.0, -0.4)
FAR = (-15.0, -18.0, -12.0)


def test_the_scale_holds_zero_and_all_rows_unless_a_few_are_far_away() -> None:
    for intervals in (USUAL, [*USUAL, NEAR], [(5.0, 4.0, 6.0)], [(-5.0, -6.0, -4.0)]):
        scale = interval_scale(intervals)
        assert scale is not None
        ends = [end for _, *both in intervals for end in both]
        assert scale.low < min(0.0, *ends) and max(0.0, *ends) < scale.high
        assert 0.0 in scale.ticks and all(scale.low <= tick <= scale.high for tick in scale.ticks)
        assert 2 <= len(scale.ticks) <= 8
    scale = interval_scale([*USUAL, FAR])
    assert scale is not None and scale.low > -3, "one row would squeeze all others"
    drawn = draw_interval(FAR, scale, "worse")
    assert drawn["left"] and not drawn["right"] and drawn["point"] is None
    assert interval_scale([]) is None and interval_scale([(0.1, float("nan"), 1.0)]) is None
    nothing = interval_scale([(0.0, 0.0, 0.0)])
    assert nothing is not None and nothing.low < 0 < nothing.high


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("intervals")
    made_runs(folder, {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.79})
    made_run(folder, "cls", None, noise=1.4)
    made_run(folder, "pcl", 1, noise=0.7)
    records, _ = RunsFolder(folder).records()
    runs = [Run(record=one, folder=folder / one.run_id) for one in records]
    return build_board(runs, version="v1", title="T")


def test_every_tested_row_has_the_line_of_its_numbers(made: Board) -> None:
    """Read back from the page: the places of the ticks give the scale, and the line the numbers."""
    html = render_board(made)
    HTMLParser(strict=True).parse(html)
    (shown,) = made.tables
    head = re.search(r'<th scope="col" class="interval">.*?</th>', html, re.DOTALL)
    assert head is not None
    ticks = [
        (float(text.replace("−", "-")), float(x))
        for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', head[0])
    ]
    (low, at_low), (high, at_high) = ticks[0], ticks[-1]
    (zero,) = (x for value, x in ticks if value == 0)

    def value(x: str) -> float:
        return low + (float(x) - at_low) / (at_high - at_low) * (high - low)

    lines = re.findall(r'<td class="interval">(<svg.*?</svg>)', html, re.DOTALL)
    assert len(lines) == len(shown.table.rows)
    tested = 0
    for row, svg in zip(shown.table.rows, lines, strict=True):
        assert f'class="zero" d="M{zero} ' in svg
        cell = row.cells[-1]
        against = cell.against if cell else None
        bar = re.search(r'class="bar" d="M([\d.]+) 12H([\d.]+)"', svg)
        point = re.search(r'<circle cx="([\d.]+)"', svg)
        if against is None or against.se is None:
            assert bar is None and (point is not None) == row.is_baseline
            continue
        tested += 1
        drawn_as = f"ci {against.verdict}" if against.verdict else "ci"
        assert bar is not None and f'class="{drawn_as}"' in svg
        assert against.ci_low is not None and against.ci_high is not None
        if point is not None:
            assert value(point[1]) == pytest.approx(against.difference, abs=0.2)
        if '"off"' not in svg:
            ends = (value(bar[1]), value(bar[2]))
            assert ends == pytest.approx((against.ci_low, against.ci_high), abs=0.2)
            if against.verdict:
                assert (against.verdict == "inconclusive") == (ends[0] < 0 < ends[1])
    assert tested == 3, "all but the baseline and the row of one seed"
