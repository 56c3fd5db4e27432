"""``bench`` through click's runner, and questions about its output and files."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from unittest import mock

from click.testing import CliRunner, Result

from bench.cli import main

SMALL = ("--set", "batch_size=8", "--set", "eval_steps=3")


def bench(*arguments: str | Path, **env: str) -> Result:
    given = [str(one) for one in arguments]
    with mock.patch.object(sys, "argv", ["bench", *given]):  # recorded as the command
        return CliRunner(env={"COLUMNS": "200", **env}).invoke(main, given, catch_exceptions=False)


def argv(line: str) -> list[str]:
    """Split a command line at its blanks; no word has blanks in it."""
    return line.split()


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Return each file's time of change and content; lock files are left out, they always stay."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock")
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, sha256(p.read_bytes()).hexdigest())
        for p in files
    }


def error_line(done: Result, code: int = 2) -> str:
    """Return the one line that says what is wrong; at most one more says what to try."""
    assert done.exit_code == code, done.stderr
    lines = done.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    after = lines[lines.index(errors[0]) + 1 :]
    assert len(after) <= 1 and all(line.startswith("try: ") for line in after), done.stderr
    assert "Traceback" not in done.output
    return errors[0]


def the_run(runs: Path) -> Path:
    (folder,) = [path for path in runs.iterdir() if path.is_dir()]
    return folder
