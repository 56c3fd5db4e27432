"""Time ``bench compare`` on 200 records as a process, interpreter and imports included.

    python benchmarks/compare.py [RECORDS] [--repeat 5]

Target: 200 records in under 1 s. Exit code 1 if the median is above it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from factories import record  # noqa: E402

from bench.records import RunsFolder  # noqa: E402

TARGET = 1.0  # seconds, for 200 records
BACKBONES = ("builtin", "bert-base-uncased", "roberta-large")


def fill(folder: Path, count: int) -> None:
    """Write ``count`` records: methods x backbones x seeds, each with seven tasks and sub-sets."""
    store = RunsFolder(folder)
    for i in range(count):
        method = f"method-{i // 15}"
        backbone = BACKBONES[i // 5 % 3]
        seed = i % 5 + 1
        store.write(record(method, seed, backbone=backbone, base=60 + i % 17))


def seconds(arguments: list[str], folder: Path, repeat: int) -> list[float]:
    environment = os.environ | {"BENCH_RUNS": str(folder), "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    taken = []
    for _ in range(repeat):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", f"from bench.cli import main; main({arguments!r})"],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        taken.append(time.perf_counter() - began)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", nargs="?", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        fill(runs, options.records)
        page = str(Path(folder) / "page.html")
        worst = 0.0
        for arguments in (
            ["--help"],
            ["compare"],
            ["compare", "--baseline", "method-1", "--format", "json"],
            ["runs"],
            ["compare", "--html", page],
        ):
            taken = seconds(arguments, runs, options.repeat)
            shown = " ".join(arguments).replace(page, "page.html")
            print(
                f"bench {shown:<46} {options.records} records  median "
                f"{statistics.median(taken):.3f} s  worst {max(taken):.3f} s"
            )
            if arguments == ["compare"]:
                worst = statistics.median(taken)
        size = Path(page).stat().st_size / 1e6
    print(
        f"the page: {size:.1f} MB; target for compare: {TARGET:.1f} s with 200 records, reached "
        f"{worst:.3f} s"
    )
    if options.records == 200 and worst > TARGET:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
