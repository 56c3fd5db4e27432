"""``bench submit`` as it is called; and a submission that its receiver encodes again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree
from msgspec.structs import replace
from scored_run import finished_run

from bench.board.grades import grade_runs
from bench.data.sets import DataFolder
from bench.runs import RunsFolder
from bench.score.suites import suite
from bench.verify.attestation import sent
from bench.verify.submit import collect


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def test_one_command_packs_and_another_reads(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    file = tmp_path / "mine.zip"
    done = bench("submit", run.run_id, "--runs", store.path, "--to", file, "--by", "Ada")
    assert done.exit_code == 0 and done.stdout == f"{file}\n"
    assert (
        f"{run.run_id}: 1 score, computed again and the same, with its checkpoint" in done.stderr
        and "--by NAME" not in done.stderr
    )
    found = bench("submit", "--check", file)
    assert found.exit_code == 0 and found.stdout.startswith(
        f"taken: {run.run_id}: sent in by Ada; 1 score computed again"
    )


def test_several_runs_by_the_beginning_of_their_ids_into_the_working_folder(
    store: RunsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [finished_run(store, seed) for seed in (1, 2)]
    done = bench("submit", "simcse-builtin", "--runs", store.path, "--json")
    facts = json.loads(done.stdout)
    assert facts["file"] == "submission.zip" and {one["run_id"] for one in facts["runs"]} == {
        run.run_id for run in runs
    }
    assert facts["bytes"] == (tmp_path / "submission.zip").stat().st_size
    assert bench("submit", runs[0].run_id, "--runs", store.path).stdout == f"{runs[0].run_id}.zip\n"
    taken = [
        json.loads(line)
        for line in bench("submit", "--check", "submission.zip", "--json").stdout.splitlines()
    ]
    assert [one["taken"] for one in taken] == [True, True] and all(
        one["submitted_by"] is None for one in taken
    )


def test_what_cannot_be_packed_is_one_line(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store, status="interrupted")
    given = ("--runs", store.path, "--to", tmp_path / "mine.zip")
    assert "is not finished, but interrupted" in error_line(bench("submit", run.run_id, *given))
    assert "unknown run 'other'" in error_line(bench("submit", "other", *given))
    assert "Missing argument 'RUN...'" in error_line(bench("submit"))
    assert not (tmp_path / "mine.zip").exists()


def test_a_place_that_cannot_be_written(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    done = bench("submit", run.run_id, "--runs", store.path, "--to", tmp_path / "no" / "mine.zip")
    assert "cannot write" in error_line(done)


def test_refusals_are_lines_and_exit_code_1(store: RunsFolder, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no zip file at all" * 10)
    done = bench("submit", "--check", tmp_path / "a.zip")
    assert (
        done.exit_code == 1
        and done.stdout == ""
        and done.stderr.startswith("refused: a.zip is refused: it is no zip file")
    )
    assert (
        json.loads(bench("submit", "--check", tmp_path / "a.zip", "--json").stdout)["taken"]
        is False
    )
    assert "there is no file" in error_line(bench("submit", "--check", tmp_path / "b.zip"))
    assert "a.zip is refused" in error_line(bench("verify", tmp_path / "a.zip"))


def test_verify_reads_a_submission_and_writes_nothing(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    bench("submit", run.run_id, "--runs", store.path, "--to", tmp_path / "mine.zip")
    before = tree(tmp_path)
    done = bench("verify", tmp_path / "mine.zip")
    assert done.exit_code == 0 and "1 run, 1 score computed again: nothing differs" in done.output
    assert tree(tmp_path) == before


LETTERS = """
import numpy as np
from bench.method import Method

class Letters(Method):
    name = "letters"
    settings = deterministic = ("none",)
    own_backbone = "letters"

    def encode(self, sentences):
        return np.array([[one.count(c) for c in "abcdefghijklmnopqrstuvwxyz "] for one in sentences], dtype=np.float32)
"""


@pytest.mark.slow
def test_what_is_encoded_again_has_the_grade_checkpoint(tmp_path: Path) -> None:
    """A submission, whose receiver keeps the finding in the own runs folder, and an own run, which keeps it in its folder."""
    plugin = tmp_path / "letters.py"
    plugin.write_text(LETTERS)
    made = bench(
        "run",
        "--plugin",
        plugin,
        "--method",
        "letters",
        "--suite",
        "check",
        "--runs",
        tmp_path / "runs",
    )
    assert made.exit_code == 0, made.output
    run, box, keeper = the_run(tmp_path / "runs"), tmp_path / "box", tmp_path / "keeper"
    box.mkdir()
    assert bench("submit", run, "--to", box / "mine.zip", "--by", "Ada").exit_code == 0
    assert [
        one.grade for one in grade_runs([], collect(box, tmp_path / "before", keeper=keeper))
    ] == ["submitted"]
    done = bench(
        "verify",
        box / "mine.zip",
        run,
        "--plugin",
        plugin,
        "--retrain-free",
        "--device",
        "cpu",
        "--runs",
        keeper,
    )
    assert done.exit_code == 0, done.output
    assert [path.name for path in box.iterdir()] == ["mine.zip"] and sent(keeper, run).is_file()
    assert [one.grade for one in grade_runs([], collect(box, tmp_path / "elsewhere"))] == [
        "submitted"
    ]
    (one,) = grade_runs([], collect(box, tmp_path / "after", keeper=keeper))
    assert (one.grade, one.submitted_by) == (
        "checkpoint",
        "Ada",
    ) and "the same predictions on 1 task" in one.reason
    asked = {
        sentence
        for task in suite("check").tasks
        for sentence in task.load(DataFolder(None, offline=True), "tokenised").sentences
    }
    assert one.reason.startswith(
        f"all {len(asked):,} sentences encoded again from its checkpoint on "
    )
    record = RunsFolder(run.parent).read(run.name)
    theirs = RunsFolder(tmp_path / "theirs")
    shutil.copytree(
        run, theirs.folder(run.name), ignore=shutil.ignore_patterns("verified.json", ".lock")
    )
    theirs.write(replace(record, cost=replace(record.cost, eval_seconds=1.0)))
    assert (
        bench(
            "submit", theirs.folder(run.name), "--to", tmp_path / "eve.zip", "--by", "Eve"
        ).exit_code
        == 0
    )
    again = bench(
        "verify", tmp_path / "eve.zip", "--retrain-free", "--device", "cpu", "--runs", keeper
    )
    assert again.exit_code == 0 and sent(keeper, run).is_file(), (
        "another run of its name, which is not encoded, takes nothing away"
    )
    assert [one.grade for one in grade_runs([(record, run)])] == ["checkpoint"]


@pytest.mark.slow
def test_a_backbone_in_a_folder_of_its_sender_is_not_opened(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    assert (
        bench(
            "submit", the_run(finished[0]), "--to", tmp_path / "mine.zip", "--by", "Ada"
        ).exit_code
        == 0
    )
    done = bench(
        "verify",
        tmp_path / "mine.zip",
        "--retrain-free",
        "--device",
        "cpu",
        "--runs",
        tmp_path / "keeper",
    )
    assert done.exit_code == 0 and "neither in the submission nor a model of the hub" in " ".join(
        done.output.split()
    ), done.output
    assert not (tmp_path / "keeper").exists()
