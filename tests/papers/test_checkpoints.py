"""Checkpoints that authors released: each is one printed row, is scored by a method that is here,
and finds its printed numbers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.method import Recipe, Value
from bench.method.plugins import discover
from bench.papers import (
    SUITES,
    Checkpoint,
    ReferenceResult,
    RunTerms,
    find_printed,
    released_checkpoints,
    released_for,
    results,
)
from bench.records import RunsFolder
from bench.run.external import find_model

REGISTRY = discover()
EVERY = pytest.mark.parametrize(
    "checkpoint", released_checkpoints(), ids=lambda checkpoint: checkpoint.hub
)


@EVERY
def test_each_is_one_printed_row_and_a_recipe_that_the_harness_takes(
    checkpoint: Checkpoint,
) -> None:
    first = checkpoint.row.first  # raises if there is none, or several
    assert first.task and checkpoint.row.average is not None and first.protocol == "senteval-all/1"
    cls = REGISTRY[checkpoint.ours].cls
    assert "none" in cls.settings and set(checkpoint.set) <= set(cls.defaults)
    values = {
        key: Value(value, "default")
        for key, value in cls.defaults.items()
        if not isinstance(value, Value)
    }
    values |= {key: value for key, value in cls.defaults.items() if isinstance(value, Value)}
    cls.check(
        Recipe(values | {key: Value(value, "test") for key, value in checkpoint.set.items()}), None
    )
    assert (checkpoint.prefix is not None) is (checkpoint.ours == "stored-prefix")


def test_names_settings_and_averages_are_those_of_the_reference(shared: Path) -> None:
    """The list that was gathered from the hub and the READMEs, independent of the tables. Averages
    of a mean are text there.
    """
    known = {
        row["hub"]: row
        for row in json.loads(
            (shared / "reference" / "recipes_c.json").read_text(encoding="utf-8")
        )["checkpoints"]
    }
    compared = 0
    for checkpoint in released_checkpoints():
        row = known[checkpoint.hub]
        setting = "unsupervised" if checkpoint.method == "syncse" else row["setting"]  # as printed
        assert (checkpoint.setting, checkpoint.backbone) == (setting, row["backbone"]), (
            checkpoint.hub
        )
        if row["printed_avg"] is not None:
            assert str(row["printed_avg"]).startswith(checkpoint.printed.rstrip("0")), (
                checkpoint.hub
            )
            compared += 1
    assert (
        compared == len(released_checkpoints()) - 2
    )  # CT and DeCLUTR print other averages themselves
    assert len({checkpoint.hub for checkpoint in released_checkpoints()}) == len(
        released_checkpoints()
    )


def test_a_line_that_another_paper_ran_again_is_another_training() -> None:
    again = [r for r in results("simcse", paper="focal-infonce") if r.own_result]
    assert again and not any(released_for(r) for r in again)
    reproduced = [r for r in results("simcse", paper="promcse", variant="reproduced")]
    assert reproduced and not any(released_for(r) for r in reproduced)
    assert not [r for r in results() if r.metric.endswith("-dev") and released_for(r)]
    quoted = [
        r
        for r in results("simcse", "bert-base-uncased", paper="promcse", setting="unsupervised")
        if r.table == "3"
    ]
    assert {r.own_result for r in quoted} == {True, False}  # one line: quoted on STS, run on CxC
    assert {getattr(released_for(r), "hub", None) for r in quoted} == {
        "princeton-nlp/unsup-simcse-bert-base-uncased"
    }


@EVERY
def test_a_run_of_it_finds_its_printed_numbers_where_it_is_scored_as_its_authors_do(
    checkpoint: Checkpoint,
) -> None:
    def found(name: str, recipe: dict[str, str]) -> tuple[ReferenceResult, ...]:
        run = RunTerms(checkpoint.ours, "none", name, recipe=recipe)
        return find_printed(run, "Avg.", suite="sts")

    for name in (checkpoint.hub, f"{checkpoint.hub}@main", f"/models/{Path(checkpoint.hub).name}"):
        printed = found(name, dict(checkpoint.set))
        assert printed and {r.printed for r in printed} == {checkpoint.printed}
        assert {SUITES[r.metric] for r in printed} == {"sts"}
    assert found(checkpoint.hub, {key: "avg_top2" for key in checkpoint.set or ("pooling",)}) == ()


PROMCSE, SIMCSE = "YuxinJiang/sup-promcse-roberta-large", "princeton-nlp/unsup-simcse-roberta-base"


@pytest.mark.parametrize(
    ("name", "values", "want"),
    [
        (PROMCSE, {}, ("stored-prefix", {"pooling": "mlp"})),
        (f"{PROMCSE}@abc", {"pooling": "cls"}, ("stored-prefix", {"pooling": "cls"})),
        (PROMCSE, {"max_length": "32"}, ("pretrained", {"max_length": "32"})),  # refused later
        (SIMCSE, {}, ("pretrained", {"pooling": "cls"})),
        (SIMCSE.replace("princeton-nlp", "somebody"), {}, ("pretrained", {})),
    ],
)
def test_bench_evaluate_scores_it_as_its_authors_do(
    name: str, values: dict[str, str], want: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    model = find_model(name, runs=RunsFolder(tmp_path), values=values)
    assert (model.method, dict(model.overrides), model.backbone) == (*want, name)
