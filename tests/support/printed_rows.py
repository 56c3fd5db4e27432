"""Made-up rows of printed numbers, and the audit's remarks about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from audit_checks import CHECKS

from bench.papers import PrintedRow, ReferenceResult
from bench.papers.remarks import Remark

NAMED = {"paper": "promcse", "table": "1", "label": "X", "setting": "unsupervised", "method": "x"}
NAMED |= {"backbone": "b", "variant": "", "task": "STS12", "metric": "spearman", "runs": ""}
PRINTED = {"value": 70.0, "printed": "70.00", "std": None, "own_result": True, "source": ""}
PRINTED |= {"protocol": "senteval-all/1", "text": "tokenised", "corpus": "", "note": ""}
MADE = ReferenceResult(**NAMED, **PRINTED)


def printed_row(values: Mapping[str, float | str], **changes: object) -> PrintedRow:
    """Make a printed row; a number given as text is printed so, others with two decimals."""
    printed = {
        task: value if isinstance(value, str) else f"{value:.2f}" for task, value in values.items()
    }
    cells = (
        replace(MADE, task=task, value=float(text), printed=text, **changes)
        for task, text in printed.items()
    )  # type: ignore[arg-type]
    return PrintedRow(tuple(cells))


def kinds_of(every: list[PrintedRow]) -> dict[str, list[Remark]]:
    found: dict[str, list[Remark]] = {}
    for check in CHECKS:
        for remark in check(every):
            found.setdefault(remark.kind, []).append(remark)
    return found
