"""What was found of a whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.base.findings import AGREES, DIFFERS, UNCHECKED, Finding
from bench.runs.record import RunRecord, Score

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
    "encoding",
)
"""What a finding is about, in the order in which they are told."""


@dataclass(frozen=True)
class RunReport:
    """Everything that was found of one run, or of a folder's manifest."""

    name: str
    findings: Sequence[Finding]
    status: str = "finished"
    record: RunRecord | None = field(default=None, repr=False)

    @property
    def differences(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome == DIFFERS]

    @property
    def unchecked(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome == UNCHECKED]

    def count_agreeing(self) -> int:
        return sum(finding.outcome == AGREES for finding in self.findings)

    def count(self, kind: str, outcome: str = AGREES) -> int:
        return sum(finding.kind == kind and finding.outcome == outcome for finding in self.findings)

    def as_object(self) -> dict[str, Any]:
        """As JSON: what was counted, and every finding that does not agree."""
        return {
            "run_id": self.name,
            "status": self.status,
            "agree": sum(not finding.why for finding in self.findings),
            "differ": len(self.differences),
            "unchecked": len(self.unchecked),
            "findings": [asdict(finding) for finding in self.findings if finding.why],
        }


def cell(score: Score) -> str:
    """ "sts STS12 (raw)", "cxc CxC-STS [cxc-parekh/1]": which score a finding is about."""
    form = "" if score.text in (None, "tokenised") else f" ({score.text})"
    protocol = f" [{score.protocol}]" if score.suite == "cxc" else ""
    return f"{score.suite} {score.task}{form}{protocol}"
