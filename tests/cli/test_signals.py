"""A run whose process a signal ends: listed, named, advised upon, gone on with. Real processes, which send themselves the signal."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, the_run
from factories import record as made_record
from models import sentences
from run_parts import run_parts

from bench.base import crash as ended
from bench.base.crash import End, by_signal, read_end, signal_name, watch
from bench.cli import main
from bench.run.executors.torchrun import _show_log
from bench.runs import RunsFolder

DIES = '''"""SimCSE whose process gets the signal $DIES at step 12."""
import os
from methods.simcse import SimCSE

class Dies(SimCSE):
    name = "dies"
    variants = {}

    def loss(self, views, batch):
        if batch.step + 1 == 12 and "DIES" in os.environ:
            os.kill(os.getpid(), int(os.environ["DIES"]))
        return super().loss(views, batch)
'''
KILLED = "ended without a word: killed from outside (SIGKILL (Killed), a closed terminal, a scheduler)"


@pytest.fixture(scope="module")
def command(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """20 steps of 4 rows, a dev score every 5."""
    folder = tmp_path_factory.mktemp("dies")
    (folder / "dies.py").write_text(DIES)
    (folder / "text.txt").write_text("\n".join(sentences(80, seed=6)) + "\n")
    return ["run", "--method", "dies", "--plugin", str(folder / "dies.py"), "--setting", "unsupervised", "--backbone", tiny, "--suite", "check",
            "--corpus", str(folder / "text.txt"), "--device", "cpu", "--precision", "fp32", "--set", "batch_size=4", "--set", "eval_steps=5"]  # fmt: skip


@pytest.fixture(scope="module")
def whole(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same run, undisturbed."""
    runs = tmp_path_factory.mktemp("whole")
    assert bench(*command, "--runs", runs).exit_code == 0
    return run_parts(the_run(runs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words", "hint"),
    [
        (signal.SIGILL, "ended by SIGILL (Illegal instruction)", "ONEDNN_MAX_CPU_ISA=AVX2"),
        pytest.param(signal.SIGSEGV, "ended by SIGSEGV (Segmentation fault)", "OMP_NUM_THREADS=1", marks=pytest.mark.slow),
        pytest.param(signal.SIGBUS, "ended by SIGBUS (Bus error)", "df -h", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, "ended without a word", "the same command goes on from the last state", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_a_signal_ends_is_listed_and_gone_on_with(
    command: list[str], whole: dict[str, Any], tmp_path: Path, number: int, words: str, hint: str
) -> None:
    environment = {
        **os.environ,
        "BENCH_SAVE_SECONDS": "0",
        "DIES": str(int(number)),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    died = subprocess.run(
        [sys.executable, "-m", "bench", *command, "--runs", str(tmp_path)], capture_output=True, text=True, env=environment, timeout=240
    )
    folder = the_run(tmp_path)
    assert died.returncode == -number
    *_, error, tried = died.stderr.splitlines()
    assert error.startswith(f"error: {folder.name} {words}") and tried.startswith("try: ") and hint in tried, "told at once"
    words = error.removeprefix(f"error: {folder.name} ")

    listed = bench("runs", "--runs", tmp_path)
    assert re.search(rf"^{folder.name} +interrupted +", listed.stdout, re.M)
    assert listed.stderr.splitlines() == [f"{folder.name} {words}; {tried}"]
    (summary,) = map(json.loads, bench("runs", "--runs", tmp_path, "--status", "interrupted", "--json").stdout.splitlines())
    assert (summary["status"], summary["error"], summary["method"]) == ("interrupted", words, "dies")
    shown = bench("show", folder.name, "--runs", tmp_path).stdout
    assert f"\nerror: {words}\n{tried}\n" in shown

    done = bench(*command, "--runs", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert f"the process that worked on it before {words}\n" in done.stderr and f": {tried}\n" in done.stderr
    assert "goes on from step 11 of 20" in done.stderr
    assert run_parts(folder) == whole, "no trace is left"
    assert bench("runs", "--runs", tmp_path).stderr == "" and words not in bench(*command, "--runs", tmp_path).stderr


def mark(folder: Path, text: str = "", **facts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ended.MARK).write_text(json.dumps({**ended._machine(), **facts}) + "\n" + text)
    return folder


def test_what_is_said_is_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_end(tmp_path) is None
    monkeypatch.setattr(ended, "_machine", lambda: {"host": "here", "boot": "b", "out_of_memory": 3})
    outside, memory, undecided, restarted, elsewhere = (
        read_end(mark(tmp_path, **facts))
        for facts in ({}, {"out_of_memory": 2}, {"out_of_memory": None}, {"boot": "a"}, {"boot": "a", "host": "there"})
    )
    assert outside == End(KILLED, "the same command goes on from the last state")
    assert memory and memory.words.startswith(
        "ended without a word; the kernel has killed a process since it began, because memory was short"
    )
    assert memory.hint.startswith("hold less in memory: --chunk 32")
    assert undecided and "killed from outside, or by the kernel because memory was short" in undecided.words
    assert restarted and restarted.words == "ended without a word; the machine was restarted since"
    assert elsewhere and elsewhere.words == "ended without a word on there"
    for damaged in (b"", b"{", b"[]\n", b"\xff\xfe\n", b"3\n"):
        (tmp_path / ended.MARK).write_bytes(damaged)
        assert (end := read_end(tmp_path)) is not None and end.words == "ended without a word", damaged
    mark(tmp_path, "Fatal Python error: Illegal instruction\n\nCurrent thread\n", precision="bf16")
    assert read_end(tmp_path) == End("ended by SIGILL (Illegal instruction)", "--precision fp32")
    mark(tmp_path, "Fatal Python error: something else\n")
    assert read_end(tmp_path) == outside


def test_every_option_that_a_hint_names_is_one() -> None:
    options = {option for one in main.get_command(None, "run").params for option in one.opts}  # type: ignore[arg-type,union-attr]
    hints = [by_signal(number, precision).hint for number in signal.Signals for precision in ("", "fp32", "bf16")]
    named = {option for hint in [*hints, ended.LESS_MEMORY] for option in re.findall(r"--[a-z-]+", hint)}
    assert named == {"--precision", "--chunk", "--set"} and named <= options
    assert signal_name(4) == "SIGILL (Illegal instruction)" and signal_name(999) == "signal 999"


def test_an_orderly_end_leaves_nothing_whatever_kind_it_is(tmp_path: Path) -> None:
    before = faulthandler.is_enabled()
    for error in (KeyboardInterrupt, ValueError, SystemExit):
        with pytest.raises(error), watch(tmp_path, "fp32"):
            assert json.loads((tmp_path / ended.MARK).read_text())["process"] == os.getpid()
            raise error
        assert list(tmp_path.iterdir()) == [] and faulthandler.is_enabled() == before
    with watch(tmp_path / "nosuch", "fp32"):
        pass


def test_a_run_that_is_worked_on_is_running_and_not_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := made_record(status="interrupted", scores=()))
    mark(store.folder(one.run_id))
    with store.lock(one.run_id):
        listed = bench("runs", "--runs", tmp_path, "--json")
        assert json.loads(listed.stdout)["status"] == "running" and store.ended(one.run_id) is None
        assert bench("runs", "--runs", tmp_path, "--status", "running").stdout.count("running") == 1
        assert f"{one.run_id}  running, " in bench("show", one.run_id, "--runs", tmp_path).stdout
    assert json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["status"] == "interrupted"
    assert "no such run" in bench("runs", "--runs", tmp_path, "--status", "running").stdout


def test_a_finished_run_that_died_over_another_suite_is_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := made_record())
    mark(store.folder(one.run_id), "Fatal Python error: Bus error\n")
    (summary,) = map(json.loads, bench("runs", "--runs", tmp_path, "--json").stdout.splitlines())
    assert (summary["status"], summary["error"]) == ("interrupted", "ended by SIGBUS (Bus error)")
    assert store.read(one.run_id).status == "finished", "its scores are there and hold"


def test_a_run_of_an_older_version_with_a_state_and_no_record_is_listed(tmp_path: Path) -> None:
    for name in ("begun", "empty"):
        (tmp_path / name / "state").mkdir(parents=True)
    (tmp_path / "begun" / "state" / f"step-00000003-{'a' * 32}.pt").write_bytes(b"")
    listed = bench("runs", "--runs", tmp_path)
    assert re.search(r"^begun +interrupted +ended before its record was written; its command goes on", listed.stdout, re.M)
    assert "empty" not in listed.stdout
    assert json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["run_id"] == "begun"
    shown = bench("show", "begun", "--runs", tmp_path)
    assert "begun ended before its record was written" in error_line(shown) and shown.stderr.endswith("try: run its command again\n")


def test_the_launcher_names_the_signal_of_a_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _show_log(1, 2, -signal.SIGILL, tmp_path)
    assert capsys.readouterr().err == (
        f"error: rank 1 of 2 ended by SIGILL (Illegal instruction); the others were ended\ntry: {by_signal(signal.SIGILL).hint}\n"
    )
    _show_log(0, 2, -signal.SIGKILL, tmp_path)
    assert "rank 0 of 2 ended by SIGKILL (Killed)" in (said := capsys.readouterr().err) and "if memory was short" in said
    _show_log(0, 2, 3, tmp_path)
    assert capsys.readouterr().err.endswith(
        "ended with exit code 3; the others were ended\ntry: the same command goes on from the last state\n"
    )


def test_the_witness_is_silent_where_all_was_well_and_speaks_where_it_was_not(tmp_path: Path) -> None:
    """A process of its own each: one ends in order, one is killed while it works."""
    code = (
        "import os, sys; from pathlib import Path; from bench.base.crash import watch\n"
        "with watch(Path(sys.argv[1]), 'fp32'):\n    os.kill(os.getpid(), int(sys.argv[2]))"
    )
    said = {}
    for number in (0, signal.SIGABRT):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(int(number))],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert done.returncode == -number
        said[number] = done.stderr
    assert said[0] == ""
    assert said[signal.SIGABRT].startswith(f"error: {tmp_path.name} ended by SIGABRT (Aborted)\ntry: ")
