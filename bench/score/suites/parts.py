"""Suites with parts: each part has tasks, a protocol and an average of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.score.suites.task import Suite


@dataclass(frozen=True)
class Part:
    """The tasks of one protocol; their mean is the average of their table.

    Attributes:
        tasks: Names of tasks of the suite, all under the protocol.
        holds: The tasks of the mean in words: "the ten translations of STS-B".
    """

    tasks: tuple[str, ...]
    holds: str


@dataclass(frozen=True, kw_only=True)
class SuiteOfParts(Suite):
    """A suite with an average for each of its protocols.

        SuiteOfParts(..., average=None, parts={"my-protocol/1": Part(("a", "b"), "both tasks")})

    Attributes:
        parts: Protocol -> the tasks of its average.
    """

    parts: Mapping[str, Part]


def averaged_tasks(suite: Suite, protocol: str) -> tuple[str, ...]:
    """Return the tasks that a suite's average under a protocol is the mean of; () without one."""
    if isinstance(suite, SuiteOfParts):
        part = suite.parts.get(protocol)
        return part.tasks if part else ()
    return suite.average or ()
