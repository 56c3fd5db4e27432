"""Measure what `bench search` adds to its trials: choosing values, keeping records, reporting.

    python benchmarks/search.py [--trials 12] [--steps 60] [--sampler random,tpe]

A search of SimCSE on the built-in backbone and corpus runs as a process of its own. The seconds of
a trial run from building the method to the trial's record; the rest of the loop is the search
itself, Optuna's storage included, with a target below 1 % of the whole. Optuna needs more than a
second once, to be imported and to make its file: that is counted, and is much if trials are few and
short. Start-up, planning and figures come once, however many trials there are, and are printed
separately. Exits with 1 if the target is missed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe_machine

LIMIT = 1.0  # per cent
SAID = re.compile(
    r"(\d+) trials here in ([\d,.]+) s; the search itself took ([\d.]+) s, ([\d.]+) % of the time"
)


def measured(sampler: str, trials: int, steps: int) -> tuple[float, float, float]:
    """(seconds in trials, of the search itself, of the whole process)"""
    with tempfile.TemporaryDirectory() as runs:
        command = [
            sys.executable,
            "-c",
            "from bench.cli import main; main()",
            "search",
            "--method",
            "simcse",
            "--suite",
            "check",
            "--corpus",
            "builtin",
            "--trials",
            str(trials),
            "--budget",
            f"{steps}steps",
            "--set",
            "batch_size=16",
            "--set",
            "eval_steps=30",
            "--sampler",
            sampler,
            "--plain",
        ]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "--runs", runs], capture_output=True, text=True, check=False
        )
        whole = time.perf_counter() - began
        found = SAID.search(done.stderr)
        if done.returncode or found is None:
            raise SystemExit(done.stderr)
        assert len(list(Path(runs).glob("*/trials/*/*/trial.json"))) == trials + 1
        return float(found[2].replace(",", "")), float(found[3]), whole


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--sampler", default="random,tpe")
    given = parser.parse_args()
    print(describe_machine())
    missed = False
    for sampler in given.sampler.split(","):
        inside, itself, whole = measured(sampler, given.trials, given.steps)
        share = 100 * itself / (inside + itself)
        missed |= share >= LIMIT
        print(
            f"{sampler}: {given.trials} trials and the recipe, {given.steps} steps each: "
            f"{inside:.1f} s in trials, {itself:.2f} s of search ({share:.2f} %, "
            f"target below {LIMIT:g} %); start, plan and figures {whole - inside - itself:.1f} s"
        )
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
