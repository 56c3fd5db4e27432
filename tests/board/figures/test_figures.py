"""Figures of made boards: captions, that they are whole, and that foreign text does no harm."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from boards_for_figures import board_of, fill
from drawn_figures import Drawn
from made_runs import hostile_run

from bench.board.figures import board_figures

NS = "{http://www.w3.org/2000/svg}"
DRAWN = ["svg", "g", "path", "text", "use", "defs", "style", "clipPath", "rect", "tspan"]
KINDS = ["gains", "ablation"]


def test_titles_and_captions_of_all_figures(made: Drawn, with_papers: Drawn, snapshot: Any) -> None:
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
    assert len(one.svg) < 80_000
    inches, box = sheet.get_size_inches(), sheet.get_tightbbox()  # the box around all that is drawn
    assert min(box.x0, box.y0) > -0.01 and box.x1 < inches[0] + 0.01 and box.y1 < inches[1] + 0.01


def test_foreign_text_does_no_harm(tmp_path: Path) -> None:
    runs = fill(tmp_path / "runs")
    for seed in (1, 2):
        hostile_run(runs, seed=seed, suites=("sts",))
        hostile_run(runs, f"$\\frac{{{seed}}}{{2}}$" + "M" * 300, seed=seed, suites=("sts",))
    for one in board_figures(board_of(runs)):
        for element in ET.fromstring(one.svg).iter():
            assert element.tag.removeprefix(NS) in DRAWN
            names = [key.rpartition("}")[2].lower() for key in element.attrib]
            assert not any(name.startswith("on") for name in names)
            assert all(v.startswith("#") for k, v in element.attrib.items() if k.endswith("href"))
        assert re.fullmatch(r"[a-z0-9-]{1,90}", one.name)
