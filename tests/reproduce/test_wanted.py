"""Which runs a printed table means: every table of every paper, and the words that choose rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.base.errors import BenchError, UnknownName
from bench.data.sets import DataFolder
from bench.references import FigureRuns, Row, figure_runs, results, rows, tables
from bench.run.plugins import discover
from bench.run.recipes import parse
from bench.run.reproduce.execute import ReproduceOptions, in_order, jobs, precision_of
from bench.run.reproduce.wanted import (
    WantedRun,
    check_asked,
    figure,
    recipe,
    scored_on,
    together,
    wanted_runs,
    with_asked,
)

REGISTRY = discover()


def names(found: tuple[WantedRun, ...]) -> list[str]:
    return [run.name for run in found]


@pytest.mark.parametrize(("paper", "table"), tables())
def test_every_table_means_runs_that_the_harness_has(paper: str, table: str) -> None:
    """No row is lost, every run has a recipe, and its changed values are in it."""
    found = wanted_runs(paper, table, REGISTRY)
    every = [row for row in rows(results(paper=paper)) if row.first.table == table]
    assert sorted(map(repr, (row for run in found for row in run.rows))) == sorted(map(repr, every))
    assert len({run.identity for run in found}) == len(found)
    for run in found:
        assert bool(run.why_not) is not bool(run.method)
        if run.method:
            merged, _, _ = recipe(run, REGISTRY)
            assert {key: merged[key] for key in run.changes} == {
                key: parse(key, value, merged[key]) for key, value in run.changes.items()
            }
            assert run.setting in REGISTRY[run.method].cls.settings and run.suites
            request = run.request((1, 2), text="tokenised", corpus=None, precision="fp32")
            assert (request.methods, request.seeds, request.suites) == (
                (run.method,),
                (1, 2),
                run.suites,
            )


def test_what_cannot_be_run_says_why() -> None:
    why = {
        label: run.why_not
        for run in wanted_runs("promcse", "1", REGISTRY)
        if run.why_not
        for label in run.labels
    }
    assert set(why) == {"Universal Sentence Encoder"}


def test_the_example_of_the_paper() -> None:
    found = wanted_runs(
        "promcse", "1", REGISTRY, words=("unsupervised",), backbones=("bert-base-uncased",)
    )
    assert names(found)[0] == "embedding-last-avg, nothing trained, bert-base-uncased"
    assert names(found)[-1] == "promcse, unsupervised, bert-base-uncased"
    assert len(found) == 12 and all(run.comparable for run in found)


def test_lines_with_two_metrics_and_rows_of_the_same_run_are_one_run() -> None:
    found = wanted_runs("promcse", "3", REGISTRY)
    assert names(found) == [
        "simcse, unsupervised, bert-base-uncased",
        "promcse, unsupervised, bert-base-uncased",
        "promcse+layer-shared, unsupervised, bert-base-uncased",
        "promcse+input-layer, unsupervised, bert-base-uncased",
    ]
    assert [run.suites for run in found] == [("sts", "cxc")] * 4
    (simcse,) = [
        r
        for r in wanted_runs(
            "promcse", "1", REGISTRY, words=("supervised",), backbones=("bert-base-uncased",)
        )
        if r.method == "simcse" and not r.variant and r.setting == "supervised"
    ]
    assert simcse.labels == ("SimCSE-BERT-base", "SimCSE-BERT-base (reproduce)")


def test_sweeps_become_recipe_values() -> None:
    assert [run.changes.get("eh_margin") for run in wanted_runs("promcse", "4", REGISTRY)] == [
        None,
        "0",
        "0.05",
        "0.1",
        "0.15",
        "0.2",
        "0.25",
        "0.3",
        "0.35",
        "0.4",
    ]
    assert {run.changes["temperature"] for run in wanted_runs("focal-infonce", "4", REGISTRY)} == {
        "0.03",
        "0.05",
        "0.07",
        "0.1",
    }


def test_what_stands_on_another_run() -> None:
    found = wanted_runs("promcse", "1", REGISTRY, words=("sbert",))
    on = {run.labels[0]: run.on.method for run in found if run.on}
    assert on == {
        "SBERT-base-flow": "sbert",
        "SBERT-base-whitening": "sbert",
        "CT-SBERT-base": "sbert",
    }
    flow = next(run for run in found if run.method == "flow")
    assert (
        flow.setting == "none"
        and flow.on is not None
        and flow.on.setting == "supervised"
        and flow.on.suites == ("sts",)
    )


def test_a_teacher_is_a_run_that_is_done_before() -> None:
    found = {run.name: run for run in wanted_runs("focal-infonce", "3", REGISTRY)}
    runs = [
        found[f"{name}, unsupervised, bert-base-uncased, teacher simcse"]
        for name in ("dclr", "dclr+focal")
    ]
    for run in runs:
        assert (
            run.on is not None
            and run.on.identity == found["simcse, unsupervised, bert-base-uncased"].identity
        )
        request = run.request(
            (1,), text="tokenised", corpus=None, precision="fp32", below="runs/simcse-1"
        )
        assert (request.backbones, request.overrides["teacher"]) == (
            ("bert-base-uncased",),
            "runs/simcse-1",
        )
        assert run.comparable
    listed = jobs(list(found.values()), REGISTRY, DataFolder(None), ReproduceOptions())
    order = [job.run.name for job in in_order(listed)]
    assert order.count("simcse, unsupervised, bert-base-uncased") == 1 and order[-2:] == [
        run.name for run in runs
    ]
    assert not [need for job in listed for need in job.needs if need.name == "teacher"]
    own = with_asked(
        wanted_runs("focal-infonce", "3", REGISTRY, words=("dclr",)),
        REGISTRY,
        {"teacher": "some/model"},
    )
    assert [(run.on, run.on_as, run.asked["teacher"], run.comparable) for run in own] == [
        (None, "", "some/model", False)
    ] * 2


def test_who_trained_in_fp16_is_run_so_where_the_device_can_and_nothing_else_was_asked() -> None:
    """DCLR's script has the option commented out, SimCSE's and Focal-InfoNCE's have it; nothing is trained of the averages."""
    listed = jobs(
        wanted_runs("focal-infonce", "3", REGISTRY), REGISTRY, DataFolder(None), ReproduceOptions()
    )
    bf16, theirs = (
        ReproduceOptions(precision="bf16"),
        ReproduceOptions(precision="bf16", as_authors=True),
    )
    found = {job.run.method: (precision_of(job, bf16), precision_of(job, theirs)) for job in listed}
    assert found == {
        "simcse": ("bf16", "fp16"),
        "focal-infonce": ("bf16", "fp16"),
        "diffcse": ("bf16", "fp16"),
        "dclr": ("bf16", "bf16"),
    }
    (average,) = jobs(
        wanted_runs("promcse", "1", REGISTRY, words=("bert-base (first-last avg.)",)),
        REGISTRY,
        DataFolder(None),
        ReproduceOptions(),
    )
    assert precision_of(average, theirs) == "bf16"


