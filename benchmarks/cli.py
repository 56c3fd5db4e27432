"""Time `bench --help` as a process, and check that it does not import torch.

    python benchmarks/cli.py [--repeat 10]

Each measurement is a process of its own, started with the interpreter that runs this file, and
timed from start to exit, as a user waits for it. One more such process reports its imports.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HEAVY = ("torch", "transformers", "numpy", "scipy", "mteb", "sentence_transformers")
LIMIT = 0.3  # seconds


def console_script() -> list[str]:
    """Return the `bench` script of this interpreter, as a user starts it; else the module."""
    script = Path(sys.executable).parent / "bench"
    return (
        [str(script)]
        if script.exists()
        else [sys.executable, "-c", "from bench.cli import main; main()"]
    )


def seconds_of(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def imported(arguments: list[str]) -> list[str]:
    """Which of the heavy packages a `bench` with these arguments has imported when it ends."""
    code = (
        "import sys\nfrom bench.cli import main\n"
        f"try: main({arguments!r}, standalone_mode=False)\nexcept SystemExit: pass\n"
        f"print('IMPORTED', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    return out[out.index("IMPORTED") :].split()[1:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=10)
    args = parser.parse_args()

    command = [*console_script(), "--help"]
    seconds_of(command)  # compiles what is not compiled yet
    bare = [seconds_of([sys.executable, "-c", "pass"]) for _ in range(args.repeat)]
    taken = [seconds_of(command) for _ in range(args.repeat)]
    heavy = imported(["--help"])
    median = statistics.median(taken)
    print(f"{os.uname().machine}, Python {sys.version.split()[0]}, {args.repeat} processes each")
    print(f"python -c pass      {statistics.median(bare):.3f} s")
    print(
        f"bench --help        {median:.3f} s (median; {min(taken):.3f} to {max(taken):.3f}), "
        f"target below {LIMIT} s"
    )
    print(f"imported: {', '.join(heavy) or 'none of ' + ', '.join(HEAVY)}")
    if median >= LIMIT or heavy:
        sys.exit("the target is missed")


if __name__ == "__main__":
    main()
