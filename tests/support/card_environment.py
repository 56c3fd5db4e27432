"""An environment as the machine with the card has it: Python 3.12 and its versions, nothing of
ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSIONS = Path(__file__).resolve().parents[2] / "benchmarks" / "card-versions.txt"
WHEEL = "msgspec==0.22.0"
"""The package that the kit carries."""
ROOM = 8e9
"""Bytes that the environment takes while it is made."""


def python_312() -> str | None:
    """Return a Python 3.12: on PATH, or of pyenv."""
    found = shutil.which("python3.12")
    if found is not None and works(found):
        return found
    for python in sorted(Path.home().glob(".pyenv/versions/3.12.*/bin/python")):
        if works(str(python)):
            return str(python)
    return None


def works(python: str) -> bool:
    """Say if a Python can make environments; pyenv has names for versions that are not chosen."""
    asked = [python, "-c", "import ensurepip, venv"]
    return subprocess.run(asked, capture_output=True).returncode == 0


def card_python(folder: Path) -> str:
    """Return the python of such an environment, made below ``folder``: or $BENCH_CARD_PYTHON.

    Skips the test, with the reason, if it cannot be made here.
    """
    given = os.environ.get("BENCH_CARD_PYTHON")
    if given:
        return given
    python = python_312()
    if python is None:
        pytest.skip("no Python 3.12 on PATH or in ~/.pyenv")
    if shutil.disk_usage(folder).free < ROOM:
        pytest.skip(f"an environment with a card's torch takes {ROOM / 1e9:.0f} GB of the disk")
    ask(python, "-m", "venv", str(folder / "venv"))
    made = str(folder / "venv" / "bin" / "python")
    ask(made, "-m", "pip", "install", "--no-cache-dir", "--only-binary", ":all:", "-r", VERSIONS)
    return made


def wheels_for(python: str, folder: Path) -> tuple[Path, ...]:
    """Return the wheels that travel, for that Python."""
    ask(
        python,
        *["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-d"],
        folder,
        WHEEL,
    )
    return tuple(sorted(folder.glob("*.whl")))


def ask(*words: str | Path) -> None:
    """Run a command; skip the test with its last line if it fails: a package may not be here."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        pytest.skip(f"{' '.join(map(str, words[1:4]))}: {lines[-1]}")
