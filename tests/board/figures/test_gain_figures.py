"""The figures of gains show the numbers of the table."""

from __future__ import annotations

import pytest
from drawn_figures import SEEDS, Drawn, bars, close, marks

from bench.board.figures.gains import FAR
from bench.board.figures.sheet import ACCENT


def test_gains_are_those_of_the_table(made: Drawn) -> None:
    (axes,), shown = made.axes("gains"), made.figures["gains"].data
    assert [row[1] for row in shown] == sorted((row[1] for row in shown), reverse=True)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == [f"{row[0]} (−27.54)" if abs(row[1]) > FAR else row[0] for row in shown]
    data = made.rows("gains")
    for row in made.table("sts").rows:
        if row.method in data and len(row.runs) == SEEDS:  # with the recipe of its method
            assert row.cells[-1] is not None and (one := row.cells[-1].against) is not None
            expected = (one.difference, one.ci_low, one.ci_high, one.ci_level)
            assert data[row.method][:4] == pytest.approx(expected, abs=1e-3)
            assert data[row.method][4] == (one.verdict or row.stands)
    near = [(i, row) for i, row in enumerate(shown) if abs(row[1]) <= FAR]
    assert len(near) == len(shown) - 1
    close(marks(axes), [(row[1], i) for i, row in near])
    decided = [(row[1], i) for i, row in near if row[5] in ("better", "worse")]
    close(marks(axes, ACCENT), decided)
    close(bars(axes), [[row[2], row[3], i, i] for i, row in near])


def test_a_label_longer_than_the_axis_stays_on_the_sheet(made: Drawn) -> None:
    (axes,) = made.axes("gains")
    label, sheet = axes.xaxis.label, axes.figure
    label.set_text("STS average after 1,000 steps minus that of SimCSE")
    sheet.canvas.draw()
    drawn = label.get_window_extent()
    assert drawn.width > axes.bbox.width
    assert drawn.x0 >= 0 and drawn.x1 <= sheet.bbox.width
