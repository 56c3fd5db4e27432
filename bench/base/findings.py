"""The outcome of one check: of a record, score, plugin, data set, printed number or machine."""

from __future__ import annotations

from dataclasses import dataclass

AGREES = "agrees"
DIFFERS = "differs"
UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Finding:
    """One check and its outcome: ``Finding("score", "STS12", DIFFERS, why="72.41, not 72.40")``."""

    # the kind of check
    kind: str
    # the thing that was checked
    what: str
    # AGREES, DIFFERS or UNCHECKED
    outcome: str
    # the difference, the observation, or the reason why it could not be checked
    why: str = ""
    # an earlier check that failed in the same way: one cause is one failure
    repeats: str = ""
    # a way to solve it
    hint: str = ""

    @property
    def passed(self) -> bool:
        """True if the check found nothing wrong."""
        return self.outcome == AGREES

    @property
    def failed(self) -> bool:
        """True if the check itself failed, and not something before it."""
        return not self.passed and not self.repeats