def seeds(
    paper: str, table: str, **chosen: tuple[str, ...]
) -> dict[str, set[tuple[int | None, ...]]]:
    """Whether a row is the paper's own -> the seeds of such runs where something is random."""
    found: dict[str, set[tuple[int | None, ...]]] = {}
    for job in jobs(
        wanted_runs(paper, table, REGISTRY, **chosen),
        REGISTRY,
        DataFolder(None),
        ReproduceOptions(),
    ):
        for row in job.run.rows if job.run.method and job.seeds != (None,) else ():
            found.setdefault("own" if row.first.own_result else "copied", set()).add(job.seeds)
    return found


def test_seeds_are_as_many_as_the_print_is_of() -> None:
    """The papers' own words: DCPCSE the average of 10 runs, ConPVP means of 4 (tables 4, 5) and the best of 4 (table 3)."""
    one, four, ten = (42,), (42, 43, 44, 45), tuple(range(42, 52))
    assert seeds("dcpcse", "1") == {"own": {ten}, "copied": {one}} and seeds("dcpcse", "2") == {
        "own": {ten}
    }
    assert seeds("conpvp", "3") == {"own": {four}, "copied": {one}}
    assert seeds("conpvp", "4") == {"own": {four}} and seeds("conpvp", "5")["own"] == {four}
    assert seeds("promcse", "1") == {
        "own": {one},
        "copied": {one, (42, 43, 44)},
    }  # Mirror-BERT's row is the mean of 3
    assert seeds("focal-infonce", "2")["own"] == {one}
    assert seeds("dcpcse", "2", backbones=("builtin",)) == {"own": {one}}  # a trial


def test_what_a_run_stands_on_is_done_with_its_seeds_and_once() -> None:
    """Two rows on SBERT, which is no row here: one job of it, with the seeds of the one that has most."""
    found = wanted_runs("promcse", "1", REGISTRY, words=("sbert-base-flow", "ct-sbert"))
    of_three = [replace(cell, runs="mean of 3 runs") for cell in found[1].rows[0].cells]
    found = (found[0], replace(found[1], rows=(Row(tuple(of_three)),)))
    listed = jobs(found, REGISTRY, DataFolder(None), ReproduceOptions())
    order = in_order(listed)
    assert [job.run.method for job in order] == ["sbert", "flow", "ct"] and order[0].seeds == (
        42,
        43,
        44,
    )
    assert listed[0].first is listed[1].first is order[0]


