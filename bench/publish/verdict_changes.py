"""Which cells of two versions have another verdict, and whether the scores, the table or the statistics did it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NOISE = 1e-6  # points: other libraries of linear algebra add in another order, which is no change


@dataclass(frozen=True, kw_only=True)
class ChangedVerdict:
    """One cell of two versions whose verdict against the same baseline is another one now."""

    method: str  # "promcse+eh", and what sets its row apart
    setting: str
    backbone: str
    suite: str
    task: str
    protocol: str
    text: str | None
    baseline: str
    before: str  # "better", "worse", "equivalent", "unknown", "not tested"
    after: str
    why: tuple[str, ...]  # never empty


@dataclass(frozen=True)
class Judgement:
    """What a table says of one cell. ``verdict``: None where it was not tested; ``runs``: of its row and of the baseline's."""

    mean: float
    verdict: str | None
    runs: tuple[str, ...]


Judgements = Mapping[tuple[str | None, ...], Judgement]
"""By (setting, backbone, suite, protocol, text, baseline, method as its row is called, task)."""


def judgements(tables: Iterable[Mapping[str, Any]]) -> dict[tuple[str | None, ...], Judgement]:
    """Of tables as ``tables.json`` has them, of any version of bench. Raises KeyError, TypeError, AttributeError for anything else."""
    found: dict[tuple[str | None, ...], Judgement] = {}
    for one in tables:
        table = one["table"]
        where = tuple(table[key] for key in ("setting", "backbone", "suite", "protocol", "text", "baseline"))
        base = next((tuple(row["runs"]) for row in table["rows"] if _row_name(row) == table["baseline"]), ())
        for row in table["rows"]:
            for task, cell in row["cells"].items():
                against = (cell or {}).get("against")
                if cell is not None and against is not None:
                    judged = Judgement(cell["mean"], against.get("verdict"), (*sorted(row["runs"]), *sorted(base)))
                    found[
                        (*where, " ".join([_row_name(row), *(f"{key}={value}" for key, value in row["differs"].items())]), task)
                    ] = judged
    return found


def _row_name(row: Mapping[str, Any]) -> str:
    return f"{row['method']}+{row['variant']}" if row["variant"] else str(row["method"])


def changed_verdicts(before: Judgements, now: Judgements, statistics: tuple[int, int]) -> tuple[list[ChangedVerdict], int]:
    """The cells whose verdict is another one, and how many have the same."""
    changed, same = [], 0
    for key, new in now.items():
        old = before.get(key)
        if old is None:
            continue
        if old.verdict == new.verdict:
            same += 1
            continue
        why = [f"statistics: version {statistics[0]} before, {statistics[1]} now"] if statistics[0] != statistics[1] else []
        if abs(old.mean - new.mean) > NOISE or old.runs != new.runs:
            why.append("scores: of other runs" if old.runs != new.runs else "scores")
        setting, backbone, suite, protocol, text, baseline, method, task = key
        changed.append(ChangedVerdict(
            method=str(method), setting=setting or "several", backbone=backbone or "several", suite=str(suite), task=str(task),
            protocol=str(protocol), text=text, baseline=str(baseline), before=old.verdict or "not tested", after=new.verdict or "not tested",
            why=tuple(why) or ("other rows of the table, with which it was adjusted",),
        ))  # fmt: skip
    return changed, same
