"""Each verdict of the published boards, against a computation that imports nothing of bench
(``recomputed.py``).
"""

from __future__ import annotations

import json
from typing import Any

import published_rows
import pytest
import recomputed
from commands import bench
from recomputed_scores import answer

VERSION = published_rows.ROOT / published_rows.VERSION
UNSUPERVISED = ("--setting", "unsupervised,none", "--backbone", "builtin", "--baseline", "simcse")


def judged_tables_now() -> list[dict[str, Any]]:
    """Return the published version's unsupervised tables with a verdict, as they are judged now."""
    done = bench("compare", "--runs", VERSION / "runs", *UNSUPERVISED, "--format", "json")
    tables = json.loads(done.stdout)["tables"]
    return [table for table in tables if table["setting"] == "unsupervised" and verdicts(table)]


@pytest.mark.nightly
@pytest.mark.slow(seconds=600)
def test_each_family_of_verdicts_comes_out_again() -> None:
    """Numbers and verdicts as ``bench compare`` has them."""
    tables = judged_tables_now()
    assert ("sts", "") in {(table["suite"], table["budget"]) for table in tables}
    for table in tables:
        place = (table["suite"], table["protocol"], table["budget"])
        said = {recomputed.name_of(row): row["against"] for row in table["rows"]}
        found = recomputed.comparison(VERSION, *place)
        assert found.keys() == verdicts(table).keys(), place
        for one, here in found.items():
            assert here["verdict"] == said[one]["verdict"], (place, one)
            for key in ("difference", "se", "ci_low", "ci_high", "ci_level"):
                assert here[key] == pytest.approx(said[one][key], abs=1e-6), (place, one, key)
            assert here["df"] == pytest.approx(said[one]["df"], rel=1e-5)
            assert here["p"] == pytest.approx(said[one]["p"], rel=1e-5, abs=1e-12)


@pytest.mark.nightly
def test_a_value_of_cxc_is_near_the_correlation_that_its_draws_estimate() -> None:
    """The mean of 1,000 draws, and one correlation with equal weight for each query."""
    for table in judged_tables_now():
        if table["suite"] != "cxc":
            continue
        for row in table["rows"]:
            values = row["cells"]["CxC-STS"]["values"]
            for run, value in zip(row["runs"], values, strict=True):
                found = answer(VERSION, run, "cxc", table["protocol"], "CxC-STS")
                assert float(found.values_Q[0]) == pytest.approx(value, abs=0.1)


@pytest.mark.nightly
def test_every_score_of_the_version_follows_from_its_predictions() -> None:
    done = bench("verify", VERSION)
    assert done.exit_code == 0 and "nothing differs" in done.output


def verdicts(table: dict[str, Any]) -> dict[str, str]:
    """The verdicts of the rows that were tested."""
    return {
        recomputed.name_of(row): row["against"]["verdict"]
        for row in table["rows"]
        if row["against"] and row["against"]["verdict"]
    }
