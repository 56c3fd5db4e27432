"""Scores of a record that belong in one table, and the name of their text form."""

from __future__ import annotations

from factories import record
from msgspec.structs import replace

from bench.compare.statistics.protocols import by_protocol
from bench.records.record import RunRecord, Score


def scored(**forms: str) -> RunRecord:
    scores = [
        Score(suite="own", task=task, protocol="own/1", metric="spearman", value=50, n=9, text=text)
        for task, text in forms.items()
    ]
    return replace(record("simcse", 1), scores=tuple(scores))


def test_one_own_set_has_one_name_of_its_form_everywhere() -> None:
    assert list(by_protocol(scored(mine="other-04ae9cf3"))) == [("own", "own/1", "other-04ae9cf3")]


def test_several_own_sets_are_compared_each_by_itself() -> None:
    made = by_protocol(scored(a="other-04ae9cf3", b="other-bf404288"))
    assert {key[2]: list(scores) for key, scores in made.items()} == {
        "other-04ae9cf3": ["a"],
        "other-bf404288": ["b"],
    }
