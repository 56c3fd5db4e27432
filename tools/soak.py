"""Hundreds of small runs in one process: its memory, open files and threads, read from /proc after
every run (Linux).

    python tools/soak.py [RUNS] [--method simcse] [--publish]

``bench run`` with as many seeds as RUNS (300), on a random backbone of 2 layers, each run trained
for 10 steps and scored on the suite ``check``. What the first quarter needs is warming up; after it
memory may not grow by more than 10 MB, nor open files and threads at all. ``--publish``: ``bench
publish --preview`` in one process, again and again, in the place of runs. Exit code 1 where
something grew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

MEGABYTES = 10.0


@dataclass(frozen=True)
class Sample:
    """The memory, files and threads of a process, after so many runs."""

    done: int
    memory: float  # megabytes, resident
    files: int
    threads: int


def sample(process: int, done: int) -> Sample | None:
    """Take a sample; None if the process is gone."""
    place = Path("/proc") / str(process)
    try:
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        return Sample(
            done,
            int(status["VmRSS"].split()[0]) / 1e3,
            len(os.listdir(place / "fd")),
            int(status["Threads"]),
        )
    except (OSError, KeyError):
        return None


def told(one: Sample) -> str:
    return (
        f"after {one.done:>4}: {one.memory:7.1f} MB, {one.files:>3} files, {one.threads:>2} threads"
    )


def watched(
    command: list[str], done: Path, environment: dict[str, str], *, say: bool
) -> list[Sample]:
    """Sample one process for every line that it adds to the file ``done``.

    ``say``: print some samples.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", *command], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        found: list[Sample] = []
        while process.poll() is None:
            count = done.read_bytes().count(b"\n") if done.exists() else 0
            if (
                count > (found[-1].done if found else 0)
                and (one := sample(process.pid, count)) is not None
            ):
                found.append(one)
                if say and len(found) % 25 == 1:
                    print(told(one), flush=True)
            time.sleep(0.005)
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"it failed: {log.read()[-2000:].decode(errors='replace')}")
    return found


RUN = """
import sys
import bench.run.execute as local
from bench.cli import main
done, execute = open(sys.argv.pop(1), "a", buffering=1), local.execute
def noted(*given, **options):
    try:
        return execute(*given, **options)
    finally:
        done.write("x\\n")
local.execute = noted
main(sys.argv[1:])
"""
"""``bench``, with a line in a file for every run."""

PUBLISH = """
import sys
from pathlib import Path
from bench.publish.build import PublishOptions, publish_version
done, count = open(sys.argv[1], "a", buffering=1), int(sys.argv[2])
for _ in range(count):
    publish_version(Path(sys.argv[3]), Path(sys.argv[4]), PublishOptions(preview=True))
    done.write("x\\n")
"""


def grown(found: list[Sample]) -> list[str]:
    """Describe the growth of the last quarter over the second one; the first one warms up.

    The fewest files and threads count, because a sample may fall into the next run, which has some
    open.
    """
    quarter = max(len(found) // 4, 1)
    before, after = found[quarter : 2 * quarter], found[-quarter:]
    wrong = []
    if (more := max(one.memory for one in after) - max(one.memory for one in before)) > MEGABYTES:
        wrong.append(f"{more:.1f} MB more memory")
    for what in ("files", "threads"):
        if (
            many := min(getattr(one, what) for one in after)
            - min(getattr(one, what) for one in before)
        ) > 0:
            wrong.append(f"{many} more {what}")
    return wrong


def soak(
    folder: Path, count: int, method: str = "simcse", *, publish: bool = False, say: bool = False
) -> list[Sample]:
    from made_runs import made_runs
    from models import sentences

    from bench.conformance.methods import tiny_backbone

    done, environment = (
        folder / "done.txt",
        os.environ | {"BENCH_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)},
    )
    if publish:
        made_runs(
            folder / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",)
        )
        return watched(
            [PUBLISH, str(done), str(count), str(folder / "runs"), str(folder / "boards")],
            done,
            environment,
            say=say,
        )
    corpus, tiny = folder / "text.txt", tiny_backbone(folder / "tiny")
    corpus.write_text("\n".join(sentences(80, seed=6)) + "\n")
    seeds = ",".join(str(seed) for seed in range(1, count + 1))
    command = [
        "run",
        "--method",
        method,
        "--setting",
        "unsupervised",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        str(corpus),
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--seeds",
        seeds,
        "--set",
        "batch_size=8",
        "--set",
        "eval_steps=5",
        "--runs",
        str(folder / "runs"),
    ]
    return watched([RUN, str(done), *command], done, environment, say=say)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=int, default=300)
    parser.add_argument("--method", default="simcse")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        began = time.monotonic()
        found = soak(
            Path(temporary), options.runs, options.method, publish=options.publish, say=True
        )
        wrong = grown(found)
        print(
            f"{told(found[-1])}\n{options.runs} in {time.monotonic() - began:.0f} s; grown: "
            f"{', '.join(wrong) or 'nothing'}"
        )
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
