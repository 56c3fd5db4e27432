"""Runs that tests of promises stop, kill, and compare with undisturbed ones.

``paused.py`` is a stranger's plugin: a method that writes a line at every step, and waits.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from started import Done, Process, begun, hashes, record

PAUSED = """\
import os
import time

from bench.methods.{module} import {parent}


def setting(name):
    if name in os.environ:
        return os.environ[name]
    with open(f"{folder}/{{name}}") as file:
        return file.read()


def say(what):
    with open(setting("STEPS"), "a") as file:
        print(what, os.getpid(), file=file)
    time.sleep(float(setting("PAUSE")))


class Paused({parent}):
    name = "paused"

    def loss(self, views, batch):
        say("step")
        return super().loss(views, batch)

    def embed(self, *given, **named):
        say("embed")
        return super().embed(*given, **named)
"""

FAILS = """\
from bench.methods.simcse import SimCSE


class Fails(SimCSE):
    name = "fails"

    def loss(self, views, batch):
        raise ValueError("no loss today")
"""


def write_paused(path: Path, module: str = "simcse", parent: str = "SimCSE") -> Path:
    """Write the plugin: ``paused`` trains as its parent does, and can be awaited.

    $STEPS is the file with a line for each step and each batch that is encoded, and the number of
    the process; $PAUSE the seconds that each takes. Files of these names beside the plugin say the
    same to processes that do not get the variables.
    """
    text = PAUSED.format(module=module, parent=parent, folder=path.parent)
    path.write_text(text, encoding="utf-8")
    return path


def write_fails(path: Path) -> Path:
    """Write a plugin whose method ``fails`` at its first step."""
    path.write_text(FAILS, encoding="utf-8")
    return path


def said(steps: Path, what: str = "step") -> list[int]:
    """Return the process of each step, or of each batch that was encoded, in order."""
    lines = steps.read_text().splitlines() if steps.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(f"{what} ")]


def until(reached: Callable[[], Any], process: Process | None, seconds: float = 300) -> None:
    """Wait until something is reached, while a process is at work."""
    end = time.monotonic() + seconds
    while not reached():
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"it has ended before: {process.communicate()}")
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.02)


def stopped(
    words: list[str | Path],
    reached: Callable[[], Any],
    *,
    cwd: Path,
    env: dict[str, str],
    by: int = signal.SIGKILL,
) -> Done:
    """Start ``bench``, send its processes a signal as soon as something is reached, and wait."""
    process = begun(*words, cwd=cwd, env=env)
    try:
        until(reached, process)
        os.killpg(process.pid, by)
        out, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return Done(tuple(map(str, words)), process.returncode, out, err)


def lasting(run: Path) -> dict[str, Any]:
    """Return what no machine, clock or restart changes of a finished run.

    These are the bytes of its files, its curve without speeds, and its scores.
    """
    files = {
        name: told for name, told in hashes(run).items() if name not in ("run.json", "curve.jsonl")
    }
    curve = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    kept = record(run)
    return {
        "files": files,
        "losses": [(point["step"], point.get("loss")) for point in curve],
        "status": kept["status"],
        "scores": [(one["suite"], one["task"], one["value"]) for one in kept["scores"]],
        "steps": kept["training"]["steps"],
    }


def listed(printed: str) -> list[dict[str, Any]]:
    """Read what ``bench runs --json`` prints: an object a line."""
    return [json.loads(line) for line in printed.splitlines() if line]
