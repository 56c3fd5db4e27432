"""Scores of a finished run outlive whatever ends a later command: a stop, a kill, a failing task, a
full disk.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import three_tasks
from commands import tree
from factories import record
from three_tasks import LoadedRatings, suite_of

import bench
from bench.base.errors import BenchError, RunFailed
from bench.board.publish.gather import gather
from bench.board.verify import verify_run
from bench.library import Result
from bench.records import RunsFolder, Score
from bench.run.execute import forget
from bench.score.encoding import VectorStore
from bench.score.suites import SuitePlugin, registry

ORDER = ("First", "Second", "YesNo")


def encode(sentences: Sequence[str]) -> np.ndarray:
    return np.stack(
        [np.random.default_rng(zlib.crc32(s.encode())).normal(size=8) for s in sentences]
    )


def evaluate(runs: Path, *names: str, fresh: bool = False) -> Result:
    return bench.evaluate(encode, suites=names, runs=runs, name="mine", progress=False, fresh=fresh)


def use(monkeypatch: pytest.MonkeyPatch, code: str = "0") -> None:
    made = SuitePlugin(suite_of(ORDER), "three.py", code * 64)
    monkeypatch.setattr(registry, "_from_files", {"three": made})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "runs"
    evaluate(folder, "check")
    return folder


@pytest.fixture
def runs(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use(monkeypatch)
    shutil.copytree(finished, tmp_path / "runs")
    return tmp_path / "runs"


class Killed(BaseException):
    """Nothing is written after it, as after SIGKILL."""


def in_the_second_task(error: BaseException) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        score = LoadedRatings.score

        def failing(self: LoadedRatings, vectors: Any) -> Any:
            if self.task.name == "Second":
                raise error
            return score(self, vectors)

        monkeypatch.setattr(LoadedRatings, "score", failing)

    return patch


def stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt, like Ctrl-C, SIGTERM or the time limit of an engine, after the first score."""

    scored: list[str] = []
    score = LoadedRatings.score

    def counted(self: LoadedRatings, vectors: Any) -> Any:
        scored.append(self.task.name)
        return score(self, vectors)

    @contextmanager
    def stopped(**_: Any) -> Iterator[Callable[[], bool]]:
        yield lambda: bool(scored)

    monkeypatch.setattr(LoadedRatings, "score", counted)
    monkeypatch.setattr("bench.run.execute.stop_signals", stopped)


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    write = RunsFolder.write_predictions

    def full(self: RunsFolder, run_id: str, task: str, *more: Any) -> Path:
        if task == "Second":
            raise BenchError(f"cannot write {task}: No space left on device")
        return write(self, run_id, task, *more)

    monkeypatch.setattr(RunsFolder, "write_predictions", full)


ENDS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "stopped": stop,
    "killed": in_the_second_task(Killed()),
    "a task that cannot be scored": in_the_second_task(RunFailed("constant")),
    "a plugin's error": in_the_second_task(ZeroDivisionError("1 / 0")),
    "a plugin that exits": in_the_second_task(SystemExit(0)),
    "a full disk": fill_the_disk,
}


@pytest.mark.parametrize("end", ENDS)
def test_a_finished_run_stays_finished_whatever_ends_a_later_scoring(end, runs, monkeypatch):
    before = bench.load_runs(runs)[0]
    with monkeypatch.context() as patch:
        ENDS[end](patch)
        with pytest.raises((BenchError, KeyboardInterrupt, Killed)):
            evaluate(runs, "check", "three")
    after = bench.load_runs(runs)[0]
    assert after.record.status == "finished"
    assert after.scores[: len(before.scores)] == before.scores
    assert {score.task for score in after.scores} >= {"captions"}
    assert verify_run(after.folder).differences == []
    assert bench.compare_runs(after, runs=runs).tables[0].rows[0].runs == (after.run_id,)
    assert [run.record.run_id for run in gather(runs).runs] == [after.run_id]

    added: list[int] = []
    add = VectorStore.add
    monkeypatch.setattr(
        VectorStore, "add", lambda *given: added.append(add(*given)) or added[-1], raising=True
    )
    whole = evaluate(runs, "check", "three")
    assert sum(added) == 0, "the stored vectors let it go on"
    assert whole.record.error is None
    assert {score.task for score in whole.scores} == {"captions", *ORDER, "Avg."}
    assert verify_run(whole.folder).differences == []


def test_forgotten_scores_are_named_as_suites_are_typed(tmp_path: Path) -> None:
    """``--suite mteb`` and ``--suite own`` are none."""
    store, notes = RunsFolder(tmp_path), []
    scores = []
    for suite, task in (("sts", "STS12"), ("sts", "STS13"), ("mteb", "STS16"), ("own", "pairs")):
        scores.append(Score(suite=suite, task=task, protocol="p/1", metric="m", value=1.0, n=1))
    made = record("simcse", 1, scores=tuple(scores))
    store.write(made)
    reporter: Any = SimpleNamespace(note=notes.append)
    run: Any = SimpleNamespace(run_id=made.run_id, fingerprint=made.fingerprint, tasks=())
    forget(run, store, reporter)
    (note,) = notes
    assert note.endswith("--suite FILE,mteb:STS16,sts scores the new ones")


