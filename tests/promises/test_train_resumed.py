"""Promise 10: killed at any moment, the same command goes on and ends with the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from paused import lasting, said, stopped, until, write_paused
from started import UnexpectedEnd, begun, bench, hashes, record, run_folders

STEPS = 24
PARENTS: dict[str, tuple[tuple[str, str], list[str]]] = {
    "simcse": (("simcse", "SimCSE"), []),
    "promcse": (("promcse", "PromCSE"), []),
    "dcpcse with mlm": (("dcpcse", "DCPCSE"), ["--set", "mlm=true"]),
    "esimcse, a queue": (("esimcse", "ESimCSE"), []),
    "an adapter": (("simcse", "SimCSE"), ["--set", "adapter=lora", "--set", "lora_rank=2"]),
    "chunks": (("simcse", "SimCSE"), ["--chunk", "8"]),
    "the best of several checkpoints": (("simcse", "SimCSE"), ["--set", "eval_steps=5"]),
}


@dataclass(frozen=True)
class Work:
    """A command that trains for some steps, with the file in which each step is noted."""

    folder: Path
    words: list[str | Path]

    def env(self, steps: str, pause: float = 0.0) -> dict[str, str]:
        """Save a state at every step: what is lost is then the step at which it was killed."""
        noted = str(self.folder / steps)
        return {"STEPS": noted, "PAUSE": str(pause), "BENCH_SAVE_SECONDS": "0"}

    def on(self, runs: str | Path) -> list[str | Path]:
        return [*self.words, "--runs", self.folder / runs]

    def steps(self, name: str, what: str = "step") -> int:
        return len(said(self.folder / name, what))

    def done(self, runs: str | Path, steps: str, *more: str) -> Path:
        """Run it to its end, and return the folder of its one run."""
        bench(*self.on(runs), *more, cwd=self.folder, env=self.env(steps))
        (run,) = run_folders(self.folder / runs)
        return run

    def killed(self, runs: str, steps: str, reached: Callable[[], Any], pause: float = 0.1) -> None:
        env = self.env(steps, pause)
        ended = stopped(self.on(runs), reached, cwd=self.folder, env=env)
        if ended.code != -signal.SIGKILL:
            raise UnexpectedEnd(ended.err)


def work(folder: Path, inputs: Path, case: str = "simcse") -> Work:
    """Return a command whose method stands in its folder."""
    names, more = PARENTS[case]
    plugin = folder / "paused_method.py"
    if not plugin.exists():
        write_paused(plugin, *names)
    words: list[str | Path] = ["run", plugin]
    words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
    words += ["--suite", inputs / "pairs.tsv", "--budget", f"{STEPS}steps", "--plain"]
    words += ["--set", "batch_size=16", "--precision", "fp32", "--device", "cpu"]
    words += [] if "eval_steps=5" in more else ["--set", "select_on=last"]
    return Work(folder, [*words, *more])


def by_two(one: Work) -> list[int]:
    """Start one command twice at once, with runs in ``by-two``; return the exit codes."""
    words, env = one.on("by-two"), one.env("by-two.txt", pause=0.05)
    two = [begun(*words, cwd=one.folder, env=env) for _ in range(2)]
    try:
        for process in two:
            process.communicate(timeout=300)
    finally:
        for process in two:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return [process.returncode for process in two]


@pytest.fixture(scope="module")
def simcse(made_once: Callable[[str, Callable[[Path], None]], Path], inputs: Path) -> Work:
    """Return a command that two processes have begun at once."""

    def write(folder: Path) -> None:
        codes = by_two(work(folder, inputs))
        (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")

    return work(made_once("resumed", write), inputs)


@pytest.fixture(scope="module")
def undisturbed(simcse: Work) -> Path:
    """Return the folder of a run that nothing stopped."""
    (run,) = run_folders(simcse.folder / "by-two")
    assert record(run)["status"] == "finished"
    return run


@pytest.mark.promise(10)
def test_two_processes_never_do_the_same_run(simcse: Work) -> None:
    codes = json.loads((simcse.folder / "codes.json").read_text(encoding="utf-8"))
    assert codes == [0, 0]
    assert len(run_folders(simcse.folder / "by-two")) == 1
    processes = said(simcse.folder / "by-two.txt")
    assert len(processes) == STEPS, "each step is trained once"
    assert len(set(processes)) == 1


@pytest.mark.promise(10)
def test_a_killed_run_ends_with_the_same_bytes(simcse: Work, undisturbed: Path) -> None:
    simcse.killed("killed", "before.txt", lambda: simcse.steps("before.txt") >= STEPS // 2)
    assert record_status(simcse.folder / "killed") != "finished"
    run = simcse.done("killed", "after.txt")
    assert 0 < simcse.steps("after.txt") < STEPS, "it goes on, and does not begin again"
    assert run.name == undisturbed.name
    assert lasting(run) == lasting(undisturbed)
    assert lasting(run)["steps"] == STEPS


@pytest.mark.promise(10)
def test_nothing_finished_is_done_twice(simcse: Work, undisturbed: Path) -> None:
    runs = shutil.copytree(undisturbed.parent, simcse.folder / "finished")
    before = hashes(runs), times(runs)
    run = simcse.done("finished", "again.txt")
    assert (hashes(runs), times(runs)) == before
    assert run.name == undisturbed.name
    assert simcse.steps("again.txt") == simcse.steps("again.txt", "embed") == 0


@pytest.mark.promise(10)
def test_a_record_of_another_schema_is_never_replaced(
    ten_runs: Path, inputs: Path, copied: Callable[[Path], Path], tmp_path: Path
) -> None:
    runs = copied(ten_runs)
    (run,) = [one for one in run_folders(runs) if record(one)["method"] == "cls"]
    foreign = json.dumps(record(run) | {"schema": "bench.run/99"}, indent=1) + "\n"
    (run / "run.json").write_text(foreign, encoding="utf-8")
    words: list[str | Path] = ["run", "cls", "--backbone", inputs / "tiny", "--plain"]
    words += ["--suite", inputs / "pairs.tsv", "--runs", runs]
    done = bench(*words, cwd=tmp_path, code=None)
    assert (run / "run.json").read_text(encoding="utf-8") == foreign, "the record was replaced"
    assert len(run_folders(runs)) == len(run_folders(ten_runs))
    assert "run.json" in done.err and "bench.run/99" in done.err


@pytest.mark.promise(10)
@pytest.mark.nightly
@pytest.mark.parametrize("step", [1, 5, STEPS])
def test_killed_at_any_step_it_ends_with_the_same_bytes(
    step: int, simcse: Work, undisturbed: Path
) -> None:
    name = f"at-{step}"
    simcse.killed(name, f"{name}.txt", lambda: simcse.steps(f"{name}.txt") >= step)
    assert lasting(simcse.done(name, "rest.txt")) == lasting(undisturbed)


@pytest.mark.promise(10)
@pytest.mark.nightly
def test_killed_before_its_first_step_it_ends_with_the_same_bytes(
    simcse: Work, undisturbed: Path
) -> None:
    """It is killed as soon as anything is written."""
    runs = simcse.folder / "begun"
    simcse.killed("begun", "begun.txt", lambda: runs.is_dir() and any(runs.iterdir()))
    assert lasting(simcse.done("begun", "rest.txt")) == lasting(undisturbed)


@pytest.mark.promise(10)
@pytest.mark.nightly
def test_killed_while_it_is_scored_it_ends_with_the_same_bytes(
    simcse: Work, undisturbed: Path
) -> None:
    simcse.killed("scored", "scored.txt", lambda: simcse.steps("scored.txt", "embed"), pause=0.3)
    assert simcse.steps("scored.txt") == STEPS
    run = simcse.done("scored", "scored-rest.txt")
    assert lasting(run) == lasting(undisturbed)
    assert simcse.steps("scored-rest.txt") <= 1, "what is trained is not trained again"


@pytest.mark.promise(10)
@pytest.mark.nightly
@pytest.mark.parametrize("case", list(PARENTS))
def test_killed_twice_any_method_ends_with_the_same_bytes(
    case: str, inputs: Path, tmp_path: Path
) -> None:
    one = work(tmp_path, inputs, case)
    whole = one.done("whole", "whole.txt")
    assert one.steps("whole.txt") >= STEPS
    one.killed("twice", "first.txt", lambda: one.steps("first.txt") >= 8)
    one.killed("twice", "second.txt", lambda: one.steps("second.txt") >= 8)
    run = one.done("twice", "third.txt")
    assert one.steps("third.txt") < one.steps("whole.txt")
    assert lasting(run) == lasting(whole)


@pytest.mark.promise(10)
@pytest.mark.nightly
def test_killed_in_its_second_epoch_it_draws_the_same_batches_without_equal_texts(
    inputs: Path, tmp_path: Path
) -> None:
    """The text is trained on with itself, so that every sentence is there twice: ten steps are an
    epoch.
    """
    words = [*work(tmp_path, inputs).words, "--set", "batch_size=40"]
    words += ["--corpus", inputs / "corpus.txt"]
    one = Work(tmp_path, [*words, "--set", "duplicates=drop"])
    whole = one.done("whole", "whole.txt")
    one.killed("killed", "first.txt", lambda: one.steps("first.txt") >= STEPS // 2 + 1)
    run = one.done("killed", "second.txt")
    assert 0 < one.steps("second.txt") < STEPS
    assert lasting(run) == lasting(whole)
    kept = Work(tmp_path, words).done("kept", "kept.txt")
    assert lasting(kept)["losses"] != lasting(whole)["losses"]


@pytest.mark.promise(10)
@pytest.mark.nightly
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_person_it_saves_its_state_and_goes_on(
    by: signal.Signals, simcse: Work, undisturbed: Path
) -> None:
    name = by.name
    process = begun(*simcse.on(name), cwd=simcse.folder, env=simcse.env(f"{name}.txt", 0.1))
    try:
        until(lambda: simcse.steps(f"{name}.txt") >= STEPS // 2, process)
        process.send_signal(by)
        said_at_end = process.communicate(timeout=120)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Traceback" not in said_at_end
    trained = simcse.steps(f"{name}.txt")
    run = simcse.done(name, f"{name}-rest.txt")
    assert trained + simcse.steps(f"{name}-rest.txt") == STEPS, "no step is lost"
    assert lasting(run) == lasting(undisturbed)


@pytest.mark.promise(10)
@pytest.mark.nightly
def test_fresh_repeats_a_run_and_keeps_the_earlier_one_until_the_new_one_is_finished(
    simcse: Work, undisturbed: Path
) -> None:
    shutil.copytree(undisturbed.parent, simcse.folder / "fresh")
    earlier = lasting(undisturbed)
    (run,) = run_folders(simcse.folder / "fresh")
    ended = stopped(
        [*simcse.on("fresh"), "--fresh"],
        lambda: simcse.steps("fresh.txt") >= STEPS // 2,
        cwd=simcse.folder,
        env=simcse.env("fresh.txt", 0.1),
    )
    if ended.code != -signal.SIGKILL:
        raise UnexpectedEnd(ended.err)
    assert {name: told for name, told in hashes(run).items() if name in earlier["files"]} == (
        earlier["files"]
    )
    assert record(run)["status"] == "finished"
    simcse.done("fresh", "fresh-rest.txt", "--fresh")
    assert 0 < simcse.steps("fresh-rest.txt") <= STEPS
    assert lasting(run) == earlier
    simcse.done("fresh", "fresh-again.txt", "--fresh")
    assert simcse.steps("fresh-again.txt") == STEPS, "a finished run is repeated from its start"
    assert lasting(run) == earlier


def record_status(runs: Path) -> str:
    """Return the status of the one run in a folder; without a record it is ``begun``."""
    found = run_folders(runs)
    return str(record(found[0])["status"]) if found else "begun"


def times(folder: Path) -> dict[str, int]:
    """Return when each file of a folder, but locks, was written."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}
