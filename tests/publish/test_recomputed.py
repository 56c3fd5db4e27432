"""Each verdict of the published boards, against a computation that imports nothing of bench (``recomputed.py``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recomputed
from commands import bench

BOARDS = Path(__file__).parents[2] / "leaderboards"


@pytest.mark.slow
def test_the_comparison_comes_out_again() -> None:
    """Numbers as ``bench compare`` has them; verdicts as the published page has them, whose intervals are of the statistics before."""
    version = BOARDS / "v3"
    runs = ("--runs", version / "runs", "--setting", "unsupervised,none", "--backbone", "builtin")
    done = bench("compare", *runs, "--suite", "sts", "--baseline", "simcse", "--format", "json")
    (table,) = json.loads(done.stdout)["tables"]
    said = {f"{row['method']} {row['variant']}".strip(): row["against"] for row in table["rows"]}
    (published,) = [
        one["table"]["rows"]
        for one in json.loads((version / "tables.json").read_text(encoding="utf-8"))["tables"]
        if one["table"]["setting"] == "unsupervised" and one["table"]["suite"] == "sts"
    ]
    before = {
        f"{row['method']} {row['variant']}".strip(): against["verdict"].replace(
            "unknown", "inconclusive"
        )
        for row in published
        if (against := row["cells"]["Avg."]["against"])
    }
    found = recomputed.comparison(version)
    assert found.keys() == before.keys() and len(found) == 19
    for name, here in found.items():
        assert here["verdict"] == said[name]["verdict"] == before[name], name
        for key in ("difference", "se", "ci_low", "ci_high", "ci_level"):
            assert here[key] == pytest.approx(said[name][key], abs=1e-6), (name, key)
        assert here["df"] == pytest.approx(said[name]["df"], rel=1e-5)
        assert here["p"] == pytest.approx(said[name]["p"], rel=1e-5, abs=1e-12)


@pytest.mark.nightly
def test_a_version_with_one_file_of_predictions_gives_the_same_comparison(tmp_path: Path) -> None:
    """v3's runs as they are published now: of a rank correlation only the order of the pairs is stored."""
    done = bench("publish", "--preview", "--runs", BOARDS / "v3" / "runs", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    found, before = (
        recomputed.comparison(tmp_path / "preview"),
        recomputed.comparison(BOARDS / "v3"),
    )
    assert found == before and len(found) == 19
    assert bench("verify", tmp_path / "preview").exit_code == 0
