"""The pages on the rule describe every metric, and have the numbers of the simulation."""

from __future__ import annotations

import re
from pathlib import Path

import made_tables
import pytest

from bench.score.metrics.metric import SUITE_METRICS

ROOT = Path(__file__).parents[2]
RULE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
ERRORS = (ROOT / "docs" / "verdict-errors.md").read_text(encoding="utf-8")


def test_every_metric_is_described() -> None:
    assert [
        metric.name
        for metric in SUITE_METRICS
        if metric.influence is not None and f"`{metric.name}`" not in RULE
    ] == []


@pytest.mark.nightly
@pytest.mark.slow
def test_the_simulated_table() -> None:
    rows = dict(re.findall(r"^\| ([^|]+?) \| (0\.\d{3}) \|", ERRORS, flags=re.MULTILINE))
    for name, world in made_tables.WORLDS.items():
        (said,) = [share for row, share in rows.items() if row.partition(" (")[0] == name]
        assert float(said) == pytest.approx(made_tables.simulate(world, 10_000).wrong, abs=0.002)
        assert float(said) <= made_tables.HIGHER.get(name, 0.055)
