"""Rows of a table: every part of a fingerprint but the seed sets runs apart; and which code, and
which run of a seed, a row shows.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.compare.statistics.rows import UNKNOWN_CODE, KnownCode, dated_ahead, group_rows, moment
from bench.compare.statistics.terms import terms_of
from bench.compare.tables import TableOptions, make_tables
from bench.records import Code, CorpusUsed, Run, RunRecord
from bench.records.fingerprint import record_fingerprint

FP32: dict[str, Any] = {"places": {}, "precision": "fp32", "dev": "d" * 64}


def made(seed: int, code: str = "a", created: str = "", **determines: Any) -> RunRecord:
    one = record("simcse", seed, recipe={"select_on": "STS-B dev"})
    about = replace(
        one.provenance,
        determines=FP32 | determines,
        plugin=Code(package="sentence-bench", version="1", sha256=code * 64),
        created=created or one.provenance.created,
    )
    one = replace(one, provenance=about)
    fingerprint = record_fingerprint(one) or ""
    return replace(one, fingerprint=fingerprint, run_id=f"simcse-builtin-s{seed}-{fingerprint[:8]}")


def with_recipe(one: RunRecord, **values: Any) -> RunRecord:
    recipe = dict(one.recipe)
    for key, value in values.items():
        recipe[key] = replace(recipe["epochs"], value=value)
    return renamed(replace(one, recipe=recipe))


def renamed(one: RunRecord) -> RunRecord:
    fingerprint = record_fingerprint(one) or ""
    return replace(one, fingerprint=fingerprint, run_id=f"{one.run_id[:17]}{fingerprint[:8]}")


def named(*records: RunRecord) -> dict[str, list[int | None]]:
    """The label that sets each row apart -> its seeds."""
    found = {}
    for row in group_rows(records, []):
        name = " ".join(f"{key}={value}" for key, value in row.differs)
        assert name not in found, "two rows of one name"
        found[name] = [run.seed for run in row.runs]
    return found


APART: dict[str, tuple[RunRecord, RunRecord, list[str]]] = {
    "precision": (made(1), made(2, precision="bf16"), ["precision=bf16", "precision=fp32"]),
    "processes": (made(1), made(2, ranks=2), ["", "processes=2"]),
    "the content of the dev set": (
        made(1),
        made(2, dev="e" * 64),
        ["dev set=dddddd", "dev set=eeeeee"],
    ),
    "something that a later version adds": (
        made(1, later="x"),
        made(2, later="y"),
        ["later=x", "later=y"],
    ),
    "the file behind a name": (
        with_recipe(made(1, places={"teacher": "1" * 64}), teacher="teacher"),
        with_recipe(made(2, places={"teacher": "2" * 64}), teacher="teacher"),
        ["teacher=teacher@111111", "teacher=teacher@222222"],
    ),
    "a number's seventh digit": (
        with_recipe(made(1), temperature=0.05),
        with_recipe(made(2), temperature=0.05000001),
        ["temperature=0.05", "temperature=0.05000001"],
    ),
    "a text that reads like a number": (
        with_recipe(made(1), layer=1),
        with_recipe(made(2), layer="1"),
        ['layer="1"', "layer=1"],
    ),
    "what was not recorded": (
        made(1),
        replace(made(2), provenance=replace(made(2).provenance, determines=None)),
        ["", "dev set=dddddd precision=fp32"],
    ),
}


@pytest.mark.parametrize("name", APART)
def test_runs_that_differ_in_more_than_the_seed_are_two_rows_with_two_names(name: str) -> None:
    first, second, names = APART[name]
    assert sorted(named(first, second)) == names
    assert sorted(named(second, first)) == names


ALIKE: dict[str, tuple[RunRecord, RunRecord]] = {
    "the seed": (made(1), made(2)),
    "the name of a file": (
        with_recipe(made(1, places={"teacher": "1" * 64}), teacher="here/teacher"),
        with_recipe(made(2, places={"teacher": "1" * 64}), teacher="there/teacher"),
    ),
    "the name of the training text": (
        made(1),
        renamed(
            replace(
                made(2),
                provenance=replace(
                    made(2).provenance, corpus=CorpusUsed(name="copy.txt", sha256="c" * 64)
                ),
            )
        ),
    ),
    "how a number is written": (
        with_recipe(made(1), temperature=1),
        with_recipe(made(2), temperature=1.0),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_changes_no_result_sets_no_row_apart(name: str) -> None:
    assert named(*ALIKE[name]) == {"": [1, 2]}


def test_rows_are_apart_exactly_if_fingerprints_are() -> None:
    """All pairs of the cases above: with one seed and one code, the row is the same exactly if the
    fingerprint is.
    """
    cases = [
        one for first, second, *_ in (*APART.values(), *ALIKE.values()) for one in (first, second)
    ]
    known = [
        one
        for one in cases
        # 1 and 1.0 are one number, and two fingerprints
        if one.provenance.determines is not None and one.recipe["temperature"].value != 1
    ]
    for first, second in itertools.combinations(known, 2):
        first, second = (renamed(replace(one, seed=7)) for one in (first, second))
        exact = [
            {key: term.exact for key, term in terms_of(one).items()} for one in (first, second)
        ]
        assert (exact[0] == exact[1]) == (first.fingerprint == second.fingerprint)


def test_a_dev_set_with_another_name_is_told_by_its_name() -> None:
    other = with_recipe(made(2, dev="e" * 64), select_on="captions dev")
    assert sorted(named(made(1), other)) == ["select_on=STS-B dev", "select_on=captions dev"]


def test_every_seed_in_both_precisions_is_in_its_own_row() -> None:
    both = [made(seed, precision=of) for seed in (1, 2) for of in ("fp32", "bf16")]
    assert named(*both) == {"precision=fp32": [1, 2], "precision=bf16": [1, 2]}


def other_method(one: RunRecord) -> RunRecord:
    return replace(one, method="promcse", run_id=one.run_id.replace("simcse", "promcse"))


def test_methods_of_two_precisions_get_a_footnote_and_strict_refuses(tmp_path) -> None:
    runs = [
        Run(one, tmp_path)
        for one in (made(1), made(2), *map(other_method, (made(1, precision="bf16"),)))
    ]
    (table,) = make_tables(runs, TableOptions())
    assert [str(note) for note in table.footnotes] == [
        "precision: bf16 in promcse; fp32 in most rows"
    ]
    with pytest.raises(BenchError, match="precision: bf16 in promcse"):
        make_tables(runs, TableOptions(strict=True))


def test_methods_of_other_dev_sets_or_processes_get_a_footnote(tmp_path) -> None:
    for determines, expected in (
        ({"dev": "e" * 64}, "dev set: eeeeee in promcse; dddddd in most rows"),
        ({"ranks": 4}, "processes: 4 in promcse; 1 in most rows"),
    ):
        others = [other_method(made(1, **determines))]
        runs = [Run(one, tmp_path) for one in (made(1), made(2), *others)]
        (table,) = make_tables(runs, TableOptions())
        assert [str(note) for note in table.footnotes] == [expected]


def test_rows_of_another_code_of_a_suite_get_a_footnote(tmp_path) -> None:
    def scored_by(one: RunRecord, code: str) -> RunRecord:
        execution = replace(one.provenance.execution, suites={"sts": Code(sha256=code * 64)})
        return replace(one, provenance=replace(one.provenance, execution=execution))

    runs = [
        Run(scored_by(made(seed), code), tmp_path) for seed, code in ((1, "1"), (2, "1"), (3, "2"))
    ]
    (table,) = make_tables(runs, TableOptions())
    assert {note.setting for note in table.footnotes} >= {"code of STS12", "code of STS-B"}
    assert {note.rows for note in table.footnotes} == {"simcse (seed 3)"}


# --- the code of the method ---


def known(here: str | None, same: dict[str, str] | None = None) -> KnownCode:
    return KnownCode(lambda method, package: here, lambda code: (same or {}).get(code, code))


def shown(
    records: list[RunRecord], notes: list[str], code: KnownCode = UNKNOWN_CODE
) -> tuple[list[str], str]:
    (row,) = group_rows(records, notes, code)
    return [run.run_id for run in row.runs], row.other_code


OLD = [made(seed, "a", "2026-01-01T10:00:00+00:00") for seed in (1, 2)]
NEW = [made(seed, "b", "2026-01-02T10:00:00+00:00") for seed in (1, 2)]


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
    again = [renamed_by(i, made(1, "b", f"2025-12-{i + 1:02}T00:00:00+00:00")) for i in range(5)]
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
    early = [made(seed, "a", ahead) for seed in (1, 2)]
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
    before = made(1)
    rewritten = made(1, code="b", plugin="a" * 64)
    assert rewritten.run_id == before.run_id
    assert "plugin" not in terms_of(rewritten)
    assert record_fingerprint(rewritten) == rewritten.fingerprint == before.fingerprint
