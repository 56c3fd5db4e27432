"""Which precision a CPU trains in: a child process tries, and what becomes of it decides. The child is a stand-in but for the last tests."""

from __future__ import annotations

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import SMALL, bench, error_line
from models import sentences
from torch.overrides import TorchFunctionMode

from bench.base import bf16, devices
from bench.base.errors import BenchError

AMX = "processor : 0\nmodel name : Made Processor\nflags : fpu avx512f avx512_bf16 amx_bf16 amx_tile\n"
NO_AMX = AMX.replace(" amx_bf16 amx_tile", "")
COUNT = "open({count!r}, 'a').write('.')\n"
FASTER, SLOWER = ('print(\'{{"bf16": {}, "fp32": {}}}\')'.format(*pair) for pair in ((0.05, 0.1), (0.1, 0.05)))


def dies_by(number: int) -> str:
    return f"import os; os.kill(os.getpid(), {int(number)})"


class Child:
    """In place of the child's program: any code; and how often it was started."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.count, self.patch = folder / "started", patch

    def runs(self, code: str) -> None:
        self.patch.setattr(bf16, "COMMAND", (sys.executable, "-c", COUNT.format(count=str(self.count)) + code))

    @property
    def started(self) -> int:
        return len(self.count.read_text()) if self.count.exists() else 0


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """On a processor that announces AMX, with an empty cache."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(devices, "cpu_info", lambda: AMX)
    for name in bf16.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return Child(tmp_path, monkeypatch)


def chosen(asked: str = "auto") -> tuple[str, str]:
    """The precision, and the line that says why."""
    said: list[str] = []
    precision = devices.choose_precision(asked, "cpu", said.append)
    assert len(said) <= 1
    return precision, "".join(said)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGILL, "SIGILL (Illegal instruction)"),
        (signal.SIGSEGV, "SIGSEGV (Segmentation fault)"),
        (signal.SIGBUS, "SIGBUS (Bus error)"),
        (signal.SIGKILL, "SIGKILL (Killed)"),
    ],
)
def test_a_child_that_a_signal_ends_means_fp32_and_a_line_that_names_it(child: Child, number: int, words: str) -> None:
    child.runs(dies_by(number))
    precision, line = chosen()
    (kept,) = (Path(os.environ["BENCH_CACHE"]) / "bf16").glob("*.json")
    assert precision == "fp32"
    assert line == f"precision fp32: bf16 on this processor ended by {words}; probed once, kept in {kept}"
    assert chosen() == (precision, line) and child.started == 1, "said again, not probed again"
    assert devices.choose_precision("auto", "cpu:0") == "fp32"
    with pytest.raises(BenchError, match="ended by SIG"):
        devices.choose_precision("bf16", "cpu:0")
    with pytest.raises(BenchError) as refused:
        chosen("bf16")
    assert refused.value.message == f"--precision bf16: bf16 on this processor ended by {words} (probed once, kept in {kept})"
    assert refused.value.hint == "--precision fp32", "what keeps from AMX was tried, and did not help"


def test_a_child_that_hangs_is_ended(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bf16, "SECONDS", 0.5)
    child.runs("import time; time.sleep(60)")
    assert chosen()[0] == "fp32" and "did not end within 0 s" in chosen()[1]


@pytest.mark.parametrize(
    ("code", "precision", "words"),
    [
        (FASTER, "bf16", "bf16 is faster on this processor (a step takes 50 ms, in fp32 100 ms)"),
        (SLOWER, "fp32", "bf16 is not faster on this processor (a step takes 100 ms, in fp32 50 ms)"),
        ('print(\'{"bf16": 0.1, "fp32": 0.101}\')', "fp32", "bf16 is not faster"),  # noise does not decide what a run is
        ('print(\'{"bf16": NaN, "fp32": 1.0}\')', "fp32", "failed with exit code 0"),
        ("print('[]')", "fp32", "failed with exit code 0"),
        ("", "fp32", "failed with exit code 0"),
        (
            "raise ArithmeticError('bf16 and fp32 are 3 apart')",
            "fp32",
            "failed with exit code 1: ArithmeticError: bf16 and fp32 are 3 apart",
        ),
    ],
)
def test_bf16_is_taken_where_the_child_ended_well_and_was_faster(child: Child, code: str, precision: str, words: str) -> None:
    child.runs(code)
    assert chosen()[0] == precision and words in chosen()[1]
    if "failed" in words:
        with pytest.raises(BenchError, match="--precision bf16: bf16 on this processor failed"):
            chosen("bf16")
    else:
        assert chosen("bf16") == ("bf16", ""), "by name it need not be faster"


