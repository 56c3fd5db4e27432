"""Kill a command at random moments, again and again: nothing may be lost or be there twice.

    python tools/kills.py [--kills 100] [--seed 1] [--only train-simcse,publish] [--data DIR]
                          [--list]

Each kind of work is done once undisturbed. Then it is begun, killed with kill -9, and begun again
in the state that the kill left, until it is done. The result must equal the undisturbed one, to the
byte (records and curves without times and speeds), and after every kill all files must be complete.
A line for each kind of work says how many kills there were, how often the work came to its end, and
at which share of the work the kills hit (quartiles). Everything is tiny: a random backbone of 2
layers, some hundred sentences. All suites but ``check`` need the real data sets (``--data``, or
BENCH_DATA); of large ones a few rows of each class are kept. Exit code 1 if anything was wrong.

The kinds of work are in ``kill_works.py``, their processes in ``kill_process.py``, and the checks
in ``kill_checks.py``. ``tests/project/test_kills.py`` does ten of these kinds.
"""

from __future__ import annotations

import argparse
import multiprocessing.process
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kill_checks import contents
from kill_process import PATIENCE, start_process
from kill_works import Work, works

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT / "tests" / "support", ROOT / "tools"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
# last: if bench is installed, the installed one is tested
sys.path.append(str(ROOT))

ALARMS = ("Traceback", "cannot be used", "cut short")
"""Words that no process may print."""


