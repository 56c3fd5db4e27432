"""Progress without a terminal: plain lines with what is known, dev scores not mistaken for training."""

from __future__ import annotations

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
        "simcse-builtin-s42: train 125 of 1000  loss 0.2500  dev best 66.50 at 125  400 sentences/s  5m47s left",
    ]