def test_another_backbone_stands_in_and_is_not_comparable() -> None:
    found = wanted_runs("promcse", "1", REGISTRY, words=("promcse",), backbones=("builtin",))
    assert names(found) == [
        "promcse, unsupervised, builtin",
        "promcse, supervised, builtin",
        "promcse+eh, supervised, builtin",
    ]
    assert (
        found[1].instead_of == "bert-base-uncased, roberta-base, roberta-large"
        and not found[1].comparable
    )
    (own,) = wanted_runs("promcse", "1", REGISTRY, words=("glove",), backbones=("builtin",))[:1]
    assert own.backbone == "glove" and own.comparable  # brings its own vectors


def test_a_folder_of_that_name_is_that_backbone() -> None:
    (run,) = wanted_runs(
        "promcse", "3", REGISTRY, words=("input-layer",), backbones=("/models/bert-base-uncased",)
    )
    assert run.backbone == "/models/bert-base-uncased" and run.comparable


def test_the_users_values_go_where_they_are_known() -> None:
    chosen = wanted_runs(
        "promcse", "1", REGISTRY, words=("first-last", "promcse"), backbones=("bert-base-uncased",)
    )
    found = with_asked(chosen, REGISTRY, {"max_steps": "5"})
    assert [(run.method, dict(run.asked), run.comparable) for run in found[:2]] == [
        ("embedding-last-avg", {}, True),
        ("promcse", {"max_steps": "5"}, False),
    ]
    on_builtin = wanted_runs(
        "promcse", "1", REGISTRY, words=("first-last", "promcse"), backbones=("builtin",)
    )
    check_asked(on_builtin, REGISTRY, {"budget": "10m"})
    budgets = with_asked(on_builtin, REGISTRY, {"budget": "10m"})
    assert [(run.method, dict(run.asked)) for run in budgets[:2]] == [
        ("embedding-last-avg", {}),
        ("promcse", {"budget": "10m"}),
    ]
    with pytest.raises(UnknownName, match="recipe key 'max_step'"):
        check_asked(wanted_runs("promcse", "1", REGISTRY), REGISTRY, {"max_step": "5"})


@pytest.mark.parametrize(
    ("words", "backbones", "said"),
    [
        (("simsce",), (), "--rows simsce: no row of promcse:3 has it: SimCSE, PromCSE"),
        (("promcse",), ("roberta-large",), None),  # a stand-in: the table has no such backbone
    ],
)
def test_words_that_fit_no_row(
    words: tuple[str, ...], backbones: tuple[str, ...], said: str | None
) -> None:
    if said is None:
        assert (
            wanted_runs("promcse", "3", REGISTRY, words=words, backbones=backbones)[0].instead_of
            == "bert-base-uncased"
        )
        return
    with pytest.raises(BenchError, match=said):
        wanted_runs("promcse", "3", REGISTRY, words=words, backbones=backbones)


def test_a_backbone_that_the_chosen_rows_do_not_have() -> None:
    with pytest.raises(
        BenchError,
        match="--backbone roberta-large: the chosen rows of promcse:1 are of glove, bert-base-uncased",
    ):
        wanted_runs("promcse", "1", REGISTRY, words=("unsupervised",), backbones=("roberta-large",))


@pytest.mark.parametrize("drawn", figure_runs(), ids=lambda one: one.part.name)
def test_every_figure_means_runs_that_the_harness_has(drawn: FigureRuns) -> None:
    found = figure(drawn, REGISTRY, backbones=("builtin",))
    assert len({run.identity for run in found}) == len(found) >= 2
    for run in found:
        assert run.setting in REGISTRY[run.method].cls.settings and run.suites == drawn.suites
        assert run.instead_of == ", ".join(drawn.backbones) and (
            not run.variant or run.variant in REGISTRY[run.method].cls.variants
        )
        merged, _, _ = recipe(run, REGISTRY)
        assert all(
            merged[key] == parse(key, value, merged[key]) for key, value in run.changes.items()
        )


