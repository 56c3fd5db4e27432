"""``bench`` and Python as processes, and what they leave: all that tests of promises may use.

Nothing of bench is imported here, so that these tests outlive what they check. Most processes begin
with all imported (prepared.py); ``alone`` ones begin as a user's do.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import prepared
from prepared import environment

BENCH = str(Path(sys.executable).with_name("bench"))
"""The command of the environment in which the tests run."""


class UnexpectedEnd(Exception):
    """A process that ended with another exit code than the test needs to go on.

    It is no AssertionError: a test that is marked as not kept yet must not pass for this reason.
    """


@dataclass(frozen=True)
class Done:
    """A process that has ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        return json.loads(self.out)


def bench(
    *words: str | Path,
    cwd: Path,
    code: int | None = 0,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
    alone: bool = False,
) -> Done:
    """Run ``bench`` with these words in a folder, and return what it printed.

    Raises UnexpectedEnd if it ends with another exit code than ``code``; None allows every one.
    """
    return _ended(
        [BENCH, *map(str, words)], None, cwd, code, seconds, environment(**env or {}), alone
    )


def python(
    script: str,
    *words: str | Path,
    cwd: Path,
    code: int | None = 0,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
    alone: bool = False,
) -> Done:
    """Run a script of Python, which may say ``import bench``, as :func:`bench` runs a command."""
    return _ended(
        ["-c", *map(str, words)], script, cwd, code, seconds, environment(**env or {}), alone
    )


Process = subprocess.Popen[str] | prepared.Child


def begun(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Process:
    """Start ``bench`` in a session of its own, and do not wait: a test stops or kills it."""
    return _begun([BENCH, *map(str, words)], None, cwd, environment(**env or {}))


def _begun(
    argv: list[str],
    script: str | None,
    cwd: Path,
    variables: Mapping[str, str],
    alone: bool = False,
) -> Process:
    if not alone and prepared.fits(variables):
        return prepared.Child(argv, script, cwd, variables)
    return subprocess.Popen(
        argv if script is None else [sys.executable, "-c", script, *argv[1:]],
        cwd=cwd,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def _ended(
    argv: list[str],
    script: str | None,
    cwd: Path,
    code: int | None,
    seconds: float,
    variables: Mapping[str, str],
    alone: bool,
) -> Done:
    process = _begun(argv, script, cwd, variables, alone)
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    end = process.returncode
    if code is not None and end != code:
        raise UnexpectedEnd(
            f"{' '.join(argv)}\nended with {end}, not {code}\n{out[-4000:]}\n{err[-4000:]}"
        )
    return Done(tuple(argv), end, out, err)


def error_line(done: Done) -> str:
    """Return the one line that says what is wrong; one more line at most says what to try."""
    lines = done.err.splitlines()
    errors = [line for line in lines if line.lower().startswith("error: ")]
    assert len(errors) == 1, done.err
    after = lines[lines.index(errors[0]) + 1 :]
    assert len(after) <= 1, done.err
    assert all(line.startswith("try: ") for line in after), done.err
    assert "Traceback" not in done.out + done.err
    return errors[0]


def run_folders(runs: Path) -> list[Path]:
    """Return the folders of runs in a folder, by name."""
    return sorted(path.parent for path in runs.glob("*/run.json"))


def record(run: Path) -> dict[str, Any]:
    """Return the record of a run."""
    return dict(json.loads((run / "run.json").read_text(encoding="utf-8")))


def hashes(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of a folder but locks and __pycache__, by its path."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != ".lock" and "__pycache__" not in path.parts
    }
