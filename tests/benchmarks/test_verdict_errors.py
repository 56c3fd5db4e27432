"""benchmarks/verdict_errors.py has the worlds of benchmarks/verdict-errors.md, and gives the
numbers there.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.nightly  # the newest version is compared, and tables are drawn

ROOT = Path(__file__).parents[2]
PAGE = "".join(
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("docs/compare.md", "benchmarks/verdict-errors.md")
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    place = ROOT / "benchmarks" / "verdict_errors.py"
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def printed(name: str) -> list[list[str]]:
    """Return the cells of a table of the page."""
    (table,) = re.findall(rf"<!-- table: {name} -->\n(.*?)<!-- end", PAGE, flags=re.DOTALL)
    lines = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    return [[cell.strip() for cell in line] for line in lines]


def test_the_worlds_of_the_page(script: ModuleType) -> None:
    rows = printed("worlds")
    assert {row[0] for row in rows} <= script.worlds_where_nothing_differs().keys()
    assert len(rows) > 25


def test_the_rule_is_wrong_as_often_as_the_page_says(script: ModuleType) -> None:
    worlds = script.worlds_where_nothing_differs()
    rows = {name: shares for name, *shares in printed("worlds")}
    for name in ("three 3-seed rows 4x", "all 3 seeds, baseline 3x"):
        for said, paired in zip(rows[name], script.RULES, strict=True):
            found = script.simulate(worlds[name], 1000, paired=paired).wrong
            assert found == pytest.approx(float(said), abs=0.035), name


@pytest.mark.parametrize("r", [0.0, 0.6])
def test_pairing_does_what_the_page_says(script: ModuleType, r: float) -> None:
    name = "CxC, 1,000 steps"
    (said,) = [row[2:] for row in printed("paired") if row[0] == name and float(row[1]) == r]
    found = script.paired_shares(script.shapes()[name], 0.5, r, 1000)
    assert found == pytest.approx([float(share) for share in said], abs=0.035)


def test_the_fourth_seed_helps_as_the_page_says(script: ModuleType) -> None:
    gains = script.worlds_with_a_gain()
    found = [
        script.share_found(gains[f"as found, a new row of {n} seeds, +2"], 1000) for n in (3, 4)
    ]
    rows = re.findall(r"^\| ([34]) \| [\d. ]*\| (0\.\d\d) \|", PAGE, flags=re.MULTILINE)
    assert [float(value) for _, value in rows] == pytest.approx(found, abs=0.05)
    assert found[1] > found[0] + 0.1
