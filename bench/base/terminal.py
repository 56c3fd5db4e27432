"""Lines for the user of a terminal, which the command line and Python functions both print."""

from __future__ import annotations

import shutil
import sys

from bench.base.errors import printable


def warn(line: str) -> None:
    """Print a line on standard error, with control characters made visible."""
    print(printable(line), file=sys.stderr, flush=True)


def terminal_width() -> int:
    """Return the width of the terminal in characters; 100 if there is none."""
    return shutil.get_terminal_size((100, 24)).columns
