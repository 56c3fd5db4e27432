"""Runs that differ in more than their method: footnotes, tables of their own, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from compared_runs import unwritten_runs
from factories import record
from msgspec import structs

from bench.base.errors import BenchError
from bench.compare.answer import table_answer
from bench.compare.formatting import row_name
from bench.compare.statistics.table import Footnote
from bench.compare.tables import TableOptions, make_tables
from bench.records import Code, RunRecord
from bench.records.record import AVERAGE, HowExecuted, RecipeValue
from bench.records.value_sources import OWN, PAPER, TUNED


def with_origin(one: RunRecord, **fields: Any) -> RunRecord:
    return structs.replace(one, provenance=structs.replace(one.provenance, **fields))


def test_a_footnote_for_each_difference_and_a_mark_at_the_row() -> None:
    a, b, b2, c = (record(name, seed) for name, seed in (("a", 1), ("b", 1), ("b", 2), ("c", 1)))
    b2 = with_origin(b2, packages={**b2.provenance.packages, "torch": "2.6.0"})
    c = with_origin(c, data={**c.provenance.data, "STS14": "9" * 64})
    runs = unwritten_runs(a, b, b2, c)
    (table,) = make_tables(runs, TableOptions())
    assert table.footnotes == (
        Footnote("torch", "2.6.0", "b (seed 2)", "2.13.0"),
        Footnote("data of STS14", "99999999", "c", "dddddddd"),
    )
    assert {one.name: one.footnotes for one in table.rows} == {"a": (), "b": (0,), "c": (1,)}
    with pytest.raises(BenchError, match=r"2 differences .* torch: 2\.6\.0 in b .* and 1 more"):
        make_tables(runs, TableOptions(strict=True))
    assert make_tables(runs[:2], TableOptions(strict=True))[0].footnotes == ()


def test_runs_of_another_budget_than_most_have_a_table_of_their_own() -> None:
    def trained(name: str, budget: str | None, seed: int, backbone: str = "builtin") -> RunRecord:
        return record(name, seed, backbone=backbone, recipe={"budget": budget})

    runs = unwritten_runs(
        *(trained(name, "100steps", seed) for name in ("simcse", "other") for seed in (1, 2)),
        *(trained("simcse", "1000steps", seed) for seed in (1, 2)),
        trained("other", "20m", 1),
        trained("as-the-recipe-says", None, 1),
        trained("simcse", "1000steps", 1, "bert-base-uncased"),  # all that this backbone has
        record("cls", None, setting="none"),
    )
    tables = make_tables(runs, TableOptions())
    assert {
        (table.backbone, table.budget): {one.name for one in table.rows} for table in tables
    } == {
        ("builtin", ""): {"simcse", "other", "as-the-recipe-says", "cls"},
        ("builtin", "1000steps"): {"simcse", "cls"},
        ("builtin", "20m"): {"other", "cls"},
        ("bert-base-uncased", ""): {"simcse"},
    }, "cls is not trained, so it has no length"
    assert {(table.backbone, table.budget): table.length for table in tables} == {
        ("builtin", ""): "100steps",
        ("builtin", "1000steps"): "1000steps",
        ("builtin", "20m"): "20m",
        ("bert-base-uncased", ""): "",
    }
    (long,) = (table for table in tables if table.budget == "1000steps")
    assert "unsupervised, 1,000 steps" in table_answer(long)
    (together,) = make_tables(runs, TableOptions(together=True))
    assert len(together.rows) == 7 and together.budget == ""


def test_untrained_rows_have_no_table_of_their_own_if_that_of_another_length_has_them() -> None:
    def scored_on_cxc(made: RunRecord) -> RunRecord:
        (one,) = (score for score in made.scores if score.task == AVERAGE)
        return structs.replace(
            made, scores=(*made.scores, structs.replace(one, suite="cxc", task="CxC-STS"))
        )

    short = [record("simcse", seed, recipe={"budget": "100steps"}) for seed in (1, 2)]
    long = scored_on_cxc(record("simcse", 1, recipe={"budget": "1000steps"}))
    cls = scored_on_cxc(record("cls", None, setting="none"))
    tables = make_tables(unwritten_runs(*short, long, cls), TableOptions())
    assert {
        (table.suite, table.setting, table.budget): {row.name for row in table.rows}
        for table in tables
    } == {
        ("sts", "unsupervised", ""): {"simcse", "cls"},
        ("sts", "unsupervised", "1000steps"): {"simcse", "cls"},
        ("cxc", "unsupervised", "1000steps"): {"simcse", "cls"},
    }
    without = make_tables(unwritten_runs(*short, cls), TableOptions())
    assert {(table.suite, table.setting) for table in without} == {
        ("sts", "unsupervised"),
        ("cxc", "none"),
    }


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        ({"a": TUNED, "b": TUNED, "c": OWN}, {"a", "b", "c recipe"}),  # the exception is named
        ({"a": TUNED, "b": OWN, "c": OWN}, {"a tuned: 6 trials", "b", "c"}),
        ({"a": TUNED, "b": OWN}, {"a tuned: 6 trials", "b"}),
        ({"a": OWN, "b": PAPER}, {"a", "b"}),
        ({"a": TUNED, "b": TUNED}, {"a", "b"}),
    ],
)
def test_the_source_of_values_is_shown_at_the_exceptions(
    kinds: dict[str, str], named: set[str]
) -> None:
    sources = {TUNED: "search s, 6 trials", OWN: "--set", PAPER: "SimCSE repo README.md"}

    def made(name: str, kind: str) -> RunRecord:
        one = record(name, 1)
        value = RecipeValue(value=1e-5, source=sources[kind])
        search = {"name": "s", "trials": 6, "select_on": "STS-B dev"} if kind == TUNED else {}
        origin = structs.replace(one.provenance, execution=HowExecuted(search=search))
        recipe = {**one.recipe, "learning_rate": value}
        return structs.replace(one, recipe=recipe, provenance=origin)

    (table,) = make_tables(unwritten_runs(*(made(*item) for item in kinds.items())), TableOptions())
    assert {row_name(one, table) for one in table.rows} == named


def test_strict_refuses_runs_of_the_methods_older_code() -> None:
    made = [record(name, seed) for name in ("a", "b") for seed in (1, 2)]
    older = with_origin(made[0], plugin=Code(**{"sha256": "0" * 64}))
    runs = unwritten_runs(older, *made[1:])
    (table,) = make_tables(runs, TableOptions())
    (footnote,) = table.footnotes
    assert f"bench compare {older.run_id}" in footnote.value
    assert [(one.name, one.footnotes, one.seeds) for one in sorted(table.rows, key=str)] == (
        [("a", (0,), (2,)), ("b", (), (1, 2))]
    )
    with pytest.raises(BenchError, match=older.run_id):
        make_tables(runs, TableOptions(strict=True))
    assert make_tables(runs[1:], TableOptions(strict=True))
