"""The report of a verification: one finding for each check, and the findings of one run or version
together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.base.errors import BenchError
from bench.base.findings import AGREES, DIFFERS, UNCHECKED, Finding
from bench.records.names import protocol_text
from bench.records.record import Score

KINDS = (
    "record",
    "score",
    "detail",
    "average",
    "predictions",
    "gold",
    "data",
    "checkpoint",
    "fingerprint",
    "files",
    "links",
    "runs",
    "seeds",
    "tables",
)
"""The subjects of findings, in the order of their counts."""


class NotChecked(Exception):
    """Raised by a check that cannot be made here; its text is the reason."""


def make_finding(kind: str, what: str, difference: Callable[..., str], *arguments: Any) -> Finding:
    """Return the finding of one check. ``difference`` of the arguments returns what differs, "" if
    nothing does; it may raise NotChecked, and BenchError for what cannot be read: that differs.
    """
    try:
        why = difference(*arguments)
    except NotChecked as reason:
        return Finding(kind, what, UNCHECKED, str(reason))
    except BenchError as error:
        why = error.message
    return Finding(kind, what, DIFFERS if why else AGREES, why)


@dataclass(frozen=True)
class RunReport:
    """The findings of one run, or of a version's files."""

    name: str
    findings: Sequence[Finding]
    status: str = "finished"

    def select(self, outcome: str, kind: str = "") -> list[Finding]:
        """Return the findings with this outcome, of one kind or of all."""
        return [
            finding
            for finding in self.findings
            if finding.outcome == outcome and kind in ("", finding.kind)
        ]

    def count(self, kind: str = "", outcome: str = AGREES) -> int:
        return len(self.select(outcome, kind))

    @property
    def differences(self) -> list[Finding]:
        return self.select(DIFFERS)

    @property
    def unchecked(self) -> list[Finding]:
        return self.select(UNCHECKED)

    def as_object(self) -> dict[str, Any]:
        """Return plain JSON values: the counts, and every finding that does not agree."""
        return {
            "run_id": self.name,
            "status": self.status,
            "agree": self.count(),
            "differ": len(self.differences),
            "unchecked": len(self.unchecked),
            "findings": [asdict(finding) for finding in self.findings if finding.why],
        }


def name_score(score: Score) -> str:
    """Return "sts STS12", "sts STS12 [senteval-all-raw/1]", "cxc CxC-STS [cxc-parekh/1]": which
    score a finding is about."""
    has_others = score.suite == "cxc" or protocol_text(score.protocol)
    protocol = f" [{score.protocol}]" if has_others else ""
    return f"{score.suite} {score.task}{protocol}"
