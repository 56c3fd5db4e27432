"""Progress without a terminal: plain lines with what is known, dev scores not mistaken for training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.cli import progress
from bench.cli import progress as course


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(course.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def trained(
    clock: Clock,
    report: Any,
    steps: int,
    seconds: float,
    dev_every: int,
    dev_seconds: float,
    first: int = 0,
) -> None:
    """A training as the loop reports it: each step takes ``seconds``, each dev score ``dev_seconds``."""
    report.phase("train", steps)
    for step in range(first, steps + 1):
        clock.now += seconds if step > first else 0
        if step and step % dev_every == 0:
            report.advance(step)
            report.phase("dev")
            clock.now += dev_seconds
            report.phase("train", steps)
        report.advance(step, loss=1 / (step + 1))


@pytest.mark.parametrize(
    "first, last, total, left",
    [
        ((0.0, 0), (10.0, 20), 100, 40.0),
        ((5.0, 50), (15.0, 60), 1000, 940.0),
        ((0.0, 3), (10.0, 3), 100, None),
        ((0.0, 0), (10.0, 100), 100, None),
    ],
)
def test_the_time_left_is_what_the_pace_says(
    clock: Clock, first: tuple[float, int], last: tuple[float, int], total: int, left: float | None
) -> None:
    known = course.Course()
    known.phase("encode", total)
    for now, done in (first, last):
        clock.now = now
        known.advance(done, {})
    assert known.phase_left() == (None if left is None else pytest.approx(left))


def test_the_time_left_of_a_training_counts_its_dev_scores_and_that_of_the_plan_the_other_runs(
    clock: Clock,
) -> None:
    known = course.Course()
    work = course.Work(steps=100, size=1, scores=4)
    known.works = [work, course.Work(steps=100, size=2, scores=4), course.Work()]
    known.start(1)
    known.phase("train", 100)
    for step in range(51):
        clock.now = float(2 * step)
        known.advance(step, {})
    known.phase("dev", None)
    clock.now += 10
    known.phase("train", 100)
    known.advance(50, {})
    assert known.phase_left() == pytest.approx(50 * 2 + 3 * 10)
    seconds, whole = known.plan_left() or (0.0, True)
    assert seconds == pytest.approx(130 + 100 * 4 + 4 * 10) and not whole, (
        "what scoring takes is not known yet"
    )
    clock.now += 130
    known.advance(100, {})
    known.phase("encode", 10)
    clock.now += 30
    known.finish()
    known.start(2)
    known.phase("load", None)
    seconds, whole = known.plan_left() or (0.0, False)
    pace = (49 * 2 + 130) / 99  # seconds a step of the first run, after its first step
    assert whole and seconds == pytest.approx(100 * 2 * pace + 4 * 10 + 2 * 30), (
        "beside training the first run took 30 s"
    )


def test_what_is_not_known_is_not_said(clock: Clock) -> None:
    known = course.Course()
    assert known.plan_left() is None and known.phase_left() is None
    known.works = [course.Work(steps=20), course.Work(steps=None)]
    known.start(1)
    known.phase("train", 20)
    for step in range(15):
        clock.now += 1
        known.advance(step, {})
    assert known.phase_left() == pytest.approx(6.0) and known.plan_left() is None, (
        "a clock ends the second run"
    )


@pytest.mark.parametrize("begun", [0, 50], ids=["new", "resumed"])
@pytest.mark.parametrize(
    ("usual", "known_at"), [(0.2, 6), (40.0, 2)], ids=["short steps", "long steps"]
)
def test_a_first_step_that_loads_for_eight_seconds_is_no_pace(
    clock: Clock, usual: float, known_at: int, begun: int
) -> None:
    """The loop reports where it stands before its first step; nothing is said before several short steps, or long ones for half a minute."""
    known = course.Course()
    known.works = [course.Work(steps=157)]
    known.start(1)
    known.phase("train", 157)
    for step in range(20):
        clock.now += 8 + usual if step == 1 else usual
        known.advance(begun + step, {})
        assert known.phase_left() == (
            None if step < known_at else pytest.approx((157 - begun - step) * usual)
        ), step


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_live_view_is_no_wider_than_the_terminal_and_its_bar_is_of_use(
    clock: Clock, width: int
) -> None:
    known = course.Course()
    known.works = [course.Work(steps=100000, scores=800)] * 30
    known.start(30)
    seen = []
    known.phase("load", None)
    seen.append(progress.draw(known, width))
    known.phase("train", 100000)
    fields = {"loss": 0.1234, "best": 66.5, "best_step": 98125, "sentences_per_second": 12345.6}
    for step in (0, 1, 50000):
        clock.now += 400
        known.advance(step, fields)
        seen.append(progress.draw(known, width))
    known.phase("dev", None)
    known.advance(700, {"total": 2900})
    seen.append(progress.draw(known, width))
    known.phase("encode", 100000)
    known.advance(3, {})
    seen.append(progress.draw(known, width))
    known.phase("score", 7)
    known.advance(2, {"task": "GoogleNews-TS"})
    seen.append(progress.draw(known, width, unicode=False))
    assert all(len(lines) == 3 and max(map(len, lines)) <= width for lines in seen)
    if width >= 80:
        train, dev, score = seen[3], seen[4], seen[6]
        assert (
            "50000/100000" in train[0]
            and "left" in train[0]
            and train[0].count("━") + train[0].count("─") >= 30
        )
        assert abs(train[0].count("━") - train[0].count("─")) <= 1, "half of it is done"
        assert (
            "loss 0.1234" in train[1]
            and "best 66.50 at 98125" in train[1]
            and "12346 sentences/s" in train[1]
        )
        assert train[2].startswith("run 30 of 30, 20m00s so far")
        assert "700/2900" in dev[0] and "score 1 of 800" in dev[0] and "step 50000/100000" in dev[1]
        assert "2/7 GoogleNews-TS" in score[0] and "#" in score[0] and score[0].isascii()


def test_scoring_moves_task_by_task() -> None:
    """What is scored is named before it is scored, so that a long task shows."""
    from types import SimpleNamespace

    from bench.run.executors.scoring import EncodingReporter, score_tasks
    from bench.score.suites import RunPlace

    told: list[tuple[int, str | None]] = []
    reporter = SimpleNamespace(
        phase=lambda name, total=None: None,
        note=lambda text: None,
        advance=lambda done, **fields: told.append((done, fields.get("task"))),
    )

    class Vectors(dict):  # type: ignore[type-arg]
        def missing(self, sentences: Any) -> list[str]:
            return []

        def add(self, sentences: Any, encode: Any) -> int:
            return 0

    class Known(SimpleNamespace):
        def __hash__(self) -> int:
            return id(self)

    method = SimpleNamespace(context=SimpleNamespace(reporter=None), encode=None)
    tasks = [
        Known(
            name=name,
            suite="s",
            task=SimpleNamespace(sentences=(), score=lambda vectors: told.append((-1, None))),
        )
        for name in ("A", "B")
    ]
    list(
        score_tasks(
            method,
            tasks,
            EncodingReporter(reporter),
            lambda prompt: Vectors(),
            RunPlace("r", "f", Path()),
            "cpu",
        )
    )  # type: ignore[arg-type]
    assert told == [(0, "A"), (-1, None), (1, "A"), (1, "B"), (-1, None), (2, "B")]


def test_plain_lines_name_run_phase_and_numbers_and_tell_dev_encoding_apart(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = progress.PlainReporter()
    reporter.start("simcse-builtin-s42")
    reporter.phase("train", 1000)
    reporter.advance(24)
    reporter.advance(25, loss=0.5)
    clock.now = 20.0
    reporter.phase("dev")
    reporter.advance(700, total=2900)
    clock.now = 40.0
    reporter.phase("train", 1000)
    reporter.advance(125, loss=0.25, best=66.5, best_step=125, sentences_per_second=400.0)
    assert capsys.readouterr().err.splitlines() == [
        "simcse-builtin-s42: starts",
        "simcse-builtin-s42: train 25 of 1000, dev score 1: 700 of 2900  loss 0.5000",
        "simcse-builtin-s42: train 125 of 1000  loss 0.2500  dev best 66.50 at 125  400 sentences/s  2m55s left",
    ]


def test_plain_lines_tell_the_plan_the_dev_score_and_the_task(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    reporter = progress.PlainReporter()
    reporter.plan([course.Work(steps=40, scores=2), course.Work(steps=40, scores=2)])
    reporter.start("first", 1)
    trained(clock, reporter, 40, 1.0, 20, 5.0)
    reporter.phase("dev")
    clock.now += 10
    reporter.advance(100, total=400)
    reporter.phase("train", 40)
    reporter.phase("score", 3)
    clock.now += 10
    reporter.advance(1, task="STS13")
    reporter.done("done: Avg. 1.00")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "first (1 of 2): starts"
    assert (
        lines[1]
        == "first (1 of 2): train 10 of 40  loss 0.0909  30s left  all 2 runs: 1m10s left, and scoring"
    )
    assert any("train 40 of 40, dev score 3: 100 of 400" in line for line in lines)
    assert (
        any("score 1 of 3 STS13" in line for line in lines)
        and lines[-1] == "first (1 of 2): done: Avg. 1.00"
    )


def test_the_runs_that_wait_stand_below_the_one_that_works_with_what_they_will_take(
    clock: Clock,
) -> None:
    known = course.Course()
    known.works = [course.Work(steps=10, name=f"run-{i}") for i in range(8)]
    known.start(1)
    assert progress.draw(known, 80)[3:] == [
        *(f"waiting   run-{i}" for i in range(1, 5)),
        "          and 3 more",
    ], "nobody knows yet"
    known.phase("train", 10)
    for step in range(11):
        clock.now = 2.0 * step
        known.advance(step, {})
    known.phase("score", 1)
    clock.now += 5
    known.finish()
    known.start(2)
    assert progress.draw(known, 80)[3] == "waiting   run-2  about 25s", (
        "twenty of training, five of the rest"
    )
    known.start(7)
    assert progress.draw(known, 80)[3:] == ["waiting   run-7  about 25s"]
    known.start(8)
    assert len(progress.draw(known, 80)) == 3
    known.works = [course.Work(steps=10), course.Work(steps=None, name="until a clock ends it")]
    known.start(1)
    assert progress.draw(known, 80)[3:] == ["waiting   until a clock ends it"]
