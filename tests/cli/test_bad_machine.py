"""A disk that fails at any write, and a system that is not supported: one line,
nothing lost, the same command goes on.

``BENCH_TEST_LONG``: every single write in the place of some.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from commands import argv, bench, error_line
from failing_disk import FailingDisk
from folder_contents import contents
from models import sentences

EVERY = bool(os.environ.get("BENCH_TEST_LONG"))
Command = Callable[[Path], Result]


def some(count: int, few: int) -> list[int]:
    """Numbers below ``count``: all of them in the long form, else so many, spread over the
    whole.
    """
    return (
        list(range(count)) if EVERY else sorted({i * (count - 1) // (few - 1) for i in range(few)})
    )


@pytest.fixture
def run(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Training of 6 steps with two dev scores and a state after each, and scoring, in a folder's
    runs.
    """
    (tmp_path / "text.txt").write_text("\n".join(sentences(24, seed=6)) + "\n")
    monkeypatch.setenv("BENCH_SAVE_SECONDS", "0")
    command = [
        *argv("run --method simcse --backbone"),
        tiny,
        "--suite",
        "check",
        "--corpus",
        tmp_path / "text.txt",
        *argv("--device cpu --precision fp32 --set batch_size=4 --set eval_steps=3"),
    ]
    return lambda folder: bench(*command, "--runs", folder / "runs")


def write_every_time(
    do: Command, folder: Path, fresh: Callable[[], None], few: int, *, once: bool
) -> tuple[int, int]:
    """Do it with a disk that fails at one write after the other; afterwards with a good one.
    (Writes that failed, calls that said so.)
    """
    fresh()
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch, folder)
        assert do(folder).exit_code == 0
    whole = contents(folder)
    failed = 0
    told = 0
    for at in some(len(disk.writes), few):
        fresh()
        with pytest.MonkeyPatch.context() as patch:
            bad = FailingDisk(patch, folder, at, once=once)
            done = do(folder)
        failed += bad.failed > 0
        if done.exit_code:
            told += 1
            line = error_line(done, done.exit_code)
            assert done.exit_code in (1, 2)
            assert any(word in line for word in ("No space", "Input/output error")), (
                disk.writes[at],
                line,
            )
        else:  # it was a courtesy: what is there is whole
            assert contents(folder) == whole, disk.writes[at]
        again = do(folder)
        assert again.exit_code == 0, (disk.writes[at], again.output)
        assert contents(folder) == whole, disk.writes[at]
    return failed, told


@pytest.mark.nightly
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize("once", [False, True], ids=["full from there on", "once"])
def test_a_run_on_a_disk_that_fails_at_any_write(run: Command, tmp_path: Path, once: bool) -> None:
    folder = tmp_path / "here"
    failed, told = write_every_time(
        run, folder, lambda: shutil.rmtree(folder, ignore_errors=True), few=5, once=once
    )
    assert failed >= 4 and told >= 2


def test_native_windows_is_one_line_in_a_terminal_and_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import bench as library

    monkeypatch.setattr("bench.base.terminal.sys.platform", "win32")
    done = bench("doctor")
    assert error_line(done) == "error: bench runs on Linux and macOS, not on native Windows"
    assert "(WSL 2)" in done.stderr
    with pytest.raises(library.BenchError, match="not on native Windows"):
        _ = library.train
    assert bench("--help").exit_code == 0
