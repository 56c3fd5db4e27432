"""A session executes every run of a command, whatever becomes of the others; Python and the command
line do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import argv, bench
from run_log import started_runs

import bench as library
from bench.base.errors import RunFailed, RunLocked
from bench.method.config import RunConfig
from bench.records import RunsFolder
from bench.records.question import Question
from bench.run import session as module
from bench.run.plan_toml import Plan
from bench.run.session import RunEnd, Session


class Screen:
    """A reporter that keeps everything it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def plan(self, runs: Sequence[Any]) -> None:
        self.lines.append(f"{len(runs)} runs")

    def start(self, label: str, number: int | None = None) -> None:
        self.lines.append(f"start {label}" + (f" {number}" if number else ""))

    def note(self, text: str, *, detail: bool = False) -> None:
        if not text.startswith("device"):
            self.lines.append(f"note {text}")

    def done(self, line: str) -> None:
        self.lines.append(line)


def planned(name: str, *notes: str, batch_size: int = 8, split: bool = False) -> Any:
    """Make the parts of a planned run that a session reads."""
    cls = SimpleNamespace(is_split=lambda: split)
    return SimpleNamespace(
        run_id=name,
        notes=notes,
        precision="fp32",
        recipe={"batch_size": batch_size},
        plugin=SimpleNamespace(cls=cls),
    )


Execute = Callable[[Any, float], Any]


@pytest.fixture
def run_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[list[RunEnd], list[str]]]:
    """Execute runs in a session with a replaced ``execute``; returns their ends, and the lines."""

    def run_all(
        execute: Execute, runs: Sequence[Any], ranks: Any = None, **options: Any
    ) -> tuple[list[RunEnd], list[str]]:
        screen = Screen()
        config = RunConfig(wait_seconds=7.0, device="cpu", **options)
        session = Session(
            plan=Plan((config,)), store=RunsFolder(tmp_path), reporter=screen, ranks=ranks
        )

        def replaced(run: Any, store: Any, config: RunConfig, *more: Any) -> Any:
            assert more == (screen, ranks, Question()) and store is session.store
            return execute(run, config.wait_seconds), True

        monkeypatch.setattr(module, "execute", replaced)
        monkeypatch.setattr(module, "describe_end", lambda record, worked: f"done {record}")
        return list(session.run_all(runs)), screen.lines

    return run_all


def test_a_run_of_another_process_comes_last_and_is_waited_for(run_all: Any) -> None:
    calls: list[tuple[str, float]] = []

    def execute(run: Any, seconds: float) -> str:
        calls.append((run.run_id, seconds))
        if run.run_id == "busy" or (run.run_id == "slow" and not seconds):
            raise RunLocked(f"another process works on {run.run_id}")
        return str(run.run_id)

    ends, lines = run_all(execute, [planned("busy"), planned("slow"), planned("free")])
    assert calls == [("busy", 0), ("slow", 0), ("free", 0), ("busy", 7.0), ("slow", 7.0)]
    assert [(end.run.run_id, end.record) for end in ends] == [
        ("free", "free"),
        ("busy", None),
        ("slow", "slow"),
    ]
    assert isinstance(ends[1].error, RunLocked)
    assert "another process works on busy, which does it" in lines


def test_ranks_that_no_longer_agree_end_the_session(run_all: Any) -> None:
    def execute(run: Any, seconds: float) -> str:
        raise RunFailed("a rank is gone")

    runs = [planned("a"), planned("b")]
    with pytest.raises(RunFailed, match="a rank is gone"):
        run_all(execute, runs, ranks=SimpleNamespace(broken=True))
    ends, _ = run_all(execute, runs, ranks=SimpleNamespace(broken=False))
    assert len(ends) == 2


@pytest.mark.slow(seconds=6)
def test_a_script_trains_as_the_command_line_does(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a dog runs\na cat eats\na man sings\n" * 4)
    (tmp_path / "pairs.tsv").write_text(
        "sentence1\tsentence2\tscore\n"
        + "".join(f"a dog runs {i}\ta cat runs {i % 5}\t{i % 6}\n" for i in range(12))
    )
    words = f"run simcse --backbone {tiny} --corpus text.txt --suite pairs.tsv --seeds 1-2"
    words += " --set batch_size=4 --set select_on=last --device cpu --runs typed"
    done = bench(*argv(words))
    assert done.exit_code == 0, done.stderr
    capsys.readouterr()
    results = library.train(
        "simcse",
        tiny,
        "text.txt",
        seeds=[1, 2],
        suites="pairs.tsv",
        runs="called",
        device="cpu",
        batch_size=4,
        select_on="last",
    )
    called = capsys.readouterr().err
    plan, *lines = done.stderr.splitlines()
    assert plan.startswith("Plan: 2 runs of simcse") and called.splitlines() == lines
    assert len(started_runs(called)) == 2 and called.count("\n  done: ") == 2
    for result in results:
        typed = RunsFolder("typed").find(result.run_id)
        assert typed.fingerprint == result.record.fingerprint
        assert typed.scores == result.record.scores
