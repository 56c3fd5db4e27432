"""Rows of a table: every part of a fingerprint but the seed sets runs apart."""

from __future__ import annotations

import itertools

import pytest
from coded_runs import renamed, run_of_code, with_recipe
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.compare.statistics.rows import group_rows
from bench.compare.statistics.terms import terms_of
from bench.compare.tables import make_tables
from bench.records import Code, CorpusUsed, Run, RunRecord


def named(*records: RunRecord) -> dict[str, list[int | None]]:
    """The label that sets each row apart -> its seeds."""
    found = {}
    for row in group_rows(records):
        name = " ".join(f"{key}={value}" for key, value in row.differs)
        assert name not in found, "two rows of one name"
        found[name] = [run.seed for run in row.runs]
    return found


APART: dict[str, tuple[RunRecord, RunRecord, list[str]]] = {
    "precision": (
        run_of_code(1),
        run_of_code(2, precision="bf16"),
        ["precision=bf16", "precision=fp32"],
    ),
    "processes": (run_of_code(1), run_of_code(2, ranks=2), ["", "processes=2"]),
    "the content of the dev set": (
        run_of_code(1),
        run_of_code(2, dev="e" * 64),
        ["dev set=dddddd", "dev set=eeeeee"],
    ),
    "something that a later version adds": (
        run_of_code(1, later="x"),
        run_of_code(2, later="y"),
        ["later=x", "later=y"],
    ),
    "the file behind a name": (
        with_recipe(run_of_code(1, places={"teacher": "1" * 64}), teacher="teacher"),
        with_recipe(run_of_code(2, places={"teacher": "2" * 64}), teacher="teacher"),
        ["teacher=teacher@111111", "teacher=teacher@222222"],
    ),
    "a number's seventh digit": (
        with_recipe(run_of_code(1), temperature=0.05),
        with_recipe(run_of_code(2), temperature=0.05000001),
        ["temperature=0.05", "temperature=0.05000001"],
    ),
    "a text that reads like a number": (
        with_recipe(run_of_code(1), layer=1),
        with_recipe(run_of_code(2), layer="1"),
        ['layer="1"', "layer=1"],
    ),
    "what was not recorded": (
        run_of_code(1),
        replace(run_of_code(2), provenance=replace(run_of_code(2).provenance, determines=None)),
        ["", "dev set=dddddd precision=fp32"],
    ),
}


@pytest.mark.parametrize("name", APART)
def test_runs_that_differ_in_more_than_the_seed_are_two_rows_with_two_names(name: str) -> None:
    first, second, names = APART[name]
    assert sorted(named(first, second)) == names
    assert sorted(named(second, first)) == names


ALIKE: dict[str, tuple[RunRecord, RunRecord]] = {
    "the seed": (run_of_code(1), run_of_code(2)),
    "the name of a file": (
        with_recipe(run_of_code(1, places={"teacher": "1" * 64}), teacher="here/teacher"),
        with_recipe(run_of_code(2, places={"teacher": "1" * 64}), teacher="there/teacher"),
    ),
    "the name of the training text": (
        run_of_code(1),
        renamed(
            replace(
                run_of_code(2),
                provenance=replace(
                    run_of_code(2).provenance, corpus=CorpusUsed(name="copy.txt", sha256="c" * 64)
                ),
            )
        ),
    ),
    "how a number is written": (
        with_recipe(run_of_code(1), temperature=1),
        with_recipe(run_of_code(2), temperature=1.0),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_values_that_change_no_result_share_a_row(name: str) -> None:
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


def other_method(one: RunRecord) -> RunRecord:
    return replace(one, method="promcse", run_id=one.run_id.replace("simcse", "promcse"))


def test_methods_of_two_precisions_say_so_and_strict_refuses(tmp_path) -> None:
    runs = [
        Run(one, tmp_path)
        for one in (
            run_of_code(1),
            run_of_code(2),
            *map(other_method, (run_of_code(1, precision="bf16"),)),
        )
    ]
    (table,) = make_tables(runs)
    assert {one.name: one.trained_with["precision"] for one in table.rows} == {
        "simcse": "fp32",
        "promcse": "bf16",
    }
    with pytest.raises(BenchError, match="precision: bf16 in PromCSE; fp32 in most rows"):
        make_tables(runs, strict=True)


def test_rows_of_another_code_of_a_suite_say_so(tmp_path) -> None:
    def scored_by(one: RunRecord, code: str) -> RunRecord:
        execution = replace(one.provenance.execution, suites={"sts": Code(sha256=code * 64)})
        return replace(one, provenance=replace(one.provenance, execution=execution))

    runs = [
        Run(scored_by(run_of_code(seed), code), tmp_path)
        for seed, code in ((1, "1"), (2, "1"), (3, "2"))
    ]
    (table,) = make_tables(runs)
    assert table.rows[0].notes == ("scored by other code",)
    with pytest.raises(BenchError, match=r"code of STS12: .* in SimCSE \(seed 3\)"):
        make_tables(runs, strict=True)
