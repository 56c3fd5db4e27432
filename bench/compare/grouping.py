"""Runs with separate tables: runs of a rare budget, and runs of a rare training text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.compare.statistics.rows import is_start, was_trained
from bench.compare.statistics.summary import Apart
from bench.compare.statistics.terms import corpus_words
from bench.records.record import RunRecord

UNNAMED_TEXT = "a text that was not recorded"


@dataclass(frozen=True)
class Usual:
    """The budget and the training text that the tables of a setting and backbone have if nothing
    else is said."""

    # setting and backbone -> the budget; "" for none
    budgets: Mapping[tuple[str, ...], str]
    # setting, backbone and the budget if it is a rarer one -> the sha256 of the text, or ""
    texts: Mapping[tuple[str, ...], str]

    @classmethod
    def of(cls, records: Sequence[RunRecord], known: Usual | None = None) -> Usual:
        """Return the values that most of these runs have; those that are ``known`` already stay."""
        budgets = _most(
            ((record.setting, record.backbone_name), recorded_budget(record))
            for record in records
            if not is_start(record)
        )
        usual = cls(budgets if known is None else {**budgets, **known.budgets}, {})
        # of texts that equally many runs have, the first by its hash
        texts = _most(
            sorted(
                (usual._place(record), record.provenance.corpus.sha256 or "")
                for record in records
                if was_trained(record)
            )
        )
        return replace(usual, texts=texts if known is None else {**texts, **known.texts})

    def apart(self, record: RunRecord) -> Apart:
        """Return what gives a run a table of its own.

        A run that was not trained fits any budget and any text.
        """
        text = ""
        sha256 = record.provenance.corpus.sha256 or ""
        if was_trained(record) and sha256 != self.texts[self._place(record)]:
            text = corpus_words(record) or UNNAMED_TEXT
        return Apart(self._rarer_budget(record), text)

    def _place(self, record: RunRecord) -> tuple[str, ...]:
        return record.setting, record.backbone_name, self._rarer_budget(record)

    def _rarer_budget(self, record: RunRecord) -> str:
        """Return the budget of a run if it is not the usual one; "" for a run that is untrained, or
        trained as long as its recipe says."""
        budget = recorded_budget(record)
        if is_start(record) or budget == self.budgets[record.setting, record.backbone_name]:
            return ""
        return budget


def _most(pairs: Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], str]:
    """Return for each place the value that most pairs have, the first of several."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for place, value in pairs:
        counts.setdefault(place, Counter())[value] += 1
    return {place: values.most_common(1)[0][0] for place, values in counts.items()}


def recorded_budget(record: RunRecord) -> str:
    """Return the budget of a run, such as "1000steps"; "" if its recipe says how long."""
    return str(getattr(record.recipe.get("budget"), "value", None) or "")
