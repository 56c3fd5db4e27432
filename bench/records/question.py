"""The question of a plan: which rows are compared with which, written before the runs.

A plan file has it, and the plan that each of its runs keeps::

[question]
text = "Does the hinge help SimCSE?"
baseline = "simcse"
rows = ["simcse+eh"]
suite = ["sts", "transfer"]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEYS = ("text", "baseline", "rows", "suite")
LONGEST = 300
"""Characters of a text: it stands in the title of a table."""


@dataclass(frozen=True)
class Question:
    """A question, as far as a plan has one.

    Raises ValueError if it has rows without a baseline, or the other way round.
    """

    text: str = ""
    # rows as commands write them: "promcse", "dcpcse+mlm"
    baseline: str = ""
    rows: tuple[str, ...] = ()
    # suites or protocols; none: all that the runs are scored on
    suites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.baseline) != bool(self.rows):
            missing = "rows" if self.baseline else "baseline"
            raise ValueError(f"[question] has no {missing}")

    @property
    def compares(self) -> bool:
        """Say if it names comparisons."""
        return bool(self.rows)

    @classmethod
    def of_plan(cls, value: object) -> Question:
        """Read a plan file's ``question``: a table, or only the text. Raises ValueError, which
        says what is wrong."""
        if isinstance(value, str):
            return cls(text=_line("text", value))
        if not isinstance(value, Mapping):
            raise ValueError("question: expected a text or a table")
        unknown = sorted(value.keys() - set(KEYS))
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r} of [question]; it has {', '.join(KEYS)}")
        return cls(
            text=_text("text", value),
            baseline=_text("baseline", value),
            rows=_texts("rows", value),
            suites=_texts("suite", value),
        )

    def table(self) -> dict[str, Any]:
        """Return the keys of a plan's [question]."""
        keys = {
            "text": self.text,
            "baseline": self.baseline,
            "rows": list(self.rows),
            "suite": list(self.suites),
        }
        return {key: value for key, value in keys.items() if value}


def _text(key: str, table: Mapping[str, Any]) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"[question] {key} = {value!r:.60}: expected a text")
    return _line(key, value)


def _line(key: str, value: str) -> str:
    """Return a text on one line."""
    line = " ".join(value.split())
    if len(line) > LONGEST:
        raise ValueError(f"[question] {key}: expected at most {LONGEST} characters")
    return line


def _texts(key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a list of texts; a single text is one, too."""
    value = table.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(text and isinstance(text, str) for text in texts):
        raise ValueError(f"[question] {key} = {value!r:.60}: expected texts")
    return tuple(dict.fromkeys(_line(key, text) for text in texts))
