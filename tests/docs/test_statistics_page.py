"""The pages on comparing runs have the numbers of the published runs and of the simulation."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import made_tables
import pytest
from commands import bench

from bench.score.metrics.metric import SUITE_METRICS

ROOT = Path(__file__).parents[2]
RULE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
COMPARE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
ERRORS = (ROOT / "docs" / "verdict-errors.md").read_text(encoding="utf-8")


def test_every_metric_is_described() -> None:
    assert [
        metric.name
        for metric in SUITE_METRICS
        if metric.influence is not None and f"`{metric.name}`" not in RULE
    ] == []


def test_the_command_prints_the_example() -> None:
    (command,) = re.findall(r"`bench (compare --runs [^`]*)` begins", COMPARE)
    words = [str(ROOT / word) if "/" in word else word for word in shlex.split(command)]
    said = " ".join(bench(*words).stdout.split())
    (printed,) = re.findall(r"```\n(No method beats.*?)\n```", COMPARE, flags=re.DOTALL)
    assert said.startswith(printed)
    intervals = said.replace("[ ", "[")  # which are aligned with blanks
    paragraph = COMPARE.split(printed)[1].split("\n\n")[1]
    found = re.findall(r"from ([+-]\d+\.\d\d) to ([+-]\d+\.\d\d)", paragraph)
    assert len(found) == 2
    for low, high in found:
        assert f"[{low}, {high}]" in intervals


@pytest.mark.nightly
@pytest.mark.slow
def test_the_simulated_table() -> None:
    rows = dict(re.findall(r"^\| ([^|]+?) \| (0\.\d{3}) \|", ERRORS, flags=re.MULTILINE))
    for name, world in made_tables.WORLDS.items():
        (said,) = [share for row, share in rows.items() if row.partition(" (")[0] == name]
        assert float(said) == pytest.approx(made_tables.simulate(world, 10_000).wrong, abs=0.002)
        assert float(said) <= made_tables.HIGHER.get(name, 0.055)
