"""Give files that were changed at random to every reader of files that others write.

Each read must end soon and within bounded memory, with an answer or an error of ours, never with a
traceback.

    python tools/fuzz.py [--changes 100000] [--start 0] [--seconds 600] [--only NAME,...] [--list]

``--changes``: number of changes, divided equally among the readers; ``--seconds``: processor time,
after which no reader begins another change. Every change is a function of its reader and its
number, and ``--start`` is the first number: another start gives other changes. Prints how many
there were and everything that went wrong, with the number that makes it again. Exit code 1 if
anything went wrong.

The readers are in ``fuzz_readers.py``, the changes in ``fuzz_changes.py``.
``tests/project/test_readers_fuzzed.py`` does the same in bounded time.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUPPORT = ROOT / "tests" / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))
# last: if bench is installed, the installed one is tested
sys.path.append(str(ROOT))

from fuzz_changes import changed  # noqa: E402
from fuzz_readers import READERS, Reader  # noqa: E402

from bench.base.errors import BenchError  # noqa: E402

HANGS = 10
"""Seconds after which a reader hangs on one file."""
MEMORY = 400
"""Megabytes that all reading together may add to the memory of the process."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise TimeoutError if the body takes too long."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {HANGS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(reader: Reader, content: bytes, folder: Path) -> str | None:
    """Read a changed file. Returns the problem; None if it was read, or refused in one line."""
    path = folder / reader.file
    path.write_bytes(content)
    try:
        with no_hang():
            reader.read(path)
    except BenchError as error:
        if not error.message or "\n" in error.message:
            return f"a message of no line or of several: {error.message!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def peak() -> float:
    """Return the most megabytes that this process has taken so far."""
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def prepared(reader: Reader, folder: Path) -> Path:
    """Make the folder of the reader's file below ``folder``, which is returned."""
    (folder / reader.file).parent.mkdir(parents=True, exist_ok=True)
    return folder


def fuzz(
    readers: Sequence[Reader], folder: Path, changes: int, seconds: float, start: int = 0
) -> tuple[dict[str, int], list[str]]:
    """Give each reader at most ``changes`` files, for at most ``seconds`` of processor time.

    Returns reader -> number of changes, and the problems.
    """
    counts: dict[str, int] = {}
    found: list[str] = []
    with warnings.catch_warnings():
        # zipfile warns of two members with one name
        warnings.simplefilter("ignore")
        for i, reader in enumerate(readers):
            place = prepared(reader, folder / str(i))
            until = time.process_time() + seconds
            for number in range(start, start + changes):
                if time.process_time() > until:
                    break
                draw = random.Random(f"{reader.name} {number}")
                content = changed(draw, draw.choice(reader.contents))
                counts[reader.name] = counts.get(reader.name, 0) + 1
                problem = read(reader, content, place)
                if problem is not None and len(found) < 100:
                    found.append(f"{reader.name} {number}: {problem}: {content[:300]!r}")
    return counts, found


@contextmanager
def in_memory(otherwise: Path | None = None) -> Iterator[Path]:
    """Open a folder in memory if there is one.

    On a busy disk the files would take most of the time.
    """
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else otherwise
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", default="", help="readers, comma-separated")
    parser.add_argument("--list", action="store_true", help="name the readers")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    readers = [reader for reader in READERS if not wanted or reader.name in wanted]
    if options.list or not readers:
        raise SystemExit("\n".join(reader.name for reader in READERS))
    before = peak()
    with in_memory() as folder:
        counts, found = fuzz(
            readers,
            folder,
            -(-options.changes // len(readers)),
            options.seconds / len(readers),
            options.start,
        )
    more = peak() - before
    each = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    print(f"{sum(counts.values()):,} changes: {each}; {more:.0f} MB more; {len(found)} wrong")
    print("\n".join(found))
    raise SystemExit(1 if found or more > MEMORY else 0)


if __name__ == "__main__":
    main()
