"""What a check of a plugin found: whether one thing that the contract asks holds, and what was seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from bench.base.errors import BenchError, one_line


@dataclass(frozen=True)
class CheckResult:
    """``about``: the setting of a method, or the task of a suite."""

    about: str
    check: str
    passed: bool
    seen: str


DEPRECATED = r"bench\.(method|score\.suites)\b"
"""How the text of a DeprecationWarning begins that is about the contract: docs/releasing.md."""


class Failed(Exception):
    """A check that does not hold; the text is what was seen."""


def result_of(about: str, check: str, function: Callable[[], str]) -> CheckResult:
    """What ``function`` returned, or why it failed: also where it uses what is deprecated. Raises BenchError where nothing could be
    checked at all."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", DEPRECATED, DeprecationWarning)
            return CheckResult(about, check, True, function())
    except Failed as error:
        return CheckResult(about, check, False, str(error))
    except BenchError:
        raise
    except Exception as error:  # a plugin's own code
        return CheckResult(about, check, False, one_line(error))
