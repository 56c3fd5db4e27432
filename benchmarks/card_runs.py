"""Does the runs of a plan on one card until a deadline, and packs what must come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from card_measure import commit_here, describe_card

from bench.base.devices import choose_device
from bench.base.text import format_bytes

WORKS_ON = 45.0
"""Seconds that the runs have to save what they have after they were asked to end."""
LEFT_OUT = ("checkpoint", "vectors", "state")
"""Parts of a run's folder that do not come back: weights, and what is made from them."""
PACKED = "runs.tar.xz"
ABOUT = "card.json"


@dataclass(frozen=True)
class Work:
    """What one command does on a card."""

    plan: Path
    out: Path
    device: str
    processes: int
    seconds: float
    """Until the runs are asked to end."""

    runs: Path = Path("runs")


def do_runs(work: Work) -> int:
    """Do the runs, the most important first, and write ``out/runs.tar.xz``; returns the exit code.

    At the deadline the runs are asked to end once; a run that is not finished comes back as far as
    its record and curve go.
    """
    began = time.monotonic()
    command = [sys.executable, "-P", "-m", "bench", "run", "--plan", str(work.plan), "--plain"]
    command += ["--device", work.device, "--on", f"local:{work.processes}"]
    command += ["--runs", str(work.runs)]
    work.out.mkdir(parents=True, exist_ok=True)
    with (work.out / "runs.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait(work.seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = _wait_or_kill(process)
    about = {
        "commit": commit_here(),
        "machine": describe_card(choose_device(work.device)),
        "seconds": round(time.monotonic() - began, 1),
        "exit_code": code,
    }
    (work.out / ABOUT).write_text(json.dumps(about) + "\n", encoding="utf-8")
    size = pack_runs(work.runs, work.out)
    print((work.out / "runs.log").read_text(errors="replace")[-1500:])
    print(f"{work.out / PACKED}: {format_bytes(size)} after {about['seconds']} s, exit code {code}")
    # 130: ended at the deadline, as asked
    return 0 if code in (0, 130) else code


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(WORKS_ON)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def pack_runs(runs: Path, out: Path) -> int:
    """Pack records, predictions, curves and logs; returns the bytes of the archive."""
    file = out / PACKED

    def keep(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(entry.name).parts
        if len(parts) > 2 and parts[2] in LEFT_OUT:
            return None
        if parts[-1] == ".lock" or (parts[1:2] == (".jobs",) and "plugins" in parts):
            return None
        return entry

    with tarfile.open(file, "w:xz") as archive:
        archive.add(out / ABOUT, ABOUT)
        if runs.is_dir():
            archive.add(runs, "runs", filter=keep)
    return file.stat().st_size
