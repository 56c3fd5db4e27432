"""Each verdict of the published boards, against a computation that imports nothing of bench
(``recomputed.py``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import recomputed
from commands import bench

BOARDS = Path(__file__).parents[2] / "leaderboards"


@pytest.mark.nightly
@pytest.mark.slow(seconds=120)
def test_the_comparison_comes_out_again() -> None:
    """Numbers and verdicts as ``bench compare`` has them; and as the published page has them, but
    for rows of two seeds, which are not tested any more (leaderboards/ERRATA.md).
    """
    version = BOARDS / "v4"
    runs = ("--runs", version / "runs", "--setting", "unsupervised,none", "--backbone", "builtin")
    done = bench("compare", *runs, "--suite", "sts", "--baseline", "simcse", "--format", "json")
    main, longer = json.loads(done.stdout)["tables"]
    published = [
        one["table"]
        for one in json.loads((version / "tables.json").read_text(encoding="utf-8"))["tables"]
        if one["table"]["setting"] == "unsupervised" and one["table"]["suite"] == "sts"
    ]
    assert [table["budget"] for table in (main, longer)] == ["", "1000steps"]
    few = ({"pcl ": "inconclusive"}, {"dcpcse mlm": "worse"})
    for now, then, gone in zip((main, longer), published, few, strict=True):
        gone = {one.strip(): verdict for one, verdict in gone.items()}
        assert verdicts(now) | gone == verdicts(then) and not gone.keys() & verdicts(now).keys()
    said = {name(row): row["against"] for row in main["rows"]}
    found = recomputed.comparison(version)
    assert found.keys() == verdicts(main).keys() and len(found) == 25
    for one, here in found.items():
        assert here["verdict"] == said[one]["verdict"], one
        for key in ("difference", "se", "ci_low", "ci_high", "ci_level"):
            assert here[key] == pytest.approx(said[one][key], abs=1e-6), (one, key)
        assert here["df"] == pytest.approx(said[one]["df"], rel=1e-5)
        assert here["p"] == pytest.approx(said[one]["p"], rel=1e-5, abs=1e-12)


@pytest.mark.nightly
def test_every_score_of_the_version_follows_from_its_predictions() -> None:
    done = bench("verify", BOARDS / "v4")
    assert done.exit_code == 0 and "nothing differs" in done.output


def name(row: dict[str, Any]) -> str:
    return f"{row['method']} {row['variant']}".strip()


def verdicts(table: dict[str, Any]) -> dict[str, str]:
    """The verdicts of the rows that were tested."""
    return {
        name(row): row["against"]["verdict"]
        for row in table["rows"]
        if row["against"] and row["against"]["verdict"]
    }
