"""One bad record never stops a publication: it is left out by name, and the others are published."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from made_runs import made_run
from msgspec.structs import replace
from published import Publish

from bench.base.errors import BenchError
from bench.board.board import PublishedRun
from bench.publish import gather
from bench.publish.build import Outcome
from bench.publish.gather import all_but_failing
from bench.publish.stored import ScoredRuns
from bench.runs import RunRecord, RunsFolder
from bench.verify import scores
from bench.verify.submit import pack


def shown(made: Outcome) -> set[str]:
    return {run.record.run_id for run in made.board.runs}


# --- numbers that break arithmetic ---


def overlap_of_nothing(content: dict[str, Any]) -> None:
    one = {
        "suite": "sts",
        "task": "STS12",
        "text": None,
        "exact": 3,
        "near": 1,
        "rows": 4,
        "sentences": 0,
    }
    content["provenance"]["corpus"] = {
        "name": "x",
        "sha256": "c" * 64,
        "overlap": {"tasks": [one, one | {"sentences": 10**200, "exact": 10**199}]},
    }


def cost_of_everything(content: dict[str, Any]) -> None:
    content["cost"]["train_seconds"] = 1.7e308


def score_of_everything(content: dict[str, Any]) -> None:
    content["scores"].append(
        {"suite": "own", "task": "A", "protocol": "own/1", "metric": "m", "value": -1e308, "n": 1}
    )


ATTACKS = [overlap_of_nothing, cost_of_everything, score_of_everything]


def changed(runs: Path, seed: int, change: Callable[[dict[str, Any]], None]) -> str:
    """A run of its own in ``runs``, with something odd in its record."""
    made = made_run(runs, "mine", seed, suites=("check",))
    path = runs / made.run_id / "run.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return made.run_id


@pytest.mark.parametrize("change", ATTACKS, ids=lambda one: one.__name__)
def test_a_record_with_strange_numbers_is_left_out_or_shown_and_the_others_are_there(
    quick: Publish, runs: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    others = {path.name for path in runs.iterdir()}
    odd = changed(runs, 7, change)
    made = quick()
    assert shown(made) >= others
    assert odd in shown(made) or [
        line for line in made.board.left_out if line.startswith(f"{odd}: damaged: ")
    ]
    done = bench("compare", "--runs", runs, "--cost")
    assert done.exit_code == 0 and "simcse" in done.stdout and "Traceback" not in done.output
    if change is not overlap_of_nothing:
        assert odd not in shown(made) and f"{odd}/run.json: " in done.stderr


@pytest.mark.slow
def test_nor_does_a_submission(quick: Publish, runs: Path, tmp_path: Path) -> None:
    from submit.test_collect import forge

    theirs = RunsFolder(tmp_path / "theirs")
    odd = {changed(theirs.path, seed, change) for seed, change in enumerate(ATTACKS)}
    good = made_run(theirs.path, "mine", 9, suites=("check",)).run_id
    (tmp_path / "box").mkdir()
    forge(theirs, tmp_path / "box")
    made = quick(submissions=tmp_path / "box")
    assert shown(made) >= {path.name for path in runs.iterdir()} | {good}
    refused = {one for one in odd if any(one in line for line in made.refused)}
    assert len(odd) == 3 and refused | (odd & shown(made)) == odd and len(refused) >= 2


# --- whatever else fails ---


def own(item: str) -> bool:
    """None is one that was sent."""
    return False


def failing(*words: str) -> Callable[[Sequence[str]], list[str]]:
    """Fails with a ``bad`` one, and where two that do not go together are there."""

    def make(items: Sequence[str]) -> list[str]:
        if any(one.startswith("bad") for one in items) or set(words) and set(words) <= set(items):
            raise ZeroDivisionError("division by zero")
        return list(items)

    return make


def test_those_that_fail_are_found_alone_or_together() -> None:
    for items, words, bad in (
        (["a", "b", "c"], (), []),
        (["a", "bad", "c"], (), ["bad"]),
        (["bad 1", *"abcdefg", "bad 2", "h"], (), ["bad 1", "bad 2"]),
        (list("abcdefgh"), ("b", "f"), ["f"]),
        (["a", "bad", *"bcdef"], ("a", "e"), ["bad", "e"]),
    ):
        left: list[tuple[str, str]] = []
        kept = all_but_failing(
            items,
            failing(*words),
            lambda one, why: left.append((one, str(why))),  # noqa: B023
            own,
        )
        assert kept == [one for one in items if one not in bad]
        assert left == [(one, "division by zero") for one in bad]


def test_what_fails_with_every_run_is_no_fault_of_a_run() -> None:
    with pytest.raises(ZeroDivisionError):
        all_but_failing(
            ["bad 1", "bad 2"], failing(), lambda *_: pytest.fail("one was left out"), own
        )


def test_what_fails_with_whatever_runs_are_together_is_no_fault_of_a_run() -> None:
    """An error of bench's own on a page that one run alone does not have: not one run after the other is left out for it."""

    def make(items: Sequence[str]) -> Sequence[str]:
        if len(items) > 1:
            raise ZeroDivisionError("division by zero")
        return items

    left: list[str] = []
    with pytest.raises(ZeroDivisionError):
        all_but_failing(list("abcdefgh"), make, lambda one, why: left.append(one), own)
    assert len(left) == 2


