"""The command that makes published runs again: with the plan beside the record, or none."""

from __future__ import annotations

from pathlib import Path

from compared_runs import runs_in
from factories import record
from made_runs import made_runs

from bench.board.pages.board import comparison
from bench.board.repeat import NOT_REPEATABLE, plan_text, repeat
from bench.compare.tables import make_tables
from bench.records.run import Run


def test_a_row_is_made_again_with_the_plan_of_its_first_run(tmp_path: Path) -> None:
    records = [record("simcse", seed) for seed in (1, 2, 3)]
    runs = [Run(one, tmp_path / one.run_id) for one in records]
    assert repeat(runs) == NOT_REPEATABLE and plan_text(runs[0]) == ""
    runs[0].folder.mkdir()
    (runs[0].folder / "plan.toml").write_text("[[run]]\n")
    plan = f"bench run --plan runs/{runs[0].record.run_id}/plan.toml"
    assert repeat(runs[:1]) == plan
    assert repeat(runs) == f"{plan} --seeds 1-3"
    assert plan_text(runs[0]) == "[[run]]\n"


def test_a_page_of_any_runs_names_their_folder(tmp_path: Path) -> None:
    records = made_runs(tmp_path / "mine", {"simcse": 0.8}, seeds=(1,), suites=("check",))
    (tmp_path / "mine" / records[0].run_id / "plan.toml").write_text("[[run]]\n")
    runs = runs_in(tmp_path / "mine", records)
    page = comparison(runs, make_tables(runs))
    assert f"bench run --plan mine/{records[0].run_id}/plan.toml" in page


def test_a_link_or_a_file_too_large_is_no_plan(tmp_path: Path) -> None:
    run = Run(record("simcse", 1), tmp_path / "run")
    run.folder.mkdir()
    (tmp_path / "elsewhere").write_text("secret")
    (run.folder / "plan.toml").symlink_to("../elsewhere")
    assert repeat([run]) == NOT_REPEATABLE and plan_text(run) == ""
    (run.folder / "plan.toml").unlink()
    (run.folder / "plan.toml").write_bytes(b" " * (1 << 21))
    assert plan_text(run) == ""
