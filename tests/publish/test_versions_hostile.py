"""One bad record never stops a publication: it is left out by name, and the others are published."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from made_runs import made_run, made_runs
from msgspec.structs import replace

from bench.board.board import PublishedRun
from bench.publish import build, gather
from bench.publish.build import Asked, Outcome, publish
from bench.publish.gather import all_but_failing
from bench.publish.stored import ScoredRuns
from bench.runs import RunRecord, RunsFolder
from bench.verify import scores
from bench.verify.submit import pack

Publish = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    return tmp_path / "runs"


@pytest.fixture
def quick(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    monkeypatch.setattr(build, "_figures", lambda *_: ())

    def make(**asked: Any) -> Outcome:
        return publish(Asked(**{"runs": runs, "out": runs.parent / "board", "statistics": "no", **asked}))

    return make


def shown(made: Outcome) -> set[str]:
    return {run.record.run_id for run in made.board.runs}


# --- numbers that break arithmetic ---


def overlap_of_nothing(content: dict[str, Any]) -> None:
    one = {"suite": "sts", "task": "STS12", "text": None, "exact": 3, "near": 1, "rows": 4, "sentences": 0}
    content["provenance"]["corpus"] = {
        "name": "x",
        "sha256": "c" * 64,
        "overlap": {"tasks": [one, one | {"sentences": 10**200, "exact": 10**199}]},
    }


def cost_of_everything(content: dict[str, Any]) -> None:
    content["cost"]["train_seconds"] = 1.7e308


def score_of_everything(content: dict[str, Any]) -> None:
    content["scores"].append({"suite": "own", "task": "A", "protocol": "own/1", "metric": "m", "value": -1e308, "n": 1})


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
    assert odd in shown(made) or [line for line in made.board.left_out if line.startswith(f"{odd}: damaged: ")]
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


def failing(*words: str) -> Callable[[Sequence[str]], list[str]]:
    """Fails with a ``bad`` one, and where two that do not go together are there."""

    def make(items: Sequence[str]) -> list[str]:
        if any(one.startswith("bad") for one in items) or set(words) and set(words) <= set(items):
            raise ZeroDivisionError("division by zero")
        return list(items)

    return make


def test_those_that_fail_are_found_alone_or_together() -> None:
    for items, words, bad in (
        (["a", "b", "c"], (), []), (["a", "bad", "c"], (), ["bad"]), (["bad 1", *"abcdefg", "bad 2", "h"], (), ["bad 1", "bad 2"]),
        (list("abcdefgh"), ("b", "f"), ["f"]), (["a", "bad", *"bcdef"], ("a", "e"), ["bad", "e"]),
    ):  # fmt: skip
        left: list[tuple[str, str]] = []
        kept = all_but_failing(items, failing(*words), lambda one, why: left.append((one, str(why))))  # noqa: B023
        assert kept == [one for one in items if one not in bad]
        assert left == [(one, "division by zero") for one in bad]


def test_what_fails_with_every_run_is_no_fault_of_a_run() -> None:
    with pytest.raises(ZeroDivisionError):
        all_but_failing(["bad 1", "bad 2"], failing(), lambda *_: pytest.fail("one was left out"))


def test_a_run_whose_page_cannot_be_made_is_left_out_by_name(quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert shown(made) == shown(whole) and f"{bad}: cannot be shown: OverflowError: too large" in made.board.left_out
    assert made.folder is not None and whole.folder is not None
    files = {path.relative_to(made.folder) for path in made.folder.rglob("*") if path.is_file()}
    wanted = {path.relative_to(whole.folder) for path in whole.folder.rglob("*") if path.is_file()}
    assert files == wanted, "nothing of it is there, not even the page of its method"
    assert bench("publish", "--check", "--out", runs.parent / "board").exit_code == 0


def test_a_run_that_cannot_be_graded_is_left_out_by_name(quick: Publish, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.board import grades

    bad = made_run(runs, "mine", 3, suites=("check",)).run_id
    real = grades.graded

    def graded(own: Sequence[Any], *more: Any) -> Any:
        if any(record.run_id == bad for record, _ in own):
            raise KeyError("odd")
        return real(own, *more)

    monkeypatch.setattr(grades, "graded", graded)
    made = quick()
    assert bad not in shown(made) and len(shown(made)) == 4
    assert [line for line in made.board.left_out if line.startswith(f"{bad}: cannot be graded: KeyError")]
    assert gather.left_out(bad, "x", "", runs) == f"{bad}: x"


# --- own runs are scored again ---


def praised(store: RunsFolder, run: RunRecord, value: float = 99.99) -> RunRecord:
    better = replace(run, scores=(replace(run.scores[0], value=value), *run.scores[1:]))
    store.write(better)
    return better


def test_an_own_score_that_does_not_follow_from_the_predictions_is_not_published(quick: Publish, runs: Path) -> None:
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
        and f"{bad.run_id}: cannot be published: average of sts Avg.: 99.0 is recorded" in made.board.left_out[0]
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
    monkeypatch.setattr(scores, "check_scores", lambda record, folder: asked.append(record.run_id) or real(record, folder))
    ScoredRuns().check(run, store.folder(run.run_id))
    assert asked == [], "the same record and the same code"
    again = replace(run, cost=replace(run.cost, train_seconds=1.0))
    store.write(again)
    ScoredRuns().check(again, store.folder(run.run_id))
    assert asked == [run.run_id], "another record"
    monkeypatch.setattr("bench.publish.stored.folder_sha256", lambda folder: {"metrics/correlation.py": "another"})
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
        ScoredRuns, "check", lambda self, record, folder: checked.append(record.run_id) or real(self, record, folder)
    )
    made = quick(submissions=tmp_path / "box")
    assert theirs.run_id in shown(made) and sorted(checked) == sorted(shown(made) - {theirs.run_id})
