"""A version of many runs: the first run of a row has a page, which tells of the others; every
number still leads to a page.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench
from made_runs import made_run, made_runs
from valid_html import broken_links

from bench.board import board as boards
from bench.board.publish.build import publish_version
from bench.board.verify import runs_below
from bench.records import RunsFolder

SEEDS = (1, 2, 3)


@pytest.fixture
def version(tmp_path: Path, without_figures: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Publish two methods of three seeds, one with a second suite, and an untrained one.

    Four runs are many here.
    """
    monkeypatch.setattr(boards, "PAGES", 4)
    made_runs(tmp_path / "runs", {"promcse": 0.45}, seeds=SEEDS, suites=("check",))
    for seed in SEEDS:
        made_run(
            tmp_path / "runs",
            "simcse",
            seed,
            noise=0.8,
            suites=("check", "transfer") if seed > 1 else ("check",),
        )
    made_run(tmp_path / "runs", "cls", None, noise=1.6, suites=("check", "transfer"))
    folder = publish_version(runs=tmp_path / "runs", out=tmp_path / "boards").folder
    assert folder is not None
    return folder


def pages(version: Path) -> set[str]:
    return {page.parent.name for page in version.glob("runs/*/index.html")}


def test_the_first_run_of_each_row_has_a_page_and_tells_of_the_others(version: Path) -> None:
    store = RunsFolder(version / "runs")
    records = {(one.method, one.seed): one for one in store.records()[0]}
    assert len(records) == 7 and len(runs_below(version)) == 7, (
        "all runs are published and can be verified"
    )
    first = {
        records["cls", None].run_id,
        records["promcse", 1].run_id,
        records["simcse", 1].run_id,
        records["simcse", 2].run_id,
    }
    assert pages(version) == first, "the row of the second suite begins with seed 2"
    page = (version / "runs" / records["promcse", 1].run_id / "index.html").read_text()
    for seed in (2, 3):
        assert f'href="../../runs/{records["promcse", seed].run_id}/run.json"' in page
    assert broken_links(version.parent) == []
    assert bench("publish", "--check", "--out", version.parent).exit_code == 0
