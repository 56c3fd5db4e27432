"""Each verdict of the published boards, against a computation that imports nothing of bench (``recomputed.py``)."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import recomputed

BOARDS = Path(__file__).parents[2] / "leaderboards"
VERSIONS = [
    path.parent
    for path in sorted(BOARDS.glob("v*/version.json"))
    if json.loads(path.read_text(encoding="utf-8")).get("statistics", 1)
    >= 2  # v1 was judged by another rule, see its erratum
]


def test_the_other_computation_imports_numpy_alone() -> None:
    tree = ast.parse(Path(recomputed.__file__).read_text(encoding="utf-8"))
    modules = {
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    }
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "json", "math", "sys", "pathlib", "typing", "numpy"}


def test_its_tail_of_students_t_is_that_of_tables() -> None:
    for freedom, t in (
        (1, 12.7062),
        (2, 4.30265),
        (10, 2.22814),
        (30, 2.04227),
        (1000, 1.96234),
    ):  # two-sided 5 %, any textbook
        assert 2 * recomputed.tail(t, freedom) == pytest.approx(0.05, abs=1e-6)
        assert recomputed.quantile(0.025, freedom) == pytest.approx(t, rel=1e-5)
    assert recomputed.digamma(1) == pytest.approx(-0.5772156649015329) and recomputed.trigamma(
        1
    ) == pytest.approx(1.6449340668482264)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_the_verdicts_of_a_published_board_come_out_again(version: Path) -> None:
    found = recomputed.primary_family(version)
    content = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    table = next(
        one["table"]
        for one in content["tables"]
        if one["table"]["setting"] == "unsupervised" and one["table"]["suite"] == "sts"
    )
    assert len(found) == len(table["rows"]) - 1 > 5
    for one in found:
        here, said = one["here"], one["table"]
        assert here["verdict"] == said["verdict"], one
        assert here["difference"] == pytest.approx(said["difference"], abs=0.0101), (
            "which is that of two means as they are printed, with two digits each"
        )
        for key in ("low", "high", "level"):
            assert here[key] == pytest.approx(said[key], abs=1e-6), (one, key)
        for key in ("p", "p_adjusted"):
            assert here[key] == pytest.approx(said[key], rel=1e-5, abs=1e-12), (one, key)
