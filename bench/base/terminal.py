"""Lines for the user of a terminal, which the command line and Python functions both print."""

from __future__ import annotations

import os
import shutil
import sys

from bench.base.errors import BenchError, printable


def warn(line: str) -> None:
    """Print a line on standard error, with control characters made visible."""
    print(printable(line), file=sys.stderr, flush=True)


def shows_bars() -> bool:
    """Tell whether standard error is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def check_system() -> None:
    """Raise BenchError on native Windows, which lacks modules of Python that bench needs."""
    if sys.platform == "win32":
        raise BenchError(
            "bench runs on Linux and macOS, not on native Windows",
            "install it in the Windows Subsystem for Linux (WSL 2), as on Linux",
        )


NO_TERMINAL = 100_000
"""Characters of a line that is not for a terminal: nothing is wrapped, so that grep finds it."""


def terminal_width() -> int:
    """Return $COLUMNS, or the width of the terminal; NO_TERMINAL if output goes elsewhere."""
    return shutil.get_terminal_size((NO_TERMINAL, 24)).columns
