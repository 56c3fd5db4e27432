"""Submitted runs on a board: they replace no other run, and have their own rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from commands import bench
from msgspec.structs import replace
from scored_run import finished_run
from submitted import as_submission

from bench.board.publish.gather import gather
from bench.records import RunsFolder


def test_an_own_run_is_never_replaced(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    shutil.copytree(theirs.path, tmp_path / "own")
    folder = as_submission(theirs)
    found = gather(tmp_path / "own", theirs.path)  # the very same run: nothing to add
    assert (found.refused, len(found.runs), found.senders) == ([], 1, {})
    theirs.write(replace(run, cost=replace(run.cost, train_seconds=1.0)))
    (line,) = gather(tmp_path / "own", theirs.path).refused
    assert line == f"{folder.name}: refused: {run.run_id} has the same id or fingerprint"


def test_a_submission_among_own_runs_keeps_its_sender(theirs: RunsFolder) -> None:
    run = finished_run(theirs)
    as_submission(theirs)
    assert gather(theirs.path).senders == {run.run_id: "Eve"}


def test_rows_of_others_are_separate_and_say_who_ran_them(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    finished_run(theirs, 1)
    for seed in (2, 3):
        finished_run(RunsFolder(tmp_path / "own"), seed, weights=seed)
    as_submission(theirs)
    out = tmp_path / "boards"
    words = ("publish", "--runs", tmp_path / "own", "--submissions", theirs.path, "--out", out)
    done = bench(*words)
    assert done.exit_code == 0, done.output
    tables = json.loads((out / "v1" / "tables.json").read_bytes())["tables"]
    rows = [
        (one["table"].get("submitted_by"), row["differs"].get("submitted by"), len(row["runs"]))
        for one in tables
        for row in one["table"]["rows"]
    ]
    assert rows == [(None, None, 2), ("Eve", "Eve", 1)]
    run = next((out / "v1" / "runs").glob("*-s1-*"))
    assert "Run by Eve" in (run / "index.html").read_text()
    assert "Eve" in (out / "v1" / "README.md").read_text()
    # the next version knows who ran what, without the submission
    done = bench("publish", "--runs", out / "v1" / "runs", "--out", out, "--note", "n")
    assert done.exit_code == 0, done.output
    assert (run.parents[2] / "v2" / "runs" / run.name / "index.html").read_text().count("Eve")
    done = bench("verify", out / "v2")
    assert done.exit_code == 0 and "nothing differs" in done.output, done.output
