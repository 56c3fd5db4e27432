"""The conformance checks of plugins.

``bench check`` runs them.

A check is a function that returns its observation as text, and raises :class:`Failed` if the plugin
breaks the contract. :mod:`methods` checks methods, and :mod:`suites` checks suites.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.base.errors import BenchError, RunFailed
from bench.base.findings import AGREES, DIFFERS, Finding
from bench.base.user_code import located

# The beginning of a DeprecationWarning that is about the contract (docs/promises.md).
DEPRECATED = r"bench\.(method|score\.suites)\b"


class Failed(Exception):
    """A plugin breaks the contract; the text says how."""


def fail_if(failed: object, seen: str) -> None:
    """Raise Failed with the observation ``seen``, if ``failed``."""
    if failed:
        raise Failed(seen)


def result_of(about: str, check: str, function: Callable[[], str]) -> Finding:
    """Run a check; returns its observation, or the reason why it failed.

    A check also fails if the plugin uses something deprecated. Raises BenchError if nothing could
    be checked at all.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", DEPRECATED, DeprecationWarning)
            return Finding(check, about, AGREES, function())
    except Failed as error:
        return Finding(check, about, DIFFERS, str(error))
    except RunFailed as error:  # a run of it would end with this error
        return Finding(check, about, DIFFERS, "; ".join(filter(None, (error.message, error.hint))))
    except BenchError:
        raise
    except (Exception, SystemExit) as error:  # a plugin's own code
        return Finding(check, about, DIFFERS, located(error))


def once_each(results: Sequence[Finding]) -> list[Finding]:
    """Shorten results: a check that failed for the reason of an earlier one only names that one."""
    first: dict[str, Finding] = {}
    named = []
    for result in results:
        before = result if result.passed else first.setdefault(result.why, result)
        named.append(
            result if before is result else replace(result, repeats=before.kind, why="as above")
        )
    return named