def test_the_systems_and_backbones_of_figures() -> None:
    """PromCSE's figure 3 has six systems, ConPVP's figure 7 two backbones; a backbone of the figure chooses, another one stands in."""
    drawn = {one.part.name: one for one in figure_runs()}
    assert names(figure(drawn["promcse:figure3"], REGISTRY)) == [
        f"{name}, {setting}, bert-base-uncased"
        for setting, methods in (
            ("unsupervised", ("simcse", "promcse")),
            ("supervised", ("simcse", "promcse", "simcse+eh", "promcse+eh")),
        )
        for name in methods
    ]
    assert names(figure(drawn["promcse:figure1"], REGISTRY)) == [
        f"{name}, unsupervised, bert-base-uncased" for name in ("simcse", "promcse")
    ]
    few_shot = drawn["conpvp:figure7"]
    assert [(run.method, run.backbone) for run in figure(few_shot, REGISTRY)] == [
        (name, backbone)
        for name in ("simcse", "conpvp")
        for backbone in ("roberta-base", "roberta-large")
    ]
    assert {run.backbone for run in figure(few_shot, REGISTRY, backbones=("roberta-base",))} == {
        "roberta-base"
    }
    (folder, _) = figure(few_shot, REGISTRY, backbones=("/models/roberta-large",))
    assert (folder.backbone, folder.instead_of, folder.comparable) == (
        "/models/roberta-large",
        "",
        True,
    )
    with pytest.raises(BenchError, match="figure 7 of conpvp is of roberta-base, roberta-large"):
        figure(few_shot, REGISTRY, backbones=("bert-base-uncased",))


def test_runs_of_several_tables_are_each_done_once_with_the_rows_of_all() -> None:
    tables = [
        wanted_runs("promcse", "1", REGISTRY),
        wanted_runs("simcse", "5", REGISTRY),
        wanted_runs("promcse", "3", REGISTRY),
    ]
    found = together(tables)
    assert len({run.identity for run in found}) == len(found) < sum(map(len, tables))
    assert sum(len(run.rows) for run in found) == sum(
        len(run.rows) for runs in tables for run in runs
    )
    (simcse,) = [run for run in found if run.name == "simcse, unsupervised, bert-base-uncased"]
    assert simcse.suites == ("sts", "cxc") and {row.first.paper for row in simcse.rows} == {
        "promcse",
        "simcse",
    }
    other = [scored_on(run, ("check",)) for run in found if run.on]
    assert other and all(run.suites == ("check",) == run.on.suites for run in other if run.on)


def test_keys_are_checked_over_all_runs_and_a_series_is_refused() -> None:
    found = wanted_runs("promcse", "3", REGISTRY)
    check_asked(found, REGISTRY, {"prompt_length": "4"})  # SimCSE does not know it, PromCSE does
    with pytest.raises(BenchError, match="one value for each key"):
        check_asked(found, REGISTRY, {"prompt_length": "4,8"})
    asked = {
        run.method: dict(run.asked) for run in with_asked(found, REGISTRY, {"prompt_length": "4"})
    }
    assert asked == {"simcse": {}, "promcse": {"prompt_length": "4"}}


def test_simcses_ablations_are_recipes() -> None:
    found = {run.labels[0]: run for run in wanted_runs("simcse", "7", REGISTRY) if run.method}
    assert found.pop("Hard neg N/A").changes == {"hard_negatives": "false"}
    weights = {label: float(run.changes["hard_negative_weight"]) for label, run in found.items()}
    assert {label: round(math.exp(weight), 12) for label, weight in weights.items()} == {
        "Contradiction, alpha 0.5": 0.5,
        "Contradiction, alpha 1.0": 1.0,
        "Contradiction, alpha 2.0": 2.0,
    }
    dropouts = [
        run.changes.get("dropout", run.variant) for run in wanted_runs("simcse", "3", REGISTRY)
    ]
    assert dropouts == ["0.0", "0.01", "0.05", "0.1", "0.15", "0.2", "0.5", "fixed-dropout"]
    edits = [dict(run.changes) for run in wanted_runs("simcse", "1", REGISTRY) if run.method]
    assert edits[1] == {"edit": "crop", "edit_share": "0.1"} and edits[6] == {
        "edit": "deletion",
        "edit_share": "0.3",
    }
    assert edits[7:] == [{"edit": "one-word"}, {"edit": "one-word", "dropout": "0.0"}]


def scored(found: tuple[WantedRun, ...]) -> dict[str, str]:
    return {
        run.backbone: " ".join(
            [run.method, *(f"{key}={value}" for key, value in run.changes.items())]
        )
        for run in found
        if run.checkpoint
    }


