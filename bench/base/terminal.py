"""Lines for the user of a terminal, which the command line and Python functions both print."""

from __future__ import annotations

import shutil
import sys

from bench.base.errors import BenchError, printable


def warn(line: str) -> None:
    """Print a line on standard error, with control characters made visible."""
    print(printable(line), file=sys.stderr, flush=True)


def check_system() -> None:
    """Raise BenchError on native Windows, which lacks modules of Python that bench needs."""
    if sys.platform == "win32":
        raise BenchError(
            "bench runs on Linux and macOS, not on native Windows",
            "install it in the Windows Subsystem for Linux (WSL 2), as on Linux",
        )


def terminal_width() -> int:
    """Return the width of the terminal in characters; 100 if there is none."""
    return shutil.get_terminal_size((100, 24)).columns