def test_another_suite_does_not_lower_the_peak_of_memory(runs, monkeypatch) -> None:
    """``bench compare --cost`` shows it beside the time of training."""
    before = bench.load_runs(runs)[0].record.cost
    assert before.peak_memory_bytes is not None and before.peak_memory_bytes > 1e7
    monkeypatch.setattr("bench.base.devices.host_memory_bytes", lambda: 1000)
    after = evaluate(runs, "check", "three").record.cost
    assert after.peak_memory_bytes == before.peak_memory_bytes
    assert after.host_memory_bytes == before.host_memory_bytes


def test_stopping_is_no_error_of_a_finished_run_and_a_failure_is_noted(runs, monkeypatch) -> None:
    for end, noted in (("stopped", False), ("a task that cannot be scored", True)):
        with monkeypatch.context() as patch:
            ENDS[end](patch)
            with pytest.raises(BenchError):
                evaluate(runs, "three")
        assert bool(bench.load_runs(runs)[0].record.error) is noted


def test_a_first_scoring_that_is_stopped_is_not_finished(tmp_path, monkeypatch) -> None:
    use(monkeypatch)
    with monkeypatch.context() as patch:
        stop(patch)
        with pytest.raises(BenchError):
            evaluate(tmp_path / "runs", "three")
    assert bench.load_runs(tmp_path / "runs")[0].record.status == "interrupted"


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_scores_of_changed_code_do_not_stand_beside_new_ones(end, runs, monkeypatch) -> None:
    """Else the average would be of two codes, and old scores would pass for new ones."""
    old = evaluate(runs, "three")
    use(monkeypatch, "1")
    monkeypatch.setattr(three_tasks, "OFFSET", 1.0, raising=True)
    with monkeypatch.context() as patch:
        ENDS[end](patch)
        with pytest.raises((BenchError, Killed)):
            evaluate(runs, "three")
    between = bench.load_runs(runs)[0]
    if between.record.provenance.execution.suites["three"].sha256 == "0" * 64:
        assert between.scores == old.scores  # it was killed before the first new score
    else:
        assert "Avg." not in [score.task for score in between.scores]
    new = evaluate(runs, "three")
    assert new["First"].value == pytest.approx(old["First"].value + 1)
    assert new["three/Avg."].value == pytest.approx(old["three/Avg."].value + 1)
    assert new.record.provenance.execution.suites["three"].sha256 == "1" * 64


@pytest.mark.parametrize("end", ["killed", "a full disk"])
def test_a_finished_run_is_kept_until_its_rerun_is_finished(end, runs, monkeypatch) -> None:
    whole = evaluate(runs, "check", "three")
    before = tree(whole.folder)
    with monkeypatch.context() as patch:
        ENDS[end](patch)
        with pytest.raises((BenchError, KeyboardInterrupt, Killed)):
            evaluate(runs, "check", "three", fresh=True)
    assert tree(whole.folder) == before
    assert [one.run_id for one in bench.load_runs(runs)] == [whole.run_id]
    assert [run.record.run_id for run in gather(runs).runs] == [whole.run_id]

    again = evaluate(runs, "check", "three", fresh=True)
    assert again.record.provenance.created >= whole.record.provenance.created
    assert sorted(again.scores, key=str) == sorted(whole.scores, key=str)
    assert verify_run(again.folder).differences == []
    assert {path.name for path in runs.iterdir()} == {whole.run_id}
    assert tree(again.folder).keys() == before.keys()


@pytest.mark.parametrize("moved", ["the first file", "the record"])
@pytest.mark.parametrize("fresh", [True, False])
def test_killed_while_a_rerun_takes_its_place_it_is_there_with_the_next_command(
    moved, fresh, runs, monkeypatch
) -> None:
    whole = evaluate(runs, "check", "three")
    before = tree(whole.folder)
    rename = Path.rename

    def killed(self: Path, target: Path) -> Path:
        is_moved = ".fresh" in self.parts and ".fresh" not in Path(target).parts
        if is_moved and (moved == "the first file" or self.name == "run.json"):
            raise Killed
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(Killed):
            evaluate(runs, "check", "three", fresh=True)
    assert len(bench.load_runs(runs)) == 0
    made = RunsFolder(runs / ".fresh").read(whole.run_id)
    monkeypatch.setattr(LoadedRatings, "score", None)  # nothing is scored again
    again = evaluate(runs, "check", "three", fresh=fresh)
    assert again.record == made
    assert tree(again.folder).keys() == before.keys()
    assert {path.name for path in runs.iterdir()} == {whole.run_id}
