"""The figure of quality against cost shows the table's numbers and the best trade-offs."""

from __future__ import annotations

import pytest
from boards_for_figures import METHODS
from drawn_figures import SEEDS, Drawn, bars, close, marks

from bench.board.figures.sheet import ACCENT
from bench.papers.names import printed_name


def test_cost_shows_the_tables_numbers(made: Drawn) -> None:
    rows = [
        row for row in made.table("sts").rows if len(row.runs) == SEEDS or row.setting == "none"
    ]
    averages = {printed_name(row.method): cell.mean for row in rows if (cell := row.cells[-1])}
    seconds = {"CLS": 0.0} | {
        printed_name(name): took + 2.0 for name, (_, _, took) in METHODS.items()
    }
    trained = {"CLS": 0.0} | {
        printed_name(name): float(many) for name, (_, many, _) in METHODS.items()
    }
    for kind, cost in (("cost", seconds), ("parameters", trained)):
        data, (axes,) = made.rows(kind), made.axes(kind)
        assert {name: row[0] for name, row in data.items()} == pytest.approx(cost)
        assert {name: row[1] for name, row in data.items()} == pytest.approx(averages, abs=1e-3)
        best = {
            name
            for name in cost
            if not any(
                cost[o] <= cost[name] and averages[o] > averages[name] for o in cost if o != name
            )
        }
        assert {name for name, row in data.items() if row[4] == "yes"} == best
        drawn = {round(y, 4): x for x, y in marks(axes)}
        assert {row[1]: drawn[row[1]] for row in data.values()} == {
            row[1]: row[0] for row in data.values()
        }
        assert 0 in axes.get_xticks(), "what is free has a place"
        close(sorted(y for _, y in marks(axes, ACCENT)), [averages[n] for n in best])
        close(sorted(bar[2:] for bar in bars(axes)), [list(row[2:4]) for row in data.values()])
