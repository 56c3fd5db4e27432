"""Figures of made boards: their axes show what the tables say, their data are the drawing's, and no
text is cut.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from boards_for_figures import METHODS, board_of, fill
from made_runs import hostile_run, made_run, made_runs
from matplotlib.figure import Figure as Sheet
from msgspec import structs

from bench.board.board import Board
from bench.board.tables import BoardTable
from bench.compare.statistics.table import Table
from bench.references import printed_gains
from bench.show.figures import Figure, board_figures
from bench.show.figures.points import front
from bench.show.figures.rows import FAR
from bench.show.figures.sheet import ACCENT, BAR

NS = "{http://www.w3.org/2000/svg}"
LENGTHS = (1, 4, 16)
SEEDS = 3  # of a method with its own recipe
DRAWN = ["svg", "g", "path", "text", "use", "defs", "style", "clipPath", "rect", "tspan"]
KINDS = [
    "printed-gains",
    "gains",
    "cost",
    "shift",
    "learning",
    "geometry",
    "spectrum",
    "parameters",
    "frequent-words",
    "few-shot",
    "ablation",
]


@dataclass
class Drawn:
    """The figures drawn from a board: by kind, and the axes of each."""

    board: Board
    figures: dict[str, Figure] = field(default_factory=dict)
    sheets: dict[str, Any] = field(default_factory=dict)  # of matplotlib, by the SVG's figure

    def axes(self, kind: str) -> list[Any]:
        return list(self.sheets[kind].axes)

    def table(self, suite: str) -> Table:
        return table_of(self.board, suite).table

    def rows(self, kind: str) -> dict[str, tuple[Any, ...]]:
        """The data by the first column."""
        return {str(row[0]): row[1:] for row in self.figures[kind].data}


def table_of(board: Board, suite: str) -> BoardTable:
    return next(one for one in board.tables if one.table.suite == suite)


def draw(board: Board) -> Drawn:
    """All figures, each with the sheet that it was written from."""
    done, sheets = Drawn(board), []
    savefig = Sheet.savefig
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Sheet, "savefig", lambda *a, **b: sheets.append(a[0]) or savefig(*a, **b))
        for figure in board_figures(board):
            assert figure.svg
            done.figures[figure.kind], done.sheets[figure.kind] = figure, sheets[-1]
    return done


def with_captions(board: Board) -> Board:
    """Add CxC-STS to a board of STS.

    It gets the numbers of the first STS set in another order, because the real suite takes long.
    """
    one = table_of(board, "sts")
    table = replace(
        one.table,
        suite="cxc",
        protocol="cxc-promcse/1",
        columns=("CxC-STS",),
        rows=tuple(replace(row, cells=row.cells[:1]) for row in reversed(one.table.rows)),
    )
    return replace(board, tables=(*board.tables, replace(one, anchor="cxc", table=table)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    runs = fill(tmp_path_factory.mktemp("figures") / "runs")
    for length in LENGTHS:
        recipe = {"prompt_length": length}
        made_run(runs, "promcse", 1, noise=0.5 + 0.3 / length, recipe=recipe, suites=("sts",))
    return draw(with_captions(board_of(runs)))


@pytest.fixture(scope="module")
def with_papers(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """On a backbone of the papers."""
    runs, backbone = tmp_path_factory.mktemp("papers") / "runs", "bert-base-uncased"
    made_runs(runs, {"simcse": 0.62, "promcse": 0.55}, backbone=backbone)
    for length in LENGTHS:
        recipe = {"prompt_length": length}
        made_run(runs, "promcse", 1, noise=0.5, backbone=backbone, recipe=recipe)
    return draw(board_of(runs))


def marks(axes: Any, colour: str | None = None, marker: str = "o") -> list[tuple[float, float]]:
    """Return the coordinates of all points on these axes."""
    points = []
    for line in axes.lines:
        if line.get_marker() == marker and colour in (None, line.get_color()):
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                points.append((float(x), float(y)))
    return points


def bars(axes: Any) -> list[list[float]]:
    """The error bars: x, x, y, y."""
    lines = [line.get_xydata().T for line in axes.lines if line.get_label() == BAR]
    return sorted([*map(float, x), *map(float, y)] for x, y in lines if len(x))


def close(found: list[Any], expected: list[Any]) -> None:
    """The same points in any order, as exact as data are written."""
    assert len(found) == len(expected)
    np.testing.assert_allclose(sorted(found), sorted(expected), atol=1e-3)


# --- all of them ---


def test_what_they_say(made: Drawn, with_papers: Drawn, snapshot: Any) -> None:
    every = made.figures.items()
    assert {kind: f"{one.title}: {one.caption}" for kind, one in every} == snapshot
    assert with_papers.figures["ablation"].data == snapshot(name="with printed values")


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_whole(made: Drawn, kind: str) -> None:
    one, sheet = made.figures[kind], made.sheets[kind]
    assert re.fullmatch(rf"{kind}[a-z-]*-unsupervised-builtin", one.name)
    rows = list(csv.reader(io.StringIO(one.csv)))
    assert rows == [list(one.header), *([str(cell) for cell in row] for row in one.data)]
    ids = [element.get("id") for element in ET.fromstring(one.svg).iter() if element.get("id")]
    assert len(set(ids)) == len(ids) and "<metadata" not in one.svg
    assert len(one.svg) < 80_000 and one.uri.startswith("data:image/svg+xml;base64,")
    inches, box = sheet.get_size_inches(), sheet.get_tightbbox()  # of all that is seen
    assert min(box.x0, box.y0) > -0.01 and box.x1 < inches[0] + 0.01 and box.y1 < inches[1] + 0.01


# --- gains ---


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
            assert data[row.method][4] == one.verdict
    near = [(i, row) for i, row in enumerate(shown) if abs(row[1]) <= FAR]
    assert len(near) == len(shown) - 1
    close(marks(axes), [(row[1], i) for i, row in near])
    decided = [(row[1], i) for i, row in near if row[5] in ("better", "worse")]
    close(marks(axes, ACCENT), decided)
    close(bars(axes), [[row[2], row[3], i, i] for i, row in near])


def test_the_line_of_printed_gains(made: Drawn) -> None:
    """It shows the spread of five reports of one method by different parties, not the spread of
    this board's backbone.
    """
    line = 1.96 * math.sqrt(2) * stdev([76.25, 75.68, 73.47, 74.84, 75.99])
    (axes,), printed = made.axes("printed-gains"), printed_gains()
    assert len(printed) == 15
    assert [row[4] for row in made.figures["printed-gains"].data] == pytest.approx(
        [one.gain for one in printed], abs=1e-4
    )
    assert {row[5] for row in made.figures["printed-gains"].data} == {round(line, 4)}
    close(marks(axes), [(one.gain, i) for i, one in enumerate(printed)])
    assert marks(axes, ACCENT) == [], "none of them is above it"
    assert max(one.gain for one in printed) < line < 3.2
    caption = made.figures["printed-gains"].caption
    assert caption.startswith("0 of 15 gains over SimCSE that papers report are above the line")
    assert axes.lines[-1].get_xdata()[0] == pytest.approx(line)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert len(set(names)) == 15, "the backbone tells points of one name apart"


# --- quality against cost ---


def test_cost_shows_the_tables_numbers(made: Drawn) -> None:
    rows = [
        row for row in made.table("sts").rows if len(row.runs) == SEEDS or row.setting == "none"
    ]
    averages = {row.method: cell.mean for row in rows if (cell := row.cells[-1])}
    seconds = {"cls": 0.0} | {name: took + 2.0 for name, (_, _, took) in METHODS.items()}
    trained = {"cls": 0.0} | {name: float(many) for name, (_, many, _) in METHODS.items()}
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


def test_the_front_is_what_nothing_is_cheaper_and_better_than() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        pairs = [(float(c), float(q)) for c, q in rng.integers(0, 8, (12, 2))]
        dominated = set()
        for one, other in itertools.permutations(set(pairs), 2):
            if other[0] <= one[0] and other[1] >= one[1]:
                dominated.add(one)
        assert {pairs[i] for i in front(pairs)} == set(pairs) - dominated
    assert front([(1.0, 5.0), (1.0, 5.0), (2.0, 5.0)]) == [0, 1]


# --- two scores ---


def test_a_spectrum_is_that_of_the_stored_values(made: Drawn, tmp_path: Path) -> None:
    """linspace(9, 1, 16) to the power 1 + noise, as the made runs store them, the largest effective
    rank first.
    """
    places = (1, 2, 4, 8, 16)
    data = made.figures["spectrum"].data
    ranks = {}
    for name, (noise, _, _) in METHODS.items():
        values = np.linspace(9, 1, 16) ** (1 + noise)
        shares = values / values.sum()
        ranks[name] = -sum(p * math.log(p) for p in shares)
        expected = [(k, values[k - 1] / values[0]) for k in places]
        np.testing.assert_allclose([row[1:] for row in data if row[0] == name], expected, atol=1e-3)
    order = [name for name in dict.fromkeys(row[0] for row in data) if name in ranks]
    assert order == sorted(ranks, key=lambda name: -ranks[name])
    points_of = [(places.index(int(k)), float(share)) for _, k, share in data]
    close(marks(made.axes("spectrum")[0]), points_of)


# --- curves ---


def test_learning_curves_are_means_of_those_of_the_runs(made: Drawn) -> None:
    scores: dict[tuple[str, float], list[float]] = {}
    for run in made.board.runs:
        done = run.record.training
        if done is None or done.sentences is None or "prompt_length" in run.record.recipe:
            continue
        for entry in map(json.loads, (run.folder / "curve.jsonl").read_text().splitlines()):
            if "dev_score" in entry:
                seen = round(entry["step"] * done.sentences / done.steps, 4)
                scores.setdefault((run.record.method, seen), []).append(entry["dev_score"])
    data = {(str(name), float(x)): y for name, x, y in made.figures["learning"].data}
    shown = {place: values for place, values in scores.items() if place in data}
    assert len(data) == len(shown) > 9 and {len(values) for values in shown.values()} == {SEEDS}
    means = [np.mean(shown[place]) for place in data]
    np.testing.assert_allclose(list(data.values()), means, atol=1e-3)


def test_two_folders_of_one_name_have_figures_of_their_own(tmp_path: Path) -> None:
    for backbone in ("first/encoder", "second/encoder"):
        made_runs(tmp_path, {"simcse": 0.62, "promcse": 0.55}, backbone=backbone)
    every = board_figures(board_of(tmp_path))
    names = [one.name for one in every if one.kind == "gains"]
    assert names == ["gains-unsupervised-encoder", "gains-unsupervised-encoder-2"]


# --- what a record may hold, and how rows become points ---


def test_foreign_text_and_odd_details_do_no_harm(tmp_path: Path) -> None:
    suites = ("sts", "geometry")
    runs = fill(tmp_path / "runs", suites=suites)
    for seed in (1, 2, 3):
        hostile_run(runs, seed=seed, suites=suites)
        hostile_run(runs, f"$\\frac{{{seed}}}{{2}}$" + "M" * 300, seed=seed, suites=suites)
    board = board_of(runs)
    detail = {"without_frequent_words": [{"k": "x", "spearman": None}, 3], "draws": "none"}
    odd = []
    for run in board.runs:
        scores = tuple(structs.replace(score, detail=detail) for score in run.record.scores)
        odd.append(run._replace(record=structs.replace(run.record, scores=scores)))
    for one in (*board_figures(board), *board_figures(replace(board, runs=tuple(odd)))):
        for element in ET.fromstring(one.svg).iter():
            assert element.tag.removeprefix(NS) in DRAWN
            names = [key.rpartition("}")[2].lower() for key in element.attrib]
            assert not any(name.startswith("on") for name in names)
            assert all(v.startswith("#") for k, v in element.attrib.items() if k.endswith("href"))
        assert re.fullmatch(r"[a-z0-9-]{1,90}", one.name)
