"""Over versions: a method's line says what it had in each version, and names what moved it, as far as the versions' own files say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import made_run
from published import Publish

from bench.publish.index import history
from bench.publish.versions import versions
from bench.runs import RunsFolder

REAL = Path(__file__).parents[2] / "leaderboards"


def averages(runs: Path, method: str) -> float:
    records, _ = RunsFolder(runs).records()
    found = [
        score.value
        for one in records
        if one.method == method
        for score in one.scores
        if score.task == "CHECK"
    ]
    return sum(found) / len(found)


@pytest.mark.slow
def test_a_line_a_method_and_what_moved_it(quick: Publish, runs: Path, out: Path) -> None:
    quick()
    assert history(versions(out)) is None, "one version has no history"
    before = {name: averages(runs, name) for name in ("simcse", "promcse")}
    made_run(runs, "promcse", 3, noise=0.9, suites=("check",))
    made_run(runs, "promptbert", 1, suites=("check",))
    quick()
    found = history(versions(out))
    assert found is not None and found.versions == ("v1", "v2")
    rows = {row.method: row for row in found.rows}
    assert rows["simcse"].moved == "unchanged" and {mean for mean, _ in rows["simcse"].cells} == {
        f"{before['simcse']:.2f}"
    }
    now = averages(runs, "promcse")
    assert [mean for mean, _ in rows["promcse"].cells] == [f"{before['promcse']:.2f}", f"{now:.2f}"]
    assert (
        rows["promcse"].moved.startswith(f"v2: average {before['promcse']:.2f} before (")
        and "seeds" in rows["promcse"].moved
    )
    assert rows["promptbert"].cells[0] == ("", "") and rows["promptbert"].moved == "v2: new"
    page, readme = (
        (out / "index.html").read_text(encoding="utf-8"),
        (out / "README.md").read_text(encoding="utf-8"),
    )
    assert (
        "what moved it" in page
        and rows["promcse"].moved in page
        and "## Over versions" in readme
        and "v2: new" in readme
    )


def test_the_published_versions_moved_by_their_statistics_alone() -> None:
    found = history(versions(REAL))
    assert found is not None and found.versions[:2] == ("v1", "v2")
    tables = [
        json.loads((REAL / name / "tables.json").read_text())["tables"][0]["table"]
        for name in found.versions[:2]
    ]
    ranks = [{row["method"]: row["rank"] for row in table["rows"]} for table in tables]
    for row in found.rows:
        (mean, was), (same, now) = row.cells[:2]
        if not mean:
            continue  # new in a later version
        name = row.method.split(" ")[0]
        assert mean == same and was == str(ranks[0][name])
        kept = ranks[1][name] == [ranks[0][name]] * 2
        if len(found.versions) == 2:
            assert row.moved == (
                "unchanged"
                if kept
                else f"v2: rank {was} before (statistics: version 1 before, 2 now)"
            ), now


@pytest.mark.slow
def test_a_version_that_cannot_be_read_has_no_history(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick()
    made_run(runs, "promptbert", 1, suites=("check",))
    quick()
    (out / "v1" / "tables.json").write_text("[]")
    assert history(versions(out)) is None
