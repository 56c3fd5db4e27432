"""Verdicts on transfer, clustering and CxC, against a computation that imports nothing of bench
(``recomputed.py``), on made runs. The published ones: tests/golden/test_version.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import recomputed
from factories import TRAINING
from made_runs import made_run, made_runs
from msgspec.structs import replace

from bench.board.board import build_board
from bench.board.publish.version_files import board_json
from bench.compare.statistics.table import NOT_TRAINED
from bench.records import Run


@pytest.mark.matrix(every=3)
@pytest.mark.parametrize("suite", ["transfer", "clustering", "cxc"])
@pytest.mark.parametrize("planned", [("promcse", "ct"), ("ct",)], ids=["no question", "question"])
def test_the_comparison_comes_out_again(
    tmp_path: Path, suite: str, planned: tuple[str, ...]
) -> None:
    methods = {"simcse": 0.8, "promcse": 0.6, "ct": 0.79}
    records = made_runs(tmp_path / "runs", methods, suites=(suite,))
    records.append(made_run(tmp_path / "runs", "cls", None, noise=1.6, suites=(suite,)))
    if len(planned) == 1:
        question = f'[question]\nbaseline = "simcse"\nrows = ["ct"]\nsuite = "{suite}"\n'
        (tmp_path / "runs" / records[0].run_id / "plan.toml").write_text(question, encoding="utf-8")
    found = [Run(one, tmp_path / "runs" / one.run_id) for one in records]
    board = build_board(found, version="v1", title="made")
    (tmp_path / "tables.json").write_text(board_json(board), encoding="utf-8")
    tested = [shown.table for shown in board.tables if shown.table.has_verdicts]
    assert {table.suite for table in tested} == {suite}
    for table in tested:
        again = recomputed.comparison(tmp_path, suite, table.protocol)
        assert again.keys() == {"promcse", "ct", "cls"}
        assert {name for name, of in again.items() if of["verdict"]} == set(planned)
        for row in table.rows:
            if row.is_baseline:
                continue
            cell = row.cells[-1]
            assert cell is not None and cell.against is not None
            here, there = cell.against, again[row.name]
            assert there["verdict"] == here.verdict
            for key in ("difference", "se", "ci_low", "ci_high", "ci_level", "equal_within"):
                assert there[key] == pytest.approx(getattr(here, key), abs=1e-6), (row.name, key)
            assert there["df"] == pytest.approx(here.df, rel=1e-5)
            if here.p is None:
                assert there["p"] is None
            else:
                assert there["p"] == pytest.approx(here.p, rel=1e-5, abs=1e-12)
            assert (there["verdict"] is None) == (row.stands != "")


def test_the_rows_above_their_start_come_out_again(tmp_path: Path) -> None:
    """PromCSE is where it began, with one seed; CT has gained, from three."""
    folder = tmp_path / "runs"
    records = made_runs(folder, {"simcse": 0.8, "promcse": 0.6, "ct": 0.79}, suites=("cxc",))
    done = replace(TRAINING, steps=0, best_step=0, dev_score=None)
    at_start = [("promcse", 0.6, 1), *(("ct", 3.0, seed) for seed in (1, 2, 3))]
    for method, noise, seed in at_start:
        recipe = {"budget": "0steps"}
        started = made_run(
            folder, method, seed, noise=noise, suites=("cxc",), recipe=recipe, training=done
        )
        records.append(started)
    board = build_board([Run(one, folder / one.run_id) for one in records], version="v1", title="")
    (tmp_path / "tables.json").write_text(board_json(board), encoding="utf-8")
    for shown in board.tables:
        table = shown.table
        assert [row.name for row in table.rows if row.stands == NOT_TRAINED] == ["promcse"]
        again = recomputed.comparison(tmp_path, "cxc", table.protocol)
        for row in table.rows:
            if row.is_baseline:
                continue
            found = again[f"{row.name} at step 0" if row.is_start else row.name]
            against = row.cells[-1] and row.cells[-1].against
            assert against is not None and found["verdict"] == against.verdict
            for key in ("difference", "se", "ci_low", "ci_high", "ci_level"):
                assert found[key] == pytest.approx(getattr(against, key), abs=1e-6), (row, key)
            if row.start is None:
                assert found["start"] is None
            else:
                interval = row.start.difference, row.start.ci_low, row.start.ci_high
                assert found["start"] == pytest.approx(interval, abs=1e-6)