@dataclass
class Told:
    """The outcome of one kind of work."""

    name: str
    # seconds of the undisturbed work
    seconds: float = 0.0
    kills: int = 0
    ends: int = 0
    # the share of the work that was done at each kill
    moments: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return the outcome as one line, with the quartiles of the moments."""
        quarters = self.moments
        if len(self.moments) > 1:
            quarters = statistics.quantiles(self.moments, n=4, method="inclusive")
        hit = "none"
        if quarters:
            shares = (min(self.moments), *quarters, max(self.moments))
            hit = " ".join(f"{100 * share:.0f}" for share in shares)
        return (
            f"{self.name:<22} {self.kills:>4} kills, {self.ends:>3} ends, "
            f"{self.seconds:6.2f} s undisturbed, killed at {hit} %: {len(self.wrong)} wrong"
        )


def killed(work: Work, place: Path, count: int, draw: random.Random) -> Told:
    """Do ``work`` with ``count`` kills below ``place``, again and again."""
    killer = Killer(work, place, draw)
    # the first time fills caches
    if not killer.do_undisturbed() or not killer.do_undisturbed():
        return killer.told
    whole = contents(killer.folder)
    killer.clear()
    while True:
        exit_code, lived = killer.do_once(kill=killer.told.kills < count)
        if exit_code == -signal.SIGKILL:
            killer.check_kill(lived)
            continue
        killer.check_end(exit_code, whole)
        if killer.told.kills >= count:
            killer.check_log()
            return killer.told
        killer.clear()


class Killer:
    """Does one kind of work in a folder, and kills its processes."""

    def __init__(self, work: Work, place: Path, draw: random.Random) -> None:
        self.work = work
        self.folder = place / "work"
        self.log = place / "log.txt"
        self.draw = draw
        self.told = Told(work.name)
        # seconds of the undisturbed work until it begins, and until it has made something
        self.starting = 0.0
        self.moving = 0.0

    def clear(self) -> None:
        """Begin with an empty folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.work.prepare(self.folder)

    def do_undisturbed(self) -> bool:
        """Do the work from an empty folder, and note its times; returns False if it fails."""
        self.clear()
        began = time.monotonic()
        has_moved = self._progress_since_now()
        process = self._start()
        wait_until(process, self._has_begun(process))
        self.starting = time.monotonic() - began
        wait_until(process, has_moved)
        self.moving = time.monotonic() - began
        process.join(PATIENCE)
        self.told.seconds = time.monotonic() - began
        if process.exitcode != 0:
            self.told.wrong.append(
                f"undisturbed it ended with {process.exitcode}: {self.log.read_text()[-2000:]}"
            )
        return process.exitcode == 0

    def do_once(self, *, kill: bool) -> tuple[int | None, float]:
        """Run one process, and kill it at a random moment if ``kill``.

        Returns its exit code (None: it hangs, and was killed for that) and its seconds.
        """
        began = time.monotonic()
        has_moved = self._progress_since_now()
        process = self._start()
        if kill:
            self._wait_for_moment(process, has_moved)
            process.kill()
        process.join(PATIENCE)
        lived = time.monotonic() - began
        exit_code = process.exitcode
        if exit_code is None:
            process.kill()
            process.join()
        return exit_code, lived

    def _wait_for_moment(
        self, process: multiprocessing.process.BaseProcess, has_moved: Callable[[], bool]
    ) -> None:
        """Wait until a random moment: at the start, before anything new is there, or later."""
        when = 1.0
        moving = 0.0
        if self.work.begun is not None:
            when = self.draw.random()
            moving = self.moving
        if when < 0.15:
            process.join(self.draw.uniform(0, self.starting))
            return
        wait_until(process, self._has_begun(process))
        if when < 0.35:
            process.join(self.draw.uniform(0, max(self.moving - self.starting, 0.1)))
            return
        wait_until(process, has_moved)
        process.join(self.draw.uniform(0, self.work.life * (self.told.seconds - moving)))

    def check_kill(self, lived: float) -> None:
        """Note a kill after so many seconds, and a problem of the files that it left."""
        told = self.told
        told.kills += 1
        share = lived / told.seconds
        if self.work.progress is not None:
            share = self.work.progress(self.folder)
        told.moments.append(min(1.0, share))
        problem = self.work.problem(self.folder)
        if problem is not None:
            told.wrong.append(f"kill {told.kills}: {problem}")

    def check_end(self, exit_code: int | None, whole: Mapping[str, bytes]) -> None:
        """Note an end, and what is wrong with it. ``whole``: the undisturbed result."""
        told = self.told
        told.ends += 1
        after = f"after {told.kills} kills"
        if exit_code is None:
            told.wrong.append(f"{after} it hangs")
            return
        if exit_code != 0:
            told.wrong.append(f"{after} it ended with {exit_code}: {self.log.read_text()[-600:]}")
            return
        found = contents(self.folder)
        differing = [
            f"{name} ({difference_of(name, found, whole)})"
            for name in sorted({*found, *whole})
            if found.get(name) != whole.get(name)
        ]
        if differing:
            told.wrong.append(f"{after} the end is another: {', '.join(differing[:6])}")

    def check_log(self) -> None:
        """Note words in the log that no process may print."""
        printed = self.log.read_text()
        self.told.wrong += [f"it said: {words}" for words in ALARMS if words in printed]

    def _start(self) -> multiprocessing.process.BaseProcess:
        work = self.work
        return start_process(work.do, work.arguments, self.folder, work.environment, self.log)

    def _has_begun(self, process: multiprocessing.process.BaseProcess) -> Callable[[], bool]:
        return lambda: self.work.begun is None or self.work.begun(self.folder, process.pid or 0)

    def _progress_since_now(self) -> Callable[[], bool]:
        """Return a function that says if there is more now than when this was called."""
        progress = self.work.progress
        if progress is None:
            return lambda: True
        before = progress(self.folder)
        return lambda: progress(self.folder) > before


def wait_until(process: multiprocessing.process.BaseProcess, is_so: Callable[[], bool]) -> None:
    """Wait until ``is_so()``, the end of the process, or the end of patience."""
    until = time.monotonic() + PATIENCE
    while process.is_alive() and time.monotonic() < until and not is_so():
        time.sleep(0.005)


def difference_of(name: str, found: Mapping[str, bytes], whole: Mapping[str, bytes]) -> str:
    """Say how a file differs from the undisturbed one: more, missing or other."""
    if name not in whole:
        return "more"
    return "other" if name in found else "missing"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="of each kind of work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds of work, comma-separated")
    parser.add_argument("--data", type=Path, default=os.environ.get("BENCH_DATA"))
    parser.add_argument("--list", action="store_true", help="name the kinds of work")
    options = parser.parse_args()
    data = options.data.absolute() if options.data else None
    wanted = [name for name in options.only.split(",") if name]
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for work in works(Path(temporary) / "inputs", data, wanted):
            if options.list:
                print(work.name)
                continue
            draw = random.Random(f"{options.seed} {work.name}")
            told = killed(work, Path(temporary) / work.name, options.kills, draw)
            print(told.line())
            for problem in told.wrong[:5]:
                print(f"  {problem}", flush=True)
            wrong += len(told.wrong)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
