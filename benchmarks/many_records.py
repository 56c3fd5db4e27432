"""Time ``bench compare`` on a runs folder with thousands of records, as a process.

    python benchmarks/many_records.py [RECORDS] [--repeat 3]

Records of 100 methods on several backbones, five seeds each, with seven tasks and their
sub-datasets. One in twenty is damaged (cut short, of a newer schema, no JSON, a value that is
none), and some runs are unfinished. Three runs have predictions, and are compared by name too: only
the runs that are shown are read and resampled. Interpreter and imports are included. Target with
5,000 records: under 3 s and under 500 MB for the whole folder. Exit code 1 above it.

    python benchmarks/many_records.py --predicted 10000

Finished records in rows of five seeds, each with predictions of 150 pairs of all seven STS tasks,
in one table. Target with 10,000: 10 s.
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
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import numpy as np  # noqa: E402
from factories import STS, record, sts_average, sts_score  # noqa: E402
from predicted_runs import sts_run  # noqa: E402

from bench.records import RunsFolder  # noqa: E402
from bench.records.names import predictions_name  # noqa: E402
from bench.score.metrics.correlation import spearman  # noqa: E402

SECONDS, MEGABYTES = 3.0, 500
PREDICTED_SECONDS = 10.0
SEEDS = 5
PAIRS = 150
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
        method = f"method-{i // 5 % 100}"
        backbone = f"backbone-{i // 500}"
        seed = i % 5 + 1
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


def fill_predicted(folder: Path, count: int) -> None:
    """Write ``count`` finished runs in rows of five seeds, with predictions.

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
                    place / predictions_name(task, "tokenised"),
                    prediction=said[task],
                    gold=gold[task],
                    subset=np.full(PAIRS, task),
                )


def measure_predicted(count: int, repeat: int) -> None:
    """Print the median time and the memory of ``bench compare``, as a table and as JSON.

    Raises SystemExit above the target.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "runs"
        fill_predicted(folder, count)
        slowest = 0.0
        for arguments in (["compare"], ["compare", "--format", "json"]):
            found = [measured(arguments, folder) for _ in range(repeat)]
            taken, computed = (statistics.median(one[i] for one in found) for i in (0, 1))
            memory = max(one[2] for one in found)
            print(
                f"bench {' '.join(arguments):<30} median {taken:.2f} s (processor {computed:.2f} "
                f"s), {memory:.0f} MB",
                flush=True,
            )
            slowest = max(slowest, taken)
    print(
        f"target with 10,000 predicted runs: {PREDICTED_SECONDS:.0f} s; {slowest:.2f} s with "
        f"{count}"
    )
    if count == 10_000 and slowest > PREDICTED_SECONDS:
        raise SystemExit(1)


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
    parser.add_argument("--predicted", type=int, metavar="RUNS", help="measure these instead")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if options.predicted:
        measure_predicted(options.predicted, options.repeat)
        return
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
                f"bench {' '.join(arguments):<84} median {taken:.2f} s (processor {computed:.2f} "
                f"s), {memory:.0f} MB",
                flush=True,
            )
            worst = max(worst[0], taken), max(worst[1], memory)
    reached = f"reached {worst[0]:.2f} s and {worst[1]:.0f} MB with {options.records}"
    print(f"target with 5,000 records: {SECONDS:.0f} s and {MEGABYTES} MB; {reached}")
    if options.records == 5000 and (worst[0] > SECONDS or worst[1] > MEGABYTES):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
