"""Lines on standard error."""

from __future__ import annotations

import sys

from bench.base.errors import printable


def warn(line: str) -> None:
    """One line on standard error, with control characters made visible."""
    print(printable(line), file=sys.stderr, flush=True)
