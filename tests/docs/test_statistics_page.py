"""The pages on the rule describe every metric, and have the numbers of the simulation."""

from __future__ import annotations

import re
from pathlib import Path

import made_tables
import pytest

from bench.score.metrics.metric import SUITE_METRICS

ROOT = Path(__file__).parents[2]
RULE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
ERRORS = (ROOT / "benchmarks" / "verdict-errors.md").read_text(encoding="utf-8")


def test_every_metric_is_described() -> None:
    assert [
        metric.name
        for metric in SUITE_METRICS
        if metric.influence is not None and f"`{metric.name}`" not in RULE
    ] == []


def shares(page: str) -> dict[str, str]:
    """Return the first share of each row of a page's tables, by the row's name."""
    return dict(re.findall(r"^\| ([^|]+?) \| (0\.\d{3}) \|", page, flags=re.M))


def test_the_folded_shares_are_those_of_the_simulations() -> None:
    worlds = RULE.split("| world | wrong |")[1].split("</details>")[0]
    said = shares(worlds)
    assert len(said) == 8
    assert said.items() <= shares(ERRORS).items()
    pairing = RULE.split("| table | r = 0 |")[1].split("</details>")[0]
    for table, *found in re.findall(
        r"^\| (\w+, 1,000 steps) \|" + r" (\d\.\d+) \|" * 4, pairing, flags=re.M
    ):
        simulated = re.findall(
            rf"^\| {table} \| [\d.]+ \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|", ERRORS, flags=re.M
        )
        assert found == simulated[:4], table


@pytest.mark.nightly
@pytest.mark.slow
def test_the_simulated_table() -> None:
    rows = shares(ERRORS)
    for name, world in made_tables.WORLDS.items():
        (said,) = [share for row, share in rows.items() if row.partition(" (")[0] == name]
        assert float(said) == pytest.approx(made_tables.simulate(world, 10_000).wrong, abs=0.002)
        assert float(said) <= made_tables.HIGHER.get(name, 0.055)
