"""Print the seconds and megabytes that docs/promises.md wants of commands, and those they take.

    python benchmarks/commands.py [NAME ...] [--repeat 3] [--records 10000]

Each measurement is a process, interpreter and imports included, timed from start to end. Without
names all are measured: ``help``, ``import``, ``compare``, ``verify`` and ``publish`` of the newest
version; ``judge``, the verification of a preview of its runs, which is judged by today's rule; and
``records``, a comparison of many small records: runs in rows of five seeds, each with predictions
of 150 pairs of all seven STS tasks, which are made first (half a minute).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import numpy as np  # noqa: E402
from factories import STS, record, sts_average, sts_score  # noqa: E402
from machine import describe_machine  # noqa: E402

from bench.records.names import predictions_name  # noqa: E402
from bench.score.metrics.correlation import spearman  # noqa: E402

BENCH = str(Path(sys.executable).with_name("bench"))
SEEDS = 5
PAIRS = 150


@dataclass(frozen=True)
class Promise:
    """A command, its number in docs/promises.md, and what is wanted of it there."""

    number: int
    words: tuple[str, ...]
    wanted: str


@dataclass(frozen=True)
class Measured:
    """What one process took."""

    seconds: float
    processor_seconds: float
    megabytes: float


def newest_version() -> Path:
    """Return the folder of the version with the highest number."""
    return max((ROOT / "leaderboards").glob("v[0-9]*"), key=lambda folder: int(folder.name[1:]))


def promises(scratch: Path) -> dict[str, Promise]:
    """Return what can be measured, by name."""
    version = newest_version()
    runs, records = str(version / "runs"), str(scratch / "records")
    preview = (BENCH, "publish", "--preview", "--runs", runs, "--out", str(scratch / "boards"))
    return {
        "help": Promise(2, (BENCH, "--help"), "0.1 s"),
        "import": Promise(2, (sys.executable, "-c", "import bench"), "no torch"),
        "compare": Promise(21, (BENCH, "compare", "--runs", runs), "2 s, 300 MB"),
        "records": Promise(21, (BENCH, "compare", "--runs", records), "10 s (10,000 runs)"),
        "publish": Promise(22, preview, "60 s"),
        "verify": Promise(23, (BENCH, "verify", str(version)), "45 s"),
        "judge": Promise(23, (BENCH, "verify", str(scratch / "boards" / "preview")), "45 s"),
    }


def write_records(folder: Path, count: int) -> None:
    """Write finished runs with predictions: methods of five seeds that share part of their noise.

    Nothing is synced to the disk: 80,000 files would take minutes.
    """
    draws = np.random.default_rng(0)
    gold = {task: np.round(draws.uniform(0, 5, PAIRS), 1) for task in STS}
    for row in range(count // SEEDS):
        noise = 0.2 + 0.3 * (row % 17) / 17
        shared = {task: draws.normal(size=PAIRS) for task in STS}
        for seed in range(1, SEEDS + 1):
            said, scores = {}, []
            for task in STS:
                own = draws.normal(size=PAIRS)
                said[task] = gold[task] / 5 + noise * (shared[task] + own) / 2
                scores.append(sts_score(task, spearman(said[task], gold[task]), PAIRS))
            made = record(f"method-{row}", seed, scores=(*scores, sts_average(scores)))
            place = folder / made.run_id
            (place / "predictions").mkdir(parents=True)
            (place / "run.json").write_text(json.dumps(made.to_json(), indent=1))
            for task in STS:
                np.savez_compressed(
                    place / predictions_name(task, "senteval-all/1"),
                    prediction=said[task],
                    gold=gold[task],
                    subset=np.full(PAIRS, task),
                )


def measure(words: Sequence[str], scratch: Path) -> Measured:
    """Run a command once. Raises SystemExit if it fails."""
    environment = os.environ | {"BENCH_CACHE": str(scratch / "cache"), "COLUMNS": "120"}
    began = time.perf_counter()
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    unit = 1e6 if sys.platform == "darwin" else 1e3  # ru_maxrss is in bytes there, else in kB
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / unit)


def table_row(name: str, promise: Promise, found: Sequence[Measured]) -> str:
    """Return a row of the Markdown table: medians, with the range of the seconds."""
    seconds = [one.seconds for one in found]
    processor = statistics.median(one.processor_seconds for one in found)
    megabytes = max(one.megabytes for one in found)
    span = f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
    cells = (promise.number, name, promise.wanted, span, f"{processor:.2f}", f"{megabytes:.0f}")
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        known = promises(scratch)
        unknown = [name for name in options.names if name not in known]
        if unknown:
            parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        names = options.names or list(known)
        if "records" in names:
            write_records(scratch / "records", options.records)
        if "judge" in names:
            measure(known["publish"].words, scratch)
        print(f"{describe_machine()}; {newest_version().name}, {options.records} records")
        print()
        print("| promise | command | wanted | seconds | of the processor | MB |")
        print("|--:|---|---|--:|--:|--:|")
        for name in names:
            found = [measure(known[name].words, scratch) for _ in range(options.repeat)]
            print(table_row(name, known[name], found), flush=True)


if __name__ == "__main__":
    main()
