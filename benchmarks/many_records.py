"""``bench compare`` on a runs folder with thousands of records, as a user starts it: a process, interpreter and imports included.

    python benchmarks/many_records.py [RECORDS] [--repeat 3]

Records of 100 methods on several backbones, five seeds each, with seven tasks and their sub-datasets; one in twenty is damaged (cut short,
of a newer schema, no JSON, a value that is none), some runs are unfinished. Three runs have predictions, and are compared by name too: what is read
and resampled is what is shown. Target with 5,000: under 3 s and under 500 MB for the whole folder. Exit code 1 above it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from factories import record  # noqa: E402
from predicted_runs import sts_run  # noqa: E402

from bench.runs import RunsFolder  # noqa: E402

SECONDS, MEGABYTES = 3.0, 500
DAMAGE: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: b"",
    lambda data: data[: len(data) // 2],
    lambda data: data.replace(b"bench.run/3", b"bench.run/999"),
    lambda data: b"\x00\xff not JSON",
    lambda data: data.replace(b'"value": ', b'"value": "x', 1),
    lambda data: data.replace(b'"n": ', b'"n": -', 1),
    lambda data: data[:-40] + b"," + data[-40:],
)


def fill(folder: Path, count: int) -> None:
    """``count`` records; one in twenty is damaged, one in a hundred was interrupted."""
    store = RunsFolder(folder)
    for i in range(count):
        method, backbone, seed = f"method-{i // 5 % 100}", f"backbone-{i // 500}", i % 5 + 1
        made = record(
            method,
            seed,
            backbone=backbone,
            base=60 + i % 17,
            status="interrupted" if i % 100 == 7 else "finished",
        )
        path = store.write(made)
        if i % 20 == 3:
            path.write_bytes(DAMAGE[i // 20 % len(DAMAGE)](path.read_bytes()))
    for method, noise in (("with-a", 0.2), ("with-b", 0.3), ("with-c", 0.3)):
        sts_run(folder, method, 1, noise, n=1000, backbone="backbone-0")


def measured(arguments: list[str], folder: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the processor, and the most megabytes of memory, of one process."""
    environment = os.environ | {
        "BENCH_RUNS": str(folder),
        "BENCH_CACHE": str(folder.parent / "cache"),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
    }
    code = f"from bench.cli import main; main({arguments!r})"
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    taken = time.perf_counter() - began
    if status:
        raise SystemExit(f"bench {' '.join(arguments)} failed")
    process.returncode = 0
    return (
        taken,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="?", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    worst = (0.0, 0.0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        fill(folder, options.records)
        for arguments in (
            ["compare"],
            ["compare", "--baseline", "method-1", "--format", "json"],
            [
                "compare",
                "--backbone",
                "backbone-0",
                "--method",
                "with-a,with-b,with-c",
                "--baseline",
                "with-a",
            ],
        ):
            found = [measured(arguments, folder) for _ in range(options.repeat)]
            taken, computed = (statistics.median(one[i] for one in found) for i in (0, 1))
            memory = max(one[2] for one in found)
            print(
                f"bench {' '.join(arguments):<84} median {taken:.2f} s (processor {computed:.2f} s), {memory:.0f} MB",
                flush=True,
            )
            worst = max(worst[0], taken), max(worst[1], memory)
    reached = f"reached {worst[0]:.2f} s and {worst[1]:.0f} MB with {options.records}"
    print(f"target with 5,000 records: {SECONDS:.0f} s and {MEGABYTES} MB; {reached}")
    if options.records == 5000 and (worst[0] > SECONDS or worst[1] > MEGABYTES):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
