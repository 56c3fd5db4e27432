"""Runs a card's measurement: lines one after the other, in a process that may die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from card_lines import FAILED, LINES, Line, Results, measure_line, result_of

HERE = Path(__file__).resolve().parent
PATIENCE = 90.0
"""Seconds that the shortest line may take before its process is ended."""
STARTED = "started.json"
"""The file that names the line at work, so that a process that dies is known by it."""
LOST = 3
"""Exit code of a process that has lost the card."""


@dataclass(frozen=True)
class Order:
    """What one call of ``card.py measure`` is asked for."""

    out: Path
    device: str
    tiny: bool
    seconds: float
    """Time to spend; lines that do not fit are left to the next call."""
    only: tuple[str, ...] = ()


def chosen_lines(only: Sequence[str]) -> list[Line]:
    """Return the lines that names or tables choose; all without a name.

    Raises ValueError for a name that is none.
    """
    known = {line.name for line in LINES} | {line.table for line in LINES}
    for name in only:
        if name not in known:
            raise ValueError(f"--only {name}: no such line; there are {', '.join(sorted(known))}")
    if not only:
        return list(LINES)
    return [line for line in LINES if line.name in only or line.table in only]


def measure(order: Order) -> int:
    """Measure what is missing in the folder, then what failed; returns the exit code.

    A second process measures: one that dies, hangs or loses the card costs its line alone.
    """
    chosen = chosen_lines(order.only)
    deadline = time.monotonic() + order.seconds
    tried: set[str] = set()
    while True:
        results = Results(order.out)
        left = [line for line in results.remaining(chosen) if line.name not in tried]
        seconds = deadline - time.monotonic()
        fitting = [line for line in left if order.tiny or line.seconds <= seconds]
        if not fitting:
            break
        tried |= _measure_in_child(order, [line.name for line in fitting], deadline)
    results = Results(order.out)
    missing = [line.name for line in chosen if line.name not in results.lines]
    if missing:
        print(f"no time was left for {', '.join(missing)}; the same command goes on", flush=True)
    print(order.out / "tables.md")
    statuses = [results.lines[line.name]["status"] for line in chosen if line.name in results.lines]
    return int(FAILED in statuses)


def _measure_in_child(order: Order, names: list[str], deadline: float) -> set[str]:
    """Measure lines in a process until it ends; returns those that were tried."""
    order.out.mkdir(parents=True, exist_ok=True)
    started = order.out / STARTED
    started.unlink(missing_ok=True)
    before = len(_result_lines(order.out))
    command = [sys.executable, str(HERE / "card.py"), "measure", "--out", str(order.out)]
    command += ["--device", order.device, "--child", json.dumps([names, deadline])]
    if order.tiny:
        command.append("--tiny")
    paths = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "HF_HUB_OFFLINE": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # for torch's deterministic kernels
    }
    # the peer's tokenizer must not be slowed down
    environment.pop("TOKENIZERS_PARALLELISM", None)
    with (order.out / "log.txt").open("ab") as log:
        child = subprocess.Popen(command, stderr=log, env=environment, start_new_session=True)
        problem = _wait_for_lines(child, started)
    done = {result["line"] for result in _result_lines(order.out)[before:]}
    line = _line_at_work(started)
    if line is None and not done:
        # it did not even begin: nothing more can be measured
        problem = problem or f"its process ended with exit code {child.returncode}"
        print(f"error: {problem}; see {order.out / 'log.txt'}", file=sys.stderr)
        return set(names)
    if line is not None and line not in done:
        problem = problem or f"its process ended with exit code {child.returncode}"
        failed = {"status": FAILED, "value": problem, "asked": "", "detail": {}}
        Results(order.out).add(line, failed)
        print(f"{FAILED:9} {line}: {problem}", flush=True)
        done.add(line)
    if child.returncode == 0:  # also those for which no time was left
        return set(names)
    return done


def _wait_for_lines(child: subprocess.Popen[bytes], started: Path) -> str | None:
    """Wait until the process ends; end it if a line takes too long, and say so."""
    known = {line.name: line for line in LINES}
    began = time.monotonic()
    current: str | None = None
    while child.poll() is None:
        time.sleep(0.1)
        line = _line_at_work(started)
        if line != current:
            current, began = line, time.monotonic()
        expected = known[line].seconds if line is not None else 60.0
        limit = max(PATIENCE, 5 * expected)
        if time.monotonic() - began > limit:
            child.kill()
            child.wait()
            return f"no answer in {limit:.0f} s, {expected:.0f} were expected"
    return None


def _line_at_work(started: Path) -> str | None:
    try:
        return str(json.loads(started.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _result_lines(folder: Path) -> list[dict[str, Any]]:
    from card_lines import RESULTS

    file = folder / RESULTS
    if not file.is_file():
        return []
    found = []
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def measure_here(order: Order, names: Sequence[str], deadline: float) -> int:
    """Measure lines in this process; returns ``LOST`` if the card cannot be used any more."""
    from card_models import Place

    from bench.base.devices import choose_device

    device = choose_device(order.device)
    about = describe_card(device)
    commit = commit_here()
    results = Results(order.out)
    print(about, flush=True)
    if order.tiny:
        import torch

        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="bench-card-") as scratch:
        place = Place(device, order.tiny, Path(scratch))
        os.environ.setdefault("BENCH_CACHE", str(place.scratch / "cache"))
        for name in names:
            line = next(line for line in LINES if line.name == name)
            if not order.tiny and line.seconds > deadline - time.monotonic():
                continue
            (order.out / STARTED).write_text(json.dumps(name), encoding="utf-8")
            began = time.monotonic()
            result = result_of(line, lambda name=name: measure_line(place, name))
            seconds = round(time.monotonic() - began, 1)
            lost = result.pop("lost", False)
            facts = {"seconds": seconds, "machine": about, "commit": commit, "tiny": order.tiny}
            results.add(name, {**result, **facts})
            print(f"{result['status']:9} {seconds:6.1f} s  {name}: {result['value']}", flush=True)
            if lost:
                return LOST
    return 0


def describe_card(device: str) -> str:
    """Return the device and the machine in a line."""
    import torch
    from machine import describe_machine

    from bench.base.devices import device_name

    machine = describe_machine()
    if device == "cpu":
        return machine
    return f"{device_name(device)}; {machine}, CUDA {torch.version.cuda}"


def commit_here() -> str:
    """Return the commit of this checkout, with a + if files differ from it.

    Without a ``.git`` it is $BENCH_COMMIT, as the kit's commands set it, or "unknown".
    """
    if os.environ.get("BENCH_COMMIT"):
        return os.environ["BENCH_COMMIT"]
    found = []
    for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")):
        try:
            done = subprocess.run(
                ["git", "-C", str(HERE), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        found.append(done.stdout.strip())
    return found[0] + ("+" if found[1] else "")
