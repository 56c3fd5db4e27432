"""``bench compare`` first states its answer, with the verdicts of the published page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_run, made_runs

from bench.board.board import build_board
from bench.compare.answer import verdict_of
from bench.compare.finding import describe_finding
from bench.records import Run, RunsFolder


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(0.5, 0.3), (0.3, 0.5), (0.4, 0.401)])
def test_every_verdict_is_that_of_the_page(tmp_path: Path, noise: tuple[float, float]) -> None:
    """On data in which the one method wins, the other, and none."""
    made_runs(tmp_path, dict(zip(("simcse", "promcse"), noise, strict=True)), suites=("sts", "cxc"))
    made_run(tmp_path, "cls", None, noise=1.6)
    records, _ = RunsFolder(tmp_path).records()
    published = [Run(record=one, folder=tmp_path / one.run_id) for one in records]
    page = build_board(published, version="v1", title="made")
    shown = bench("compare", "--runs", tmp_path, COLUMNS="200").stdout
    finding = " ".join(shown.split("\n\n")[0].split())
    assert finding == describe_finding(page.tables[0].table)
    signs = {"better": "▲", "worse": "▼"}
    for row in page.tables[0].table.rows:
        (line, *_) = re.findall(rf"^{row.method} .*\d\.\d\d.*", shown, re.M)
        assert row.cells[-1] is not None and f" {row.cells[-1].mean:.2f} " in line
        assert set(line) & {"▲", "▼"} == set(signs.get(verdict_of(row) or "", ""))
        assert ("◆" in line) == row.may_be_best
        words = {"better", "worse", "baseline"} & set(line.split())
        expected = {verdict_of(row)} & signs.keys() or ({"baseline"} if row.is_baseline else set())
        assert words == expected
