"""The conformance suite: what any plugin must keep to. ``bench check NAME-or-FILE`` runs it.

A check is a function that returns what it saw, and raises :class:`Failed` if the contract is broken. :mod:`methods` has those of
methods, :mod:`suites` those of suites.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.base.errors import BenchError, RunFailed
from bench.base.findings import AGREES, DIFFERS, Finding
from bench.base.user_code import located

DEPRECATED = r"bench\.(method|score\.suites)\b"
"""How the text of a DeprecationWarning begins that is about the contract: docs/architecture.md."""


class Failed(Exception):
    """A check that does not hold; the text is what was seen."""


def fail_if(failed: object, seen: str) -> None:
    """Raises Failed with what was seen."""
    if failed:
        raise Failed(seen)


def result_of(about: str, check: str, function: Callable[[], str]) -> Finding:
    """What ``function`` returned, or why it failed: also where it uses what is deprecated. Raises BenchError where nothing could be
    checked at all."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", DEPRECATED, DeprecationWarning)
            return Finding(check, about, AGREES, function())
    except Failed as error:
        return Finding(check, about, DIFFERS, str(error))
    except RunFailed as error:  # what a run of it would say
        return Finding(check, about, DIFFERS, "; ".join(filter(None, (error.message, error.hint))))
    except BenchError:
        raise
    except (Exception, SystemExit) as error:  # a plugin's own code
        return Finding(check, about, DIFFERS, located(error))


def once_each(results: Sequence[Finding]) -> list[Finding]:
    """The results, in which a check that failed as one before it did only names that one."""
    first: dict[str, Finding] = {}
    named = []
    for result in results:
        before = result if result.passed else first.setdefault(result.why, result)
        named.append(
            result if before is result else replace(result, repeats=before.kind, why="as above")
        )
    return named
