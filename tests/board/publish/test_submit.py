"""``bench submit`` writes a folder that passes the checks, completely or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import bench
from msgspec.structs import replace
from scored_run import finished_run
from submitted import flipped, own_suite

from bench.board.publish import submit
from bench.board.publish.submissions import check_submission
from bench.compare.senders import SENDER_FILE, submitter_of
from bench.records import RunsFolder


def test_submit_writes_a_folder_that_passes(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    words = ("submit", "simcse", "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 0 and done.stdout.strip() == str(tmp_path / "box" / run.run_id)
    made = tmp_path / "box" / run.run_id
    files = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert files == {"run.json", SENDER_FILE, "predictions/CHECK.npz"}
    assert check_submission(made) == run
    again = bench(*words)  # a command may have been killed at its very end
    assert again.exit_code == 0 and again.stdout == done.stdout
    other = bench(*words[:-1], "Grace")
    assert other.exit_code == 2 and "already exists" in other.stderr
    assert check_submission(made) == run and submitter_of(made) == "Ada"


def test_if_one_of_several_runs_is_refused_none_is_written(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    finished_run(theirs, 1)
    flipped(theirs, finished_run(theirs, 2))
    done = bench("submit", "simcse", "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    assert done.exit_code == 2 and "-s2-" in done.stderr and "cannot be submitted" in done.stderr
    assert not (tmp_path / "box").exists()


def test_submit_refuses_what_a_board_refuses_and_leaves_nothing(
    theirs: RunsFolder, tmp_path: Path
) -> None:
    run = finished_run(theirs)
    own_suite(theirs, run)
    words = ("submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 2 and "mine is not known" in done.stderr and "--suite" in done.stderr
    assert not (tmp_path / "box").exists()
    done = bench(*words, "--suite", "check")
    assert done.exit_code == 0, done.output
    assert [score.suite for score in check_submission(tmp_path / "box" / run.run_id).scores] == [
        "check"
    ]


def test_a_kill_leaves_nothing_in_the_place_and_the_same_command_goes_through(
    theirs: RunsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, box = finished_run(theirs), tmp_path / "box"

    def killed(folder: Path) -> None:
        """Ends as a kill does: what was written aside stays."""
        assert folder.parent.name.startswith(submit.TEMPORARY)
        shutil.copytree(folder.parent, box / f"{submit.TEMPORARY}of-a-killed-one")
        raise KeyboardInterrupt

    monkeypatch.setattr(submit, "check_submission", killed)
    with pytest.raises(KeyboardInterrupt):
        submit.submit_runs([theirs.folder(run.run_id)], box, "Ada")
    assert not (box / run.run_id).exists() and list(box.iterdir())
    monkeypatch.undo()
    (made,) = submit.submit_runs([theirs.folder(run.run_id)], box, "Ada")
    assert made == box / run.run_id and list(box.iterdir()) == [made]
    assert check_submission(made) == run


def test_a_name_is_checked_before_anything_is_written(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    done = bench(
        "submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada\u200b"
    )
    assert done.exit_code == 2 and "--by must be a name" in done.stderr
    assert not (tmp_path / "box").exists()


def test_a_run_that_names_a_folder_is_not_submitted(theirs: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(theirs)
    origin = replace(run.provenance, command="bench run --data C:\\Users\\ada\\sets")
    theirs.write(replace(run, provenance=origin))
    words = ("submit", run.run_id, "--runs", theirs.path, "--to", tmp_path / "box", "--by", "Ada")
    done = bench(*words)
    assert done.exit_code == 2 and "Users" not in done.stderr
    assert "run.json: provenance.command holds the absolute path of 'sets'" in done.stderr