def test_without_the_flag_nothing_is_started_or_said(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    child.runs(FASTER)
    monkeypatch.setattr(devices, "cpu_info", lambda: NO_AMX)
    assert chosen() == ("fp32", "") and chosen("fp32") == ("fp32", "") and child.started == 0
    assert chosen("bf16") == ("bf16", "") and child.started == 1, "asked for by name it is tried on any processor"


def test_the_hint_names_the_variable_where_it_was_seen_to_help(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    name, value = bf16.LIMIT
    child.runs(f"import os\nif os.environ.get({name!r}) == {value!r}: {SLOWER}\nelse: {dies_by(signal.SIGILL)}")
    with pytest.raises(BenchError) as refused:
        chosen("bf16")
    assert refused.value.hint == f"--precision fp32; or {name}={value} before the command, with which bf16 was tried and works here"
    monkeypatch.setenv(name, value)
    assert chosen("bf16") == ("bf16", "") and child.started == 2, "what helps was tried when it was advised"


def test_an_answer_holds_for_one_processor_torch_number_of_threads_and_choice_of_instructions() -> None:
    same = bf16.describe(AMX, 2, {"HOME": "/"})
    assert bf16.describe(AMX + "flags : other\n", 2, {}) == same and same["flags"] == [
        "amx_bf16",
        "amx_tile",
        "avx512_bf16",
        "avx512f",
    ]
    others = [
        bf16.describe(AMX, 3, {}),
        bf16.describe(NO_AMX, 2, {}),
        bf16.describe(AMX.replace("Made", "Other"), 2, {}),
        *(bf16.describe(AMX, 2, {name: "AVX2"}) for name in bf16.VARIABLES),
    ]
    assert all(other != same for other in others)
    assert same["torch"].partition("+")[0] == torch.__version__.partition("+")[0] and same["kernel"] == os.uname().release


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"about": 1}', b"\xff", b"whole"])
def test_a_kept_answer_that_is_damaged_is_asked_for_again(child: Child, content: bytes) -> None:
    child.runs(FASTER)
    before = bf16.ask(AMX, 2)
    assert before.kept is not None and before.faster and bf16.ask(AMX, 2) == before and child.started == 1
    said = json.loads(before.kept.read_text())
    for key, value in (
        ("bf16", "fast"),
        ("bf16", -1.0),
        ("fp32", None),
        ("ended", 3),
        ("about", None),
    ):
        other = {**said, "about": {**said["about"], "threads": 1}} if key == "about" else {**said, "value": {**said["value"], key: value}}
        before.kept.write_text(json.dumps(other)) if content == b"whole" else before.kept.write_bytes(content)
        started = child.started
        assert bf16.ask(AMX, 2) == before and child.started == started + 1
    assert json.loads(before.kept.read_text()) == said


def test_without_a_cache_it_is_asked_each_time(child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "file" / "cache"))
    child.runs(FASTER)
    assert chosen()[0] == chosen()[0] == "bf16" and child.started == 2
    assert chosen()[1].endswith("; probed each time: the cache cannot be written")


def test_of_several_processes_one_asks(child: Child) -> None:
    child.runs("import time; time.sleep(0.5)\n" + FASTER)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: bf16.ask(AMX, 2), range(4)))
    assert child.started == 1 and len(set(answers)) == 1 and answers[0].faster


class NoBf16(TorchFunctionMode):
    """No tensor in bfloat16 comes into being in this process."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        assert not (isinstance(made, torch.Tensor) and made.dtype == torch.bfloat16), f"{func} in bfloat16"
        return made


@pytest.mark.slow
def test_the_guard_of_the_next_test_sees_bfloat16(bf16: None) -> None:
    with NoBf16(), pytest.raises(AssertionError, match="in bfloat16"), torch.autocast("cpu", torch.bfloat16):
        torch.ones(2, 2) @ torch.ones(2, 2)


@pytest.mark.slow
def test_on_a_processor_that_traps_every_command_works_and_computes_in_float32(child: Child, tiny: str, tmp_path: Path) -> None:
    child.runs(dies_by(signal.SIGILL))
    (tmp_path / "text.txt").write_text("\n".join(sentences(40, seed=8)) + "\n")
    command = ("run", "--method", "simcse", "--backbone", tiny, "--suite", "check", "--corpus", tmp_path / "text.txt", "--device", "cpu",
               *SMALL, "--runs", tmp_path / "runs")  # fmt: skip
    line = "precision fp32: bf16 on this processor ended by SIGILL (Illegal instruction); probed once, kept in "
    with NoBf16():
        planned = bench(*command, "--dry-run")
        assert planned.exit_code == 0 and planned.stderr.count(line) == 1 and "precision fp32" in planned.stdout
        done = bench(*command)
        assert done.exit_code == 0 and done.stderr.count(line) == 1
        (tmp_path / "mine.txt").write_text("a sentence\nanother\n")
        (run,) = (tmp_path / "runs").iterdir()
        assert bench("encode", str(run), str(tmp_path / "mine.txt"), "--to", str(tmp_path / "mine.npy")).exit_code == 0
        refused = bench(*command, "--precision", "bf16")
        assert error_line(refused).startswith("error: --precision bf16: bf16 on this processor ended by SIGILL (Illegal instruction)")
        assert refused.stderr.splitlines()[-1] == "try: --precision fp32"
        assert bench(*command, "--precision", "fp32").exit_code == 0, "what helps helps"
        told = bench("doctor", "--runs", str(tmp_path / "runs"), COLUMNS="1000")
    assert "precision  fp32 while training" in told.stdout
    assert "bf16       bf16 on this processor ended by SIGILL (Illegal instruction); probed once, kept in " in told.stdout
    facts = json.loads(bench("doctor", "--json").stdout)["bf16"]
    assert facts["probed"] and not facts["works"] and Path(facts["kept"]).is_file()
    assert child.started == 2, "one probe for all commands, and one with the variable that might have helped"


@pytest.mark.slow
def test_the_childs_own_program_times_a_step_in_both_precisions_or_ends_by_a_signal() -> None:
    """The real thing, in a child, so on any machine; on one that traps it ends as the probe expects."""
    answer = bf16.probe(1)
    if not answer.works:
        assert "ended by SIG" in answer.ended or "did not end" in answer.ended, answer
        pytest.skip(str(answer))
    assert answer.bf16 and answer.fp32 and 1e-4 < answer.fp32 < 60 and str(answer).startswith("bf16 is ")


@pytest.mark.slow
def test_on_a_processor_with_amx_the_choice_is_that_of_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "amx_bf16" not in devices.cpu_info():
        pytest.skip("this processor does not announce amx_bf16")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    answer = devices.probed_bf16()
    assert answer is not None and answer.kept is not None
    precision, line = chosen()
    assert precision == ("bf16" if answer.faster else "fp32") and line.startswith(f"precision {precision}: {answer}")
