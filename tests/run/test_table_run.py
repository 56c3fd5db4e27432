"""Which runs a printed table means: every table of every paper, the words that choose rows, seeds
and order.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.base.errors import BenchError
from bench.method import Recipe
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.method.recipe_files import read_recipes
from bench.method.recipe_types import parse_value
from bench.method.recipes import merge_recipe, whole_entry
from bench.papers import (
    FigureRuns,
    PaperPart,
    PrintedRow,
    contents,
    figure_runs,
    find_part,
    results,
    rows,
)
from bench.run.planned import learns
from bench.run.printed_runs import merge_runs, runs_of
from bench.run.reproduce import runs_in_order, seeds_of, with_set
from bench.run.table_run import TableRun

REGISTRY = discover()
TABLES = [part for part in contents() if part.how == "scores"]
BERT = "bert-base-uncased"


def table(
    name: str, *words: str, backbones: tuple[str, ...] = (), **options: bool
) -> tuple[TableRun, ...]:
    return runs_of(find_part(name), REGISTRY, filters=words, backbones=backbones, **options)


def recipe_of(run: TableRun) -> Recipe:
    """The recipe as ``bench run`` has it."""
    plugin, trained = REGISTRY[run.method], learns(REGISTRY[run.method].cls, run.setting)
    known, place = (
        read_recipes(plugin.folder, plugin.name).recipes,
        (run.setting, run.backbone, run.variant),
    )
    entry = whole_entry(plugin.cls, known, *place, trained=trained)
    return merge_recipe(plugin.cls, entry, run.variant, run.changes, trained=trained)


def names(runs: tuple[TableRun, ...]) -> list[str]:
    return [run.name for run in runs]


def printed(part: PaperPart) -> list[str]:
    return sorted(map(repr, rows([c for c in results(paper=part.paper) if c.table == part.short])))


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("part", TABLES, ids=lambda part: part.name)
def test_every_table_means_runs_that_the_harness_has(part: PaperPart, released: bool) -> None:
    """No row is lost, every run has a recipe with its changed values in it; with --released nothing
    is trained.
    """
    try:
        found = runs_of(part, REGISTRY, released=released)
    except BenchError as error:
        assert released and "--released: no released checkpoint" in error.message
        return
    assert sorted(map(repr, (row for run in found for row in run.rows))) == printed(part)
    assert len({run.identity for run in found}) == len(found)
    assert all(run.why_not or run.method for run in found)
    for run in (run for run in found if not run.why_not):
        merged = recipe_of(run)
        expected = {key: parse_value(key, value, merged[key]) for key, value in run.changes.items()}
        assert {key: merged[key] for key in run.changes} == expected
        assert run.setting in REGISTRY[run.method].cls.settings and run.suites
        request = run.config(RunConfig(precision="bf16"), (1, 2))
        assert request.methods == (run.method,) and request.seeds == (1, 2)
        assert not released or run.setting == "none"
    assert not released or any(run.checkpoint for run in found)


@pytest.mark.parametrize("drawn", figure_runs(), ids=lambda one: one.part.name)
def test_every_figure_means_runs_that_the_harness_has(drawn: FigureRuns) -> None:
    found = runs_of(drawn.part, REGISTRY, backbones=("builtin",))
    assert len({run.identity for run in found}) == len(found) >= 2
    for run in found:
        cls, merged = REGISTRY[run.method].cls, recipe_of(run)
        assert run.setting in cls.settings and run.suites == drawn.suites
        assert run.instead_of == tuple(drawn.backbones)
        assert not run.variant or run.variant in cls.variants
        assert all(
            merged[k] == parse_value(k, value, merged[k]) for k, value in run.changes.items()
        )


def test_rows_become_runs() -> None:
    """Lines with two metrics and rows of one run are one run; sweeps become recipe values."""
    found = table("promcse:1", "unsupervised", backbones=(BERT,))
    assert names(found)[0] == f"embedding-last-avg, nothing trained, {BERT}"
    assert names(found)[-1] == f"promcse, unsupervised, {BERT}" and len(found) == 12
    assert [run.labels for run in table("promcse:1") if run.why_not] == [
        ("Universal Sentence Encoder",)
    ]
    assert {run.suites for run in table("promcse:3")} == {("sts", "cxc")}
    margins = [run.changes.get("eh_margin") for run in table("promcse:4")]
    assert margins[:3] == [None, "0", "0.05"] and margins[-1] == "0.4" and len(margins) == 10
    ablation = {run.labels[0]: run.changes for run in table("simcse:7") if run.method}
    weight = float(ablation["Contradiction, alpha 2.0"]["hard_negative_weight"])
    assert math.exp(weight) == pytest.approx(2.0)
    assert ablation["Hard neg N/A"] == {"hard_negatives": "false"}


def test_a_run_that_needs_another_comes_after_it_with_its_seeds() -> None:
    """Two rows on SBERT, which is no row here: one job of it, with the seeds of the one that has
    most.
    """
    found = table("promcse:1", "sbert-base-flow", "ct-sbert")
    assert {run.on.name for run in found if run.on} == {f"sbert, supervised, {BERT}"}
    of_three = [replace(cell, runs="mean of 3 runs") for cell in found[1].rows[0].cells]
    found = (
        found[0],
        replace(found[1], rows=(PrintedRow(tuple(of_three)),), on=replace(found[1].on)),
    )
    made = merge_runs(found)
    order = runs_in_order(made)
    assert [run.method for run in order] == ["sbert", "flow", "ct"]
    assert seeds_of(order[0], made, ()) == (42, 43, 44) and made[0].on is made[1].on is order[0]


def test_a_teacher_is_a_run_that_is_done_before() -> None:
    found = {run.name: run for run in table("focal-infonce:3")}
    labels = [f"{name}, unsupervised, teacher simcse on {BERT}" for name in ("dclr", "dclr+focal")]
    runs = [found[label] for label in labels]
    for run in runs:
        assert run.on and run.on.identity == found[f"simcse, unsupervised, {BERT}"].identity
        request = run.config(RunConfig(), (1,), "runs/simcse-1")
        assert (request.backbones, request.overrides["teacher"]) == ((BERT,), "runs/simcse-1")
    order = runs_in_order(tuple(found.values()))
    assert names(tuple(order)).count(f"simcse, unsupervised, {BERT}") == 1 and order[-2:] == runs
    for run in runs:
        (given,) = with_set([run], REGISTRY, {"teacher": "some/model"})
        assert (given.on, given.overrides["teacher"]) == (None, "some/model")


def test_seeds_are_as_many_as_the_print_is_of() -> None:
    """DCPCSE: the average of 10 runs; ConPVP: means of 4 (table 4) and the best of 4 (table 3); a
    trial has one.
    """

    def seeds(name: str, **chosen: tuple[str, ...]) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        runs = table(name, **chosen)
        for run in (run for run in runs if not run.why_not and run.setting != "none"):
            numbers = seeds_of(run, runs, ())
            for row in run.rows:
                by = "own" if row.first.own_result else "copied"
                found.setdefault(by, set()).add(len(numbers))
                assert numbers == tuple(range(42, 42 + len(numbers)))
        return found

    assert seeds("dcpcse:1") == {"own": {10}, "copied": {1}}
    assert seeds("conpvp:3") == {"own": {4}, "copied": {1}}
    assert seeds("promcse:1") == {"own": {1}, "copied": {1, 3}}  # Mirror-BERT: mean of 3
    made = table("conpvp:4")
    assert {seeds_of(run, made, (7, 9)) for run in made} == {(7, 9)}


def test_backbones_choose_rows_or_stand_in() -> None:
    found = table("promcse:1", "promcse", backbones=("builtin",))
    first = found[1].rows[0].first
    assert found[1].instead_of == ("bert-base-uncased", "roberta-base", "roberta-large")
    assert (
        found[1].differs_from(first)
        == "builtin stands in for bert-base-uncased, roberta-base, roberta-large"
    )
    glove = table("promcse:1", "glove", backbones=("builtin",))[0]
    assert glove.backbone == "glove" and not glove.instead_of  # brings its own vectors
    (folder,) = table("promcse:3", "input-layer", backbones=(f"/models/{BERT}",))
    assert folder.backbone == f"/models/{BERT}" and not folder.instead_of


def test_released_checkpoints_take_the_place_of_training() -> None:
    found = table("promcse:1", "promcse", released=True)
    scored = {run.backbone: run.changes["pooling"] for run in found if run.checkpoint}
    assert scored == {
        "YuxinJiang/unsup-promcse-bert-base-uncased": "cls",
        "YuxinJiang/sup-promcse-roberta-base": "mlp",
        "YuxinJiang/sup-promcse-roberta-large": "mlp",
    }
    (other,) = table("focal-infonce:2", "declutr", backbones=("builtin",))
    assert other.why_not  # a checkpoint does not replace another backbone
