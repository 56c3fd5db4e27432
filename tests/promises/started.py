"""``bench`` and Python as processes, and what they leave: all that tests of promises may use.

Nothing of bench is imported here, so that these tests outlive what they check.
"""

from __future__ import annotations

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


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a process: those of the tests, no folder of the user's, one thread."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    kept |= {
        "BENCH_CACHE": os.environ.get("BENCH_CACHE", ""),
        "COLUMNS": "200",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "default",
    }
    return kept | variables


def bench(
    *words: str | Path,
    cwd: Path,
    code: int | None = 0,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run ``bench`` with these words in a folder, and return what it printed.

    Raises UnexpectedEnd if it ends with another exit code than ``code``; None allows every one.
    """
    return _ended((BENCH, *map(str, words)), cwd, code, seconds, env or {})


def python(
    script: str,
    *words: str | Path,
    cwd: Path,
    code: int | None = 0,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run a script of Python, which may say ``import bench``, as :func:`bench` runs a command."""
    return _ended((sys.executable, "-c", script, *map(str, words)), cwd, code, seconds, env or {})


def begun(
    *words: str | Path, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start ``bench`` in a session of its own, and do not wait: a test stops or kills it."""
    return _begun((BENCH, *map(str, words)), cwd, env or {})


def _begun(words: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=cwd,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def _ended(
    words: tuple[str, ...], cwd: Path, code: int | None, seconds: float, env: Mapping[str, str]
) -> Done:
    process = _begun(words, cwd, env)
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    done = Done(words, process.returncode, out, err)
    if code is not None and done.code != code:
        said = (
            f"{' '.join(words)}\nended with {done.code}, not {code}\n{out[-4000:]}\n{err[-4000:]}"
        )
        raise UnexpectedEnd(said)
    return done


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