def test_any_number_that_others_sent_is_left_out_though_each_fails_only_beside_others() -> None:
    def make(items: Sequence[str]) -> Sequence[str]:
        if len(items) > 1 and any(one.startswith("sent") for one in items):
            raise ZeroDivisionError("division by zero")
        return items

    sent, left = [f"sent {i}" for i in range(6)], list[str]()
    kept = all_but_failing(
        [*"abcd", *sent],
        make,
        lambda one, why: left.append(one),
        lambda one: one.startswith("sent"),
    )
    assert list(kept) == list("abcd") and sorted(left) == sent


def test_what_is_wrong_without_those_that_were_left_out_says_so() -> None:
    def make(items: Sequence[str]) -> Sequence[str]:
        if "bad" in items:
            raise OverflowError("too large")
        if "base" not in items:
            raise BenchError("unknown baseline 'bad'", "--baseline")
        return items

    with pytest.raises(
        BenchError, match="unknown baseline 'bad' .1 left out before: OverflowError: too large."
    ) as caught:
        all_but_failing(["bad", "a"], make, lambda *_: None, own)
    assert caught.value.hint == "--baseline"


def test_a_run_whose_page_cannot_be_made_is_left_out_by_name(
    quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.show.pages import run_page

    whole = quick(out=runs.parent / "whole")
    bad = made_run(runs, "mine", 3, suites=("check",)).run_id
    real = run_page.render

    def render(board: Any, run: PublishedRun) -> str:
        if run.record.run_id == bad:
            raise OverflowError("too large")
        return real(board, run)

    monkeypatch.setattr(run_page, "render", render)
    made = quick()
    assert (
        shown(made) == shown(whole)
        and f"{bad}: cannot be shown: OverflowError: too large" in made.board.left_out
    )
    assert made.folder is not None and whole.folder is not None
    files = {path.relative_to(made.folder) for path in made.folder.rglob("*") if path.is_file()}
    wanted = {path.relative_to(whole.folder) for path in whole.folder.rglob("*") if path.is_file()}
    assert files == wanted, "nothing of it is there, not even the page of its method"
    assert bench("publish", "--check", "--out", runs.parent / "leaderboards").exit_code == 0


def test_a_run_that_cannot_be_graded_is_left_out_by_name(
    quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.board import grades

    bad = made_run(runs, "mine", 3, suites=("check",)).run_id
    real = grades.grade_runs

    def graded(own: Sequence[Any], *more: Any) -> Any:
        if any(record.run_id == bad for record, _ in own):
            raise KeyError("odd")
        return real(own, *more)

    monkeypatch.setattr(grades, "grade_runs", graded)
    made = quick()
    assert bad not in shown(made) and len(shown(made)) == 4
    assert [
        line
        for line in made.board.left_out
        if line.startswith(f"{bad}: cannot be graded: KeyError")
    ]
    assert gather.left_out(bad, "x", "", runs) == f"{bad}: x"


# --- own runs are scored again ---


def praised(store: RunsFolder, run: RunRecord, value: float = 99.99) -> RunRecord:
    better = replace(run, scores=(replace(run.scores[0], value=value), *run.scores[1:]))
    store.write(better)
    return better


def test_an_own_score_that_does_not_follow_from_the_predictions_is_not_published(
    quick: Publish, runs: Path
) -> None:
    store = RunsFolder(runs)
    bad = store.read(store.ids()[0])
    praised(store, bad)
    made = quick()
    assert bad.run_id not in shown(made) and len(shown(made)) == 3
    (line,) = made.board.left_out
    assert line.startswith(
        f"{bad.run_id}: cannot be published: score of check CHECK: 99.990000 is recorded, its predictions give "
    )
    assert made.folder is not None and not (made.folder / "runs" / bad.run_id).exists()
    assert ":99.99" not in (made.folder / "tables.json").read_text()


def test_nor_an_average_that_its_tasks_do_not_give(quick: Publish, tmp_path: Path) -> None:
    made_run(tmp_path / "sts", "simcse", 1)
    bad = made_run(tmp_path / "sts", "promcse", 1)
    higher = tuple(replace(one, value=99.0) if one.task == "Avg." else one for one in bad.scores)
    RunsFolder(tmp_path / "sts").write(replace(bad, scores=higher))
    made = quick(runs=tmp_path / "sts")
    assert (
        len(shown(made)) == 1
        and f"{bad.run_id}: cannot be published: average of sts Avg.: 99.0 is recorded"
        in made.board.left_out[0]
    )


def test_what_was_scored_again_is_kept_by_the_record_and_the_code(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    store = RunsFolder(runs)
    run = store.read(store.ids()[0])
    first = ScoredRuns()
    first.check(run, store.folder(run.run_id))
    first.keep()
    asked: list[str] = []
    real = scores.check_scores
    monkeypatch.setattr(
        scores,
        "check_scores",
        lambda record, folder, *more, **given: (
            asked.append(record.run_id) or real(record, folder, *more, **given)
        ),
    )
    ScoredRuns().check(run, store.folder(run.run_id))
    assert asked == [], "the same record and the same code"
    again = replace(run, cost=replace(run.cost, train_seconds=1.0))
    store.write(again)
    ScoredRuns().check(again, store.folder(run.run_id))
    assert asked == [run.run_id], "another record"
    monkeypatch.setattr(
        "bench.publish.stored.folder_sha256", lambda folder: {"metrics/correlation.py": "another"}
    )
    store.write(run)
    ScoredRuns().check(run, store.folder(run.run_id))
    assert asked == [run.run_id] * 2, "other code"


def test_a_record_without_hashes_is_scored_every_time(runs: Path) -> None:
    store = RunsFolder(runs)
    run = store.read(store.ids()[0])
    old = replace(run, scores=tuple(replace(one, predictions_sha256=None) for one in run.scores))
    store.write(old)
    scored = ScoredRuns()
    before = set(scored.known)
    scored.check(old, store.folder(run.run_id))
    assert scored.known == before


def test_a_submission_of_the_publishers_own_kind_is_not_scored_twice(
    quick: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = made_run(tmp_path / "theirs", "mine", 7, suites=("check",))
    (tmp_path / "box").mkdir()
    pack([tmp_path / "theirs" / theirs.run_id], tmp_path / "box" / "a.zip", by="Ada")
    checked: list[str] = []
    real = ScoredRuns.check
    monkeypatch.setattr(
        ScoredRuns,
        "check",
        lambda self, record, folder, *more: (
            checked.append(record.run_id) or real(self, record, folder, *more)
        ),
    )
    made = quick(submissions=tmp_path / "box")
    assert theirs.run_id in shown(made) and sorted(checked) == sorted(shown(made) - {theirs.run_id})


# --- disks and processes that give up ---


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class FullDisk:
    """The disk is full from the write with this number on: whatever is written to ``out`` fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, out: Path, at: float) -> None:
        self.writes = 0
        write_bytes, fsync = Path.write_bytes, os.fsync

        def fill(path: Path) -> None:
            self.writes += path.is_relative_to(out)
            if path.is_relative_to(out) and self.writes > at:
                raise OSError(errno.ENOSPC, "No space left on device", str(path))

        def write(path: Path, data: bytes) -> int:
            fill(path)
            return write_bytes(path, data)

        def sync(handle: int) -> None:  # of what is written whole
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            if path.is_file():  # what a folder says of it is a courtesy
                fill(path)
            fsync(handle)

        monkeypatch.setattr(Path, "write_bytes", write)
        monkeypatch.setattr(os, "fsync", sync)


EVERY = bool(os.environ.get("BENCH_TEST_LONG"))


@pytest.mark.slow
def test_a_disk_that_fills_at_any_write_leaves_what_the_message_says(
    quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each write where ``BENCH_TEST_LONG`` is set, else at some, and at each beside the versions."""
    out = runs.parent / "leaderboards"
    quick(formats=("md",))
    made_run(runs, "promptbert", 1, suites=("check",))
    shutil.copytree(out, runs.parent / "before")
    before = contents(out)
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, out, float("inf"))
        quick(formats=("md",))
    whole, count = contents(out), disk.writes
    beside = [name for name in whole if "/" not in name and whole[name] != before.get(name)]
    assert count > 20 and len(beside) > 3
    for at in range(count) if EVERY else [0, 1, 5, *range(count - len(beside) - 1, count)]:
        shutil.rmtree(out)
        shutil.copytree(runs.parent / "before", out)
        with monkeypatch.context() as patch, pytest.raises(BenchError) as caught:
            FullDisk(patch, out, at)
            quick(formats=("md",))
        left, said = contents(out), caught.value.message
        if "v2/version.json" in left:
            assert said.startswith(
                "v2 is in place and whole; what lies beside it is not up to date ("
            )
            assert {name: data for name, data in left.items() if name.startswith("v2/")} == {
                name: data for name, data in whole.items() if name.startswith("v2/")
            }
            stale = said.partition("(")[2].partition(")")[0].split(", ")
            assert (
                {name for name in beside if left.get(name) != whole[name]}
                <= set(stale)
                <= set(beside)
            )
        else:
            assert left == before and "nothing was published" in said or "cannot write in" in said
        quick(formats=("md",))
        assert contents(out) == whole, at


@pytest.mark.slow
def test_what_a_killed_publication_leaves_is_told_and_swept_at_the_next_call(
    quick: Publish, runs: Path
) -> None:
    """The folder of a process that lives is left alone."""
    out = runs.parent / "leaderboards"
    quick()
    code = (
        "import sys, time, pathlib, bench.publish.build as b\n"
        "with b._aside(pathlib.Path(sys.argv[1])) as aside:\n"
        "    (aside / 'version').mkdir(); print(aside.name, flush=True); time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    try:
        assert quick(anyway=True).name == "v2" and (out / name / "version").is_dir()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    done = bench("publish", "--check", "--out", out)
    assert (
        done.exit_code == 1
        and f"{name}: a version that is being made, or was left by a process that was killed"
        in done.stdout
    )
    assert quick().folder is None and not (out / name).exists()
    assert bench("publish", "--check", "--out", out).exit_code == 0


def test_stray_files_and_folders_beside_the_versions_are_told(quick: Publish, runs: Path) -> None:
    out = runs.parent / "leaderboards"
    quick()
    quick(preview=True)
    for name in (".gitattributes", "CNAME"):
        (out / name).write_text("x")
    assert bench("publish", "--check", "--out", out).exit_code == 0
    (out / "index2.html").write_text("better")
    (out / "v01").mkdir()
    done = bench("publish", "--check", "--out", out)
    assert done.exit_code == 1
    for name in ("index2.html", "v01"):
        assert (
            f"  {name}: bench publish did not write it; nothing vouches for it"
            in done.stdout.splitlines()
        )
    made_run(runs, "promptbert", 1, suites=("check",))
    assert quick().name == "v2", "they stop no publication"


def test_what_is_left_of_a_removal_that_was_killed_is_swept_at_the_next_call(
    quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is the first file that went: without a name of its own it would pass for one that is just being made, for an hour."""
    out = runs.parent / "leaderboards"
    quick()

    def half(folder: Path, **_: object) -> None:
        for path in folder.iterdir():
            if path.is_file():
                path.unlink()

    with monkeypatch.context() as patch:
        patch.setattr("bench.publish.build.shutil.rmtree", half)
        assert quick(anyway=True).name == "v2"
    left = [path.name for path in out.iterdir() if path.name.startswith(".publishing-")]
    assert len(left) == 1 and not list((out / left[0]).glob("*lock*"))
    assert bench("publish", "--check", "--out", out).exit_code == 1
    assert quick().folder is None
    assert [path.name for path in out.iterdir() if path.name.startswith(".publishing-")] == []
    assert bench("publish", "--check", "--out", out).exit_code == 0


def test_an_erratum_of_a_killed_process_does_not_stop_the_next_publication(
    quick: Publish, runs: Path
) -> None:
    out = runs.parent / "leaderboards"
    quick()
    assert bench("publish", "--out", out, "--erratum", "v1", "one").exit_code == 0
    beside = {
        path: path.read_bytes()
        for path in out.iterdir()
        if path.is_file() and path.name != "errata.json"
    }
    assert bench("publish", "--out", out, "--erratum", "v1", "two").exit_code == 0
    for (
        path,
        data,
    ) in beside.items():  # as it is where the process was killed after the first of its files
        path.write_bytes(data)
    assert (
        "errata.json: it is not in versions.json"
        in bench("publish", "--check", "--out", out).stdout
    )
    assert quick().folder is None
    assert (
        bench("publish", "--check", "--out", out).exit_code == 0
        and "two" in (out / "index.html").read_text()
    )
