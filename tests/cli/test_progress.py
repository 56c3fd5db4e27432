"""Progress without a terminal: plain lines with what is known, dev scores not mistaken for training."""

from __future__ import annotations

import pytest

from bench.cli import progress


@pytest.mark.parametrize(
    "first, last, total, said",
    [
        ((0.0, 0), (10.0, 20), 100, "  40 s left"),
        ((5.0, 50), (15.0, 60), 1000, "  16 min left"),  # resumed at 50: a second a step
        ((0.0, 3), (10.0, 3), 100, ""),
        ((0.0, 0), (10.0, 100), 100, ""),
    ],
)
def test_the_time_left_is_what_the_pace_says(first: tuple[float, int], last: tuple[float, int], total: int, said: str) -> None:
    assert progress.time_left(first, last, total) == said


def test_plain_lines_name_run_phase_and_numbers_and_leave_dev_encoding_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    reporter = progress.PlainReporter()
    reporter.start("simcse-builtin-s42")
    reporter.phase("train", 1000)
    reporter.advance(25, loss=0.5)
    clock[0] = 20.0
    reporter.phase("dev")
    reporter.advance(700, total=2900)
    reporter.phase("train", 1000)
    reporter.advance(125, loss=0.25, best=66.5, best_step=125, sentences_per_second=400.0)
    assert capsys.readouterr().err.splitlines() == [
        "simcse-builtin-s42: starts",
        "simcse-builtin-s42: train 125 of 1000  loss 0.2500  dev best 66.50 at 125  400 sentences/s  3 min left",
    ]
