"""How a process ended that could not say so itself: by which signal, and what to try.

While a run is worked on, its folder holds ``process.txt``: which process, and, when SIGILL, SIGSEGV, SIGBUS, SIGFPE or SIGABRT ends
it, which of them and where (written by :mod:`faulthandler`). An orderly end, an error included, removes the file. So one that is
still there when nobody holds the run tells of a process that died; nothing in it means that nothing could be written (SIGKILL).

This file is also a program of its own, with nothing but the standard library: ``python crash.py FOLDER`` waits for the end of the
process that started it, and says on standard error how it ended if that process could not.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARK = "process.txt"
FAULT = "Fatal Python error: "  # how faulthandler begins; then what it calls the signal
FAULTS = {
    "Illegal instruction": "SIGILL",
    "Segmentation fault": "SIGSEGV",
    "Bus error": "SIGBUS",
    "Aborted": "SIGABRT",
    "Floating point exception": "SIGFPE",
    "Floating-point exception": "SIGFPE",
}
KILLED = "SIGKILL (Killed)"
GOES_ON = "the same command goes on from the last state"
LESS_MEMORY = "hold less in memory: --chunk 32, --set batch_size=32 (another recipe), fewer processes at once"


@dataclass(frozen=True)
class End:
    """``words`` follow what ended: "ended by SIGILL (Illegal instruction)"; ``hint`` says what to try."""

    words: str
    hint: str


def signal_name(number: int) -> str:
    """ "SIGILL (Illegal instruction)"; "signal 99" for one that has no name."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    words = (signal.strsignal(number) or "").partition(":")[0]  # macOS has "Illegal instruction: 4"
    return f"{name} ({words})" if words else name


def by_signal(number: int, precision: str = "") -> End:
    """What a signal says. ``precision``: that of the training; "" where it is not known."""
    return _end(signal_name(number), precision)


def _end(signal_and_words: str, precision: str) -> End:
    plainer = "ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 before the same command (plainer instructions, slower)"
    crash = f"{GOES_ON}; if it ends so again, OMP_NUM_THREADS=1 before it, or another version of torch"
    hints = {
        "SIGILL": {"": f"--precision fp32, or {plainer}", "bf16": "--precision fp32"}.get(precision, plainer),
        "SIGBUS": f"df -h: a full disk or /dev/shm, or a mapped file that was cut short, ends a process so; then {GOES_ON}",
        "SIGKILL": f"if memory was short, {LESS_MEMORY}; {GOES_ON}",
        **dict.fromkeys(("SIGSEGV", "SIGABRT", "SIGFPE"), crash),
    }
    return End(f"ended by {signal_and_words}", hints.get(signal_and_words.partition(" ")[0], GOES_ON))


def read_end(folder: Path) -> End | None:
    """How the last process on the run in ``folder`` ended; None where it ended in order. Ask only while nobody holds the run."""
    try:
        first, *rest = (folder / MARK).read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    except OSError:
        return None
    try:
        then = dict(json.loads(first))
    except (ValueError, TypeError, RecursionError):  # the disk was full, or the machine lost power
        then = {}
    for line in rest:
        if line.startswith(FAULT) and (words := line.removeprefix(FAULT)) in FAULTS:
            return _end(f"{FAULTS[words]} ({words})", str(then.get("precision", "")))
    return _without_a_word(then, _machine())


def _without_a_word(then: dict[str, Any], now: dict[str, Any]) -> End:
    if then.get("boot") != now["boot"]:
        if then.get("host") == now["host"]:
            return End("ended without a word; the machine was restarted since", GOES_ON)
        return End(f"ended without a word{' on ' + str(then['host']) if then.get('host') else ''}", GOES_ON)
    before, after = then.get("out_of_memory"), now["out_of_memory"]
    if not isinstance(before, int) or not isinstance(after, int):
        return End(
            f"ended without a word: killed from outside, or by the kernel because memory was short ({KILLED})",
            f"if memory was short, {LESS_MEMORY}; {GOES_ON}",
        )
    if after > before:
        return End(
            f"ended without a word; the kernel has killed a process since it began, because memory was short: most likely this one ({KILLED})",
            f"{LESS_MEMORY}; {GOES_ON}",
        )
    return End(f"ended without a word: killed from outside ({KILLED}, a closed terminal, a scheduler)", GOES_ON)


def _machine() -> dict[str, Any]:
    """Which machine, since when it runs, and how many processes its kernel has ended for lack of memory (None: not known)."""
    boot, count = None, None
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc/vmstat").read_text().splitlines()
        count = next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    return {"host": socket.gethostname(), "boot": boot, "out_of_memory": count}


@contextlib.contextmanager
def watch(folder: Path, precision: str, alone: bool = True) -> Iterator[None]:
    """While open, ``folder`` tells how this process ended if it cannot do so itself; so does a line on standard error, where
    the process is ``alone`` (what starts several says it for them)."""
    path = folder / MARK
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError:  # is told where it matters
        yield
        return
    with contextlib.suppress(OSError):
        os.write(handle, (json.dumps({"process": os.getpid(), "precision": precision, **_machine()}) + "\n").encode())
    ours = not faulthandler.is_enabled()  # else whoever enabled it wants to read it elsewhere
    if ours:
        faulthandler.enable(handle, all_threads=False)
    witness = _witness(folder) if alone and _speaks() else None
    try:
        yield
    finally:
        if ours:
            faulthandler.disable()
        os.close(handle)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        if witness is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                witness.communicate(b".", timeout=5)


def _speaks() -> bool:
    """Do this process's messages go where a child's would? Not in a test that collects them, or a notebook."""
    try:
        return sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False


def _witness(folder: Path) -> subprocess.Popen[bytes] | None:
    with contextlib.suppress(OSError):  # a session of its own: Ctrl-C is not for it
        return subprocess.Popen(
            [sys.executable, "-ISP", __file__, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
    return None


def main(folder: Path) -> None:
    """Wait for a byte, which says that all is well, or for the end of the process that would send it."""
    if not os.read(0, 1) and (end := read_end(folder)) is not None:
        print(f"error: {folder.name} {end.words}\ntry: {end.hint}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))


# --- stopping from outside: at the next step, with everything kept ---


@contextlib.contextmanager
def stop_signals(insistent: bool = True) -> Iterator[Callable[[], bool]]:
    """While open, the first SIGINT or SIGTERM asks for a stop at the next step; a second one ends the process as usual.

    Not ``insistent``: more of them ask for nothing more, nor does a SIGTERM after an error. One of several ranks gets the terminal's
    signal and the launcher's, which also ends this rank because another one ended; what it has to say of that comes first.
    """
    asked: list[int] = []
    before: Mapping[int, Any] = {}

    def handler(number: int, frame: Any) -> None:
        asked.append(number)
        for of_number, old in before.items() if insistent else ():
            signal.signal(of_number, old)

    with contextlib.suppress(ValueError):  # not the main thread: whoever owns it handles signals
        before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    except BaseException:
        if before and not insistent:
            before = {**before, signal.SIGTERM: signal.SIG_IGN}
        raise
    finally:
        for number, old in before.items():
            signal.signal(number, old)
