"""Runs that differ in more than their method: notes, tables of their own, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from compared_runs import unwritten_runs
from factories import record
from msgspec import structs

from bench.base.errors import BenchError
from bench.compare.tables import make_tables
from bench.compare.words.names import table_name
from bench.compare.words.notes import note_lines
from bench.records import Code, RunRecord
from bench.records.record import AVERAGE, HowExecuted, RecipeValue
from bench.records.value_sources import OWN, PAPER, TUNED


def with_origin(one: RunRecord, **fields: Any) -> RunRecord:
    return structs.replace(one, provenance=structs.replace(one.provenance, **fields))


def test_other_libraries_and_data_are_said_in_words_and_refused() -> None:
    a, b, b2, c = (record(name, seed) for name, seed in (("a", 1), ("b", 1), ("b", 2), ("c", 1)))
    b2 = with_origin(b2, packages={**b2.provenance.packages, "torch": "2.6.0"})
    c = with_origin(c, data={**c.provenance.data, "STS14": "9" * 64})
    runs = unwritten_runs(a, b, b2, c)
    (table,) = make_tables(runs)
    assert {one.name: one.notes for one in table.rows} == {
        "a": (),
        "b": ("made with other versions of torch",),
        "c": ("scored on other data",),
    }
    with pytest.raises(
        BenchError,
        match=r"2 differences .* torch: 2\.6\.0 in b \(seed 2\); .* and sts: data of STS14",
    ):
        make_tables(runs, strict=True)
    assert make_tables(runs[:2], strict=True)


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
    tables = make_tables(runs)
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
    assert "built-in backbone, 1,000 steps" in table_name(long)
    (together,) = make_tables(runs, together=True)
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
    tables = make_tables(unwritten_runs(*short, long, cls))
    assert {
        (table.suite, table.setting, table.budget): {row.name for row in table.rows}
        for table in tables
    } == {
        ("sts", "unsupervised", ""): {"simcse", "cls"},
        ("sts", "unsupervised", "1000steps"): {"simcse", "cls"},
        ("cxc", "unsupervised", "1000steps"): {"simcse", "cls"},
    }
    without = make_tables(unwritten_runs(*short, cls))
    assert {(table.suite, table.setting) for table in without} == {
        ("sts", "unsupervised"),
        ("cxc", "none"),
    }


@pytest.mark.parametrize(
    ("kinds", "noted"),
    [
        ({"a": TUNED, "b": TUNED, "c": OWN}, {"c": "not tuned"}),
        ({"a": TUNED, "b": "12 trials", "c": TUNED}, {"b": "tuned by other rules"}),
        ({"a": TUNED, "b": "elsewhere", "c": TUNED}, {}),
        ({"a": OWN, "b": PAPER}, {}),
    ],
)
def test_a_row_whose_values_were_found_otherwise_says_so(
    kinds: dict[str, str], noted: dict[str, str]
) -> None:
    sources = {OWN: "--set", PAPER: "SimCSE repo README.md"}

    def made(name: str, kind: str) -> RunRecord:
        one = record(name, 1)
        value = RecipeValue(value=1e-5, source=sources.get(kind, "search s, 6 trials"))
        trials = 12 if kind == "12 trials" else 6
        search = {"name": kind, "trials": trials, "select_on": "STS-B dev"}
        if kind in sources:
            search = {}
        origin = structs.replace(one.provenance, execution=HowExecuted(search=search))
        recipe = {**one.recipe, "learning_rate": value}
        return structs.replace(one, recipe=recipe, provenance=origin)

    (table,) = make_tables(unwritten_runs(*(made(*item) for item in kinds.items())))
    assert {one.name: "; ".join(one.notes) for one in table.rows if one.notes} == noted


def test_five_kinds_of_differences_are_told_and_recipe_values_stand_below() -> None:
    """The training text, how values were found, seeds, vectors, and how scores were made."""

    def on_text(one: RunRecord, sha256: str) -> RunRecord:
        corpus = structs.replace(one.provenance.corpus, sha256=sha256 * 64, name=f"{sha256}.txt")
        return with_origin(one, corpus=corpus)

    usual = [
        on_text(record("simcse", seed, recipe={"temperature": 0.05}), "a") for seed in (1, 2, 3)
    ]
    other = [on_text(record("promcse", seed, recipe={"temperature": 0.1}), "b") for seed in (1, 2)]
    vectors = record("glove-avg", None, setting="none")
    file = RecipeValue(value="glove.6B.50d.txt", source="--set")
    vectors = structs.replace(vectors, recipe={"vectors": file})
    (table,) = make_tables(unwritten_runs(*usual, *other, vectors), together=True)
    assert {one.name: one.notes for one in table.rows} == {
        "simcse": (),
        "promcse": ("trained on other sentences",),
        "glove-avg": (
            "encoder not trained",
            "its vectors have 50 dimensions, the paper's 300",
        ),
    }
    lines = note_lines(table)
    assert "trained on other sentences: PromCSE" in lines
    assert not any("temperature" in line for line in lines)
    assert {one.name: one.trained_with.get("temperature") for one in table.rows} == {
        "simcse": "0.05",
        "promcse": "0.1",
        "glove-avg": None,
    }


def test_strict_refuses_runs_of_the_methods_older_code() -> None:
    made = [record(name, seed) for name in ("a", "b") for seed in (1, 2)]
    older = with_origin(made[0], plugin=Code(**{"sha256": "0" * 64}))
    runs = unwritten_runs(older, *made[1:])
    (table,) = make_tables(runs)
    (line,) = [line for line in note_lines(table) if "other code" in line]
    assert f"bench compare {older.run_id}" in line
    assert {one.name: one.seeds for one in table.rows} == {"a": (2,), "b": (1, 2)}
    with pytest.raises(BenchError, match="code of the method: a has runs of another one"):
        make_tables(runs, strict=True)
    assert make_tables(runs[1:], strict=True)
