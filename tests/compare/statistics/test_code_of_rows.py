"""The runs that a row shows if its method's code changed, or if a seed was run again."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from coded_runs import run_of_code, with_recipe
from msgspec.structs import replace

from bench.compare.statistics.rows import UNKNOWN_CODE, KnownCode, dated_ahead, group_rows, moment
from bench.compare.statistics.terms import terms_of
from bench.records import RunRecord
from bench.records.fingerprint import record_fingerprint


def known(here: str | None, same: dict[str, str] | None = None) -> KnownCode:
    return KnownCode(lambda method, package: here, lambda code: (same or {}).get(code, code))


def shown(
    records: list[RunRecord], notes: list[str], code: KnownCode = UNKNOWN_CODE
) -> tuple[list[str], str]:
    (row,) = group_rows(records, notes, code)
    return [run.run_id for run in row.runs], row.other_code


OLD = [run_of_code(seed, "a", "2026-01-01T10:00:00+00:00") for seed in (1, 2)]
NEW = [run_of_code(seed, "b", "2026-01-02T10:00:00+00:00") for seed in (1, 2)]


@pytest.mark.parametrize(
    ("here", "expected", "how"),
    [
        ("a", OLD, "that which is here only"),
        ("b", NEW, "that which is here only"),
        ("c", NEW, "that of the newest date only"),
        (None, NEW, "that of the newest date only"),
    ],
)
def test_the_code_that_is_here_comes_before_the_newest_date(here, expected, how):
    code = None if here is None else here * 64
    for records in itertools.permutations([*OLD, *NEW]):
        ids, footnote = shown(list(records), [], known(code))
        assert ids == [one.run_id for one in expected]
        others = NEW if expected is OLD else OLD
        command = " ".join(["bench compare", *sorted(one.run_id for one in others)])
        assert footnote == f"{how} (other code: {command})"


def test_code_of_the_same_numbers_is_one_code() -> None:
    ids, footnote = shown([OLD[0], NEW[1]], [], known(None, {"a" * 64: "b" * 64}))
    assert ids == [OLD[0].run_id, NEW[1].run_id]
    assert footnote == ""


def test_runs_whose_seeds_newer_runs_have_are_named_if_few_and_counted_if_many() -> None:
    again = [
        renamed_by(i, run_of_code(1, "b", f"2025-12-{i + 1:02}T00:00:00+00:00")) for i in range(5)
    ]
    notes: list[str] = []
    ids, _ = shown([*NEW, *again[:2]], notes)
    assert ids == [one.run_id for one in NEW]
    first, second = sorted(one.run_id for one in again[:2])
    why = "left out, because newer runs have the same seeds"
    assert notes == [f"2 runs {why}: {first} and {second}"]
    other = [with_recipe(one, epochs=2) for one in NEW]
    more = [renamed_by(i, with_recipe(one, epochs=2)) for i, one in enumerate(again)]
    notes = []
    rows = group_rows([*NEW, *other, *again, *more], notes)
    assert [len(row.runs) for row in rows] == [2, 2]
    assert notes == [f"10 runs {why}: 5 of simcse epochs=1 and 5 of simcse epochs=2"]


def renamed_by(number: int, one: RunRecord) -> RunRecord:
    return replace(one, run_id=f"simcse-builtin-s1-{number:08}")


def test_dates_in_the_future_get_a_line() -> None:
    ahead = (datetime.now(UTC) + timedelta(days=400)).isoformat(timespec="seconds")
    early = [run_of_code(seed, "a", ahead) for seed in (1, 2)]
    notes: list[str] = []
    ids, _ = shown([*early, *NEW], notes, known("b" * 64))
    assert ids == [one.run_id for one in NEW]
    first, second = sorted(one.run_id for one in early)
    assert notes == [
        f"simcse: dated in the future, by a clock that was ahead: {first} and {second}"
    ]
    assert dated_ahead(NEW) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-01-01T12:00:00+02:00", "2026-01-01T11:00:00Z"),
        ("2026-01-01T23:30:00Z", "2026-01-01T20:00:00-05:00"),
        ("2026-01-01T12:00:00", "2026-01-01T12:00:00.5"),
        ("2026-01-01T12:00:00.25", "2026-01-01T12:00:00.5000001+00:00"),
        ("9999-99-99T99:99:99Z", "2001-01-01T00:00:00"),
        ("0001-01-01T00:00:00+14:00", "2001-01-01T00:00:00"),
    ],
)
def test_dates_are_moments_whatever_their_zone(earlier: str, later: str) -> None:
    assert moment(earlier) < moment(later)


def test_the_name_of_code_sets_no_row_apart() -> None:
    """Rewritten code with equal numbers keeps the name that fingerprints had."""
    before = run_of_code(1)
    rewritten = run_of_code(1, code="b", plugin="a" * 64)
    assert rewritten.run_id == before.run_id
    assert "plugin" not in terms_of(rewritten)
    assert record_fingerprint(rewritten) == rewritten.fingerprint == before.fingerprint