def test_released_checkpoints_take_the_place_of_training() -> None:
    found = wanted_runs("promcse", "1", REGISTRY, words=("promcse",), released=True)
    assert scored(found) == {
        "YuxinJiang/unsup-promcse-bert-base-uncased": "stored-prefix pooling=cls",
        "YuxinJiang/sup-promcse-roberta-base": "stored-prefix pooling=mlp",
        "YuxinJiang/sup-promcse-roberta-large": "stored-prefix pooling=mlp",
    }
    assert all(
        run.setting == "none" and run.comparable and run.suites == ("sts",)
        for run in found
        if run.checkpoint
    )
    left = {label for run in found if run.why_not for label in run.labels}
    assert left == {
        "PromCSE-BERT-base",
        "PromCSE-BERT-base + EH",
        "PromCSE-RoBERTa-base + EH",
        "PromCSE-RoBERTa-large + EH",
    }
    plain = wanted_runs("promcse", "1", REGISTRY, words=("promcse",))
    assert not scored(plain) and not any(run.why_not for run in plain)


@pytest.mark.parametrize(("paper", "table"), tables())
def test_with_released_nothing_is_trained_and_no_row_is_lost(paper: str, table: str) -> None:
    try:
        found = wanted_runs(paper, table, REGISTRY, released=True)
    except BenchError as error:
        assert "--released: no released checkpoint" in error.message
        return
    every = [row for row in rows(results(paper=paper)) if row.first.table == table]
    assert sorted(map(repr, (row for run in found for row in run.rows))) == sorted(map(repr, every))
    assert any(run.checkpoint for run in found)
    for job in jobs(found, REGISTRY, DataFolder(None), ReproduceOptions()):
        assert not job.run.method or (
            job.run.setting == "none" and not any(need.kind == "corpus" for need in job.needs)
        ), job.run.name


def test_what_a_paper_took_from_checkpoints_is_scored_from_them() -> None:
    """PromCSE's table 2, ConPVP's SimCSE of table 6, DeCLUTR and CT wherever they stand: without --released."""
    table = wanted_runs("promcse", "2", REGISTRY)
    assert set(scored(table)) == {
        "princeton-nlp/unsup-simcse-bert-base-uncased",
        "princeton-nlp/sup-simcse-bert-base-uncased",
        "royokong/unsup-PromptBERT",
        "voidism/diffcse-bert-base-uncased-sts",
        "YuxinJiang/unsup-promcse-bert-base-uncased",
    }
    assert all(
        any("promcse:2 took it from a checkpoint" in note for note in run.notes)
        for run in table
        if run.checkpoint
    )
    assert [
        run.name
        for run in table
        if run.method and not run.checkpoint and run.setting == "supervised"
    ] == [
        "simcse+eh, supervised, bert-base-uncased",
        "promcse, supervised, bert-base-uncased",
        "promcse+eh, supervised, bert-base-uncased",
    ]
    assert set(scored(wanted_runs("conpvp", "6", REGISTRY))) == {
        "princeton-nlp/unsup-simcse-bert-base-uncased",
        "princeton-nlp/unsup-simcse-bert-large-uncased",
    }
    for paper, table_ in (("focal-infonce", "2"), ("simcse", "5")):
        found = scored(wanted_runs(paper, table_, REGISTRY))
        assert found["johngiorgi/declutr-base"] == "pretrained pooling=avg"
    here = {
        f"{paper}:{table_}"
        for paper, table_ in tables()
        if scored(wanted_runs(paper, table_, REGISTRY))
    }
    assert here == {"promcse:1", "promcse:2", "conpvp:6", "focal-infonce:2", "simcse:5"}


def test_a_checkpoint_does_not_stand_in_for_another_backbone() -> None:
    found = wanted_runs("focal-infonce", "2", REGISTRY, words=("declutr",), backbones=("builtin",))
    assert [bool(run.why_not) for run in found] == [True]
    with pytest.raises(
        BenchError,
        match="--released: no released checkpoint is listed for these rows of focal-infonce:2",
    ):
        wanted_runs("focal-infonce", "2", REGISTRY, backbones=("builtin",), released=True)


def test_a_figure_of_released_checkpoints() -> None:
    spec = next(one for one in figure_runs() if one.part.name == "simcse:figureG.1")
    found = figure(spec, REGISTRY, released=True)
    assert {
        "princeton-nlp/unsup-simcse-bert-base-uncased",
        "princeton-nlp/sup-simcse-bert-base-uncased",
    } == set(scored(found))
    assert [run.name for run in found if run.why_not] == [
        "whitening, nothing trained, bert-base-uncased",
        "sbert, supervised, bert-base-uncased",
    ]
    series = next(one for one in figure_runs() if one.part.name == "promcse:figure2")
    with pytest.raises(BenchError, match="no released checkpoint"):
        figure(series, REGISTRY, released=True)
