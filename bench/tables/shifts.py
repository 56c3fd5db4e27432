"""What changes when a run's text or domain does: the two text forms side by side, and the gap between CxC-STS and STS-B."""

from __future__ import annotations

from collections.abc import Iterable

from bench.runs.record import RunRecord, Score
from bench.statistics.summary import DECIMALS
from bench.tables.section import Section
from bench.tables.words import signed

FORMS = {"tokenised": "raw", "sccl": "original"}  # what the papers scored -> what the data's authors published


def sections(record: RunRecord) -> list[Section]:
    """Those that the record has numbers for."""
    return [section for section in (text_forms(record), domain_shift(record)) if section.rows]


def text_forms(record: RunRecord) -> Section:
    """The tasks that were scored in both known forms, and what the model loses or gains on the one that is not the papers'."""
    rows = []
    for one in record.scores:
        other = record.score(one.suite, one.task, one.protocol, FORMS.get(one.text or "", ""))
        if other is not None:
            rows.append((f"{one.suite}: {one.task}", *_gap(one, other)))
    heading = ("task", "papers' text", "raw text", "raw less papers'")
    return Section("robustness to the form of the text", heading, tuple(rows), (1, 2, 3))


def domain_shift(record: RunRecord) -> Section:
    """CxC-STS, captions that no campaign of STS-B saw, less STS-B: one row per CxC protocol and form of STS-B."""
    rows = []
    for near in _of(record, "sts", "STS-B"):
        for far in _of(record, "cxc", "CxC-STS"):
            rows.append((far.protocol, near.text or "", *_gap(near, far)))
    heading = ("CxC protocol", "STS-B text", "STS-B", "CxC-STS", "CxC-STS less STS-B")
    return Section("domain shift", heading, tuple(rows), (2, 3, 4))


def _of(record: RunRecord, suite: str, task: str) -> Iterable[Score]:
    """The task's scores; a task of another protocol may carry something after its name ("CxC-STS-parekh")."""
    return (one for one in record.scores if one.suite == suite and one.task.startswith(task))


def _gap(first: Score, second: Score) -> tuple[str, str, str]:
    decimals = DECIMALS.get(first.metric, 2)
    a, b = round(first.value, decimals), round(second.value, decimals)
    return f"{a:.{decimals}f}", f"{b:.{decimals}f}", signed(b - a, decimals)
