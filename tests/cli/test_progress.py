"""Progress: plain lines with what is known, dev scores not mistaken for training; on a terminal
bars that fit.
"""

from __future__ import annotations

import sys
import time

import pytest

from bench.run.progress import RunReporter, terminal_reporter


def test_plain_lines_name_run_phase_and_numbers_and_tell_dev_encoding_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reporter = RunReporter()
    reporter.start("simcse-builtin-s42")
    reporter.phase("train", 1000)
    reporter.advance(24)
    reporter.advance(25, loss=0.5)
    now = 20.0
    reporter.phase("dev")
    reporter.advance(700, total=2900)
    now = 40.0
    reporter.phase("train", 1000)
    reporter.advance(125, loss=0.25, best=66.5, best_step=125, sentences_per_second=400.0)
    assert capsys.readouterr().err.splitlines() == [
        "simcse-builtin-s42",
        "  train 25 of 1000  dev 700 of 2900  loss 0.5000",
        "  train 125 of 1000  5m47s left  loss 0.2500  dev best 66.50 at 125  400 sentences/s",
    ]


def test_bars_fit_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    reporter = RunReporter(plain=False)
    reporter.phase("train", 100_000)
    reporter.advance(12_500, loss=0.25, best=66.5, best_step=125, sentences_per_second=400.0)
    reporter.phase("dev")
    reporter.advance(700, total=2900)
    for part in reporter.bars.get_renderables():
        reporter.console.print(part)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["train", "dev", "loss"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("term", "is_terminal", "plain"),
    [("xterm", True, False), ("dumb", True, True), ("xterm", False, True)],
)
def test_a_pipe_and_a_dumb_terminal_get_plain_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, is_terminal: bool, plain: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    assert terminal_reporter(plain=False).plain is plain
    assert terminal_reporter(plain=True).plain


def test_details_are_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (False, True):
        reporter = RunReporter(verbose=verbose)
        reporter.note("device cpu")
        reporter.note("110,000,000 parameters loaded", detail=True)
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["device cpu", "device cpu", "110,000,000 parameters loaded"]
