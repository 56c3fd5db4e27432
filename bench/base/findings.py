"""The outcome of one check: of a record, score, plugin, data set, printed number or machine."""

from __future__ import annotations

from dataclasses import dataclass

AGREES, DIFFERS, UNCHECKED = "agrees", "differs", "unchecked"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: which check, where, how it came out, why, and what to do.

    ``why``: what differs, what was seen, or why it could not be looked at. ``repeats``: the check
    that failed before it in the very same way; one cause is one failure. ``hint``: what to do about
    it.
    """

    kind: str
    what: str
    outcome: str
    why: str = ""
    repeats: str = ""
    hint: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == AGREES

    @property
    def failed(self) -> bool:
        """True if the check failed for a reason of its own."""
        return not self.passed and not self.repeats
