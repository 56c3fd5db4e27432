"""Ours beside the print: what is equivalent, what is different, and what nobody can tell yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factories import record
from scipy.stats import t as student

from bench.references import results
from bench.run.estimates import CARDS, FILLED, SHARE, STEP_SECONDS
from bench.run.plugins import discover
from bench.run.reproduce.execute import gpu_hours
from bench.run.reproduce.verdicts import (
    VERDICTS,
    Reproduced,
    Run,
    best_of,
    judge_cells,
    printed_runs,
    score_of,
)
from bench.run.reproduce.wanted import WantedRun, recipe, wanted_runs
from bench.runs import Score

REGISTRY = discover()


def stsb_run() -> WantedRun:
    """Focal-InfoNCE's table 3, first line: alignment, uniformity, and STS-B 76.38."""
    return wanted_runs("focal-infonce", "3", REGISTRY)[0]


def stsb_score(value: float, text: str = "tokenised") -> Score:
    return Score(
        suite="sts",
        task="STS-B",
        protocol="senteval-all/1",
        metric="spearman",
        value=value,
        n=1379,
        text=text,
    )


def ours(*values: float, text: str = "tokenised") -> list[Run]:
    """A finished run for each value, of seeds 1, 2, ..."""
    return [
        (
            record("simcse", seed, backbone="bert-base-uncased", scores=(stsb_score(value, text),)),
            Path(),
        )
        for seed, value in enumerate(values, 1)
    ]


def stsb(*values: float, margin: float = 0.5) -> Reproduced:
    """What becomes of the printed STS-B 76.38 beside these values."""
    *_, cell = judge_cells([(stsb_run(), ours(*values))], "tokenised", margin)[0]
    return cell


def test_two_seeds_nine_points_apart_agree_with_nothing() -> None:
    cell = stsb(76.38 - 9, 76.38 + 9)
    assert cell.verdict == "inconclusive" and cell.difference == 0.0
    assert cell.low is not None and cell.high is not None and cell.high - cell.low > 100


def test_one_seed_says_nothing_of_other_seeds() -> None:
    cell = stsb(76.4)
    assert (
        cell.verdict == "inconclusive"
        and cell.low is None
        and any("one seed says nothing" in note for note in cell.notes)
    )
    assert stsb(50.0).verdict == "inconclusive", "however far away it is"


def test_equivalent_and_different_by_hand() -> None:
    """Five seeds of known variance: the tests are those of scipy."""
    values = np.array([76.2, 76.3, 76.4, 76.5, 76.6])
    cell = stsb(*values)
    sd = float(values.std(ddof=1))
    assert cell.sd == pytest.approx(sd) and cell.freedom == 4 and cell.verdict == "equivalent"
    off = abs(values.mean() - 76.38) + 0.005
    assert cell.p_equivalent == pytest.approx(float(student.sf((0.5 - off) / (sd / 5**0.5), 4)))
    half = float(student.ppf(0.975, 4)) * sd * (1 + 1 / 5) ** 0.5
    assert (cell.low, cell.high) == pytest.approx((values.mean() - half, values.mean() + half))
    far = stsb(*(values + 3))
    assert far.verdict == "different" and far.low is not None and far.low > 76.385
    assert far.p_different == pytest.approx(
        2 * float(student.sf((3.02 - 0.005) / (sd * 1.2**0.5), 4))
    )
    assert (
        stsb(*(values + 0.4)).verdict == "inconclusive"
        and stsb(*(values + 0.4), margin=1.0).verdict == "equivalent"
    )


def test_the_seeds_that_would_settle_it() -> None:
    cell = stsb(75.9, 76.38, 76.9)
    assert (
        cell.verdict == "inconclusive" and cell.seeds_needed is not None and cell.seeds_needed > 3
    )
    draw, sd, settled = np.random.default_rng(4), cell.sd or 0.0, 0
    for _ in range(200):
        settled += (
            stsb(*draw.normal(cell.mean or 0.0, sd, cell.seeds_needed)).verdict != "inconclusive"
        )
    assert settled >= 140, (
        "with the difference and the variance that were found, four times in five"
    )
    assert stsb(75.4, 76.0, 76.2).seeds_needed is None, (
        "half a point off, and within what one printed run varies by"
    )
    assert any("no number of our seeds" in note for note in stsb(75.4, 76.0, 76.2).notes)


def test_what_is_not_random_has_no_variance() -> None:
    run = replace(stsb_run(), setting="none")
    for value, verdict in ((76.38, "equivalent"), (76.80, "equivalent"), (77.0, "different")):
        made = record("cls", None, setting="none", scores=(stsb_score(value),))
        *_, cell = judge_cells([(run, [(made, Path())])], "tokenised")[0]
        assert (cell.verdict, cell.sd, cell.freedom) == (verdict, 0.0, None)


def test_other_methods_of_the_table_lend_their_variance() -> None:
    alone = stsb(76.0, 76.8)
    others = [ours(60, 60.5, 61), ours(70, 70.6, 71.1), ours(50.2, 50.9, 51.3)]
    *_, lent = judge_cells(
        [(stsb_run(), ours(76.0, 76.8)), *((stsb_run(), one) for one in others)], "tokenised"
    )[0][-1:]
    assert alone.freedom == 1 and lent.freedom is not None and lent.freedom > 5
    assert alone.high is not None and lent.high is not None and lent.high < alone.high
    *_, single = judge_cells(
        [(stsb_run(), ours(60.0)), *((stsb_run(), one) for one in others)], "tokenised"
    )[0][-1:]
    assert single.verdict == "different", "one seed, with what others say of seeds"


def test_what_papers_print_of_their_seeds_is_used() -> None:
    cells = [cell for cell in results(paper="conpvp") if cell.table == "4" and cell.std is not None]
    assert cells and printed_runs(cells[0]) == (4, False)
    cell = replace(cells[0], task="STS-B", value=76.38, std=2.0)
    run = replace(stsb_run(), rows=(replace(stsb_run().rows[0], cells=(cell,)),))
    ((wide,),) = judge_cells([(run, ours(73.4, 73.5, 73.6, 73.7))], "tokenised")
    assert wide.verdict == "inconclusive" and wide.low is not None and wide.low < 71
    ((narrow,),) = judge_cells(
        [
            (
                replace(run, rows=(replace(run.rows[0], cells=(replace(cell, std=0.2),)),)),
                ours(73.4, 73.5, 73.6, 73.7),
            )
        ],
        "tokenised",
    )
    assert narrow.verdict == "different"
    ((single,),) = judge_cells(
        [(replace(run, rows=(replace(run.rows[0], cells=(cell,)),)), ours(73.4))], "tokenised"
    )
    assert single.sd == 2.0 and single.freedom == 3, (
        "of one seed of ours the paper says how far seeds vary"
    )


def test_the_best_of_four_is_expected_to_be_better() -> None:
    drawn = np.random.default_rng(0).normal(size=(400_000, 4)).max(axis=1)
    assert best_of(4) == pytest.approx((drawn.mean(), drawn.var()), abs=0.01)
    assert best_of(1) == pytest.approx((0, 1), abs=1e-9)


SDS = (0.9, 0.9, 0.7, 0.6, 0.8, 1.1, 0.35, 0.6)
"""Over seeds, of the seven tasks and the average: about those of leaderboards/v1."""


def simulated(
    draw: np.random.Generator, listed: Sequence[WantedRun], seeds: int, away: float
) -> list[list[Reproduced]]:
    """A table of which every printed cell is one run; the first row's method is ``away`` points off, the others repeat honestly."""
    table = []
    for i, run in enumerate(listed):
        cells = [cell for row in run.rows for cell in row.cells]
        level = [
            cell.value + draw.normal(0, sd) - away * (not i)
            for cell, sd in zip(cells, SDS, strict=True)
        ]
        made = []
        for seed in range(seeds):
            scores = tuple(
                Score(
                    suite="sts",
                    task=cell.task,
                    protocol="senteval-all/1",
                    metric="spearman",
                    value=one + draw.normal(0, sd),
                    n=1000,
                    text="tokenised",
                )
                for cell, one, sd in zip(cells, level, SDS, strict=True)
            )
            made.append((record(run.method, seed, backbone=run.backbone, scores=scores), Path()))
        table.append((run, made))
    return judge_cells(table, "tokenised")


@pytest.mark.slow
def test_honest_repeats_are_called_different_five_times_in_a_hundred_rows_at_most() -> None:
    """Rows of PromCSE's table 1 that are trained on BERT base. Power is that of one row of eight cells, Holm over them."""
    listed = [
        run
        for run in wanted_runs(
            "promcse", "1", REGISTRY, words=("unsupervised",), backbones=("bert-base-uncased",)
        )
        if run.method
        and run.comparable
        and len(run.rows) == 1
        and len(run.rows[0].cells) == 8
        and run.on is None
        and printed_runs(run.rows[0].first) == (1, False)
    ][:5]
    assert len(listed) == 5
    draw = np.random.default_rng(7)
    for seeds, power in ((3, 0.8), (5, 0.9)):
        wrong = found = equivalent = rows = 0
        for _ in range(100):
            first, *honest = simulated(draw, listed, seeds, 3.0)
            found += any(one.verdict == "different" for one in first)
            wrong += sum(any(one.verdict == "different" for one in row) for row in honest)
            equivalent += any(one.verdict == "equivalent" for one in first)
            rows += len(honest)
        assert wrong / rows <= 0.05 + 2 * (0.05 * 0.95 / rows) ** 0.5, (seeds, wrong, rows)
        assert found / 100 >= power, (seeds, found)
        assert equivalent / 100 <= 0.05


@pytest.mark.slow
def test_equivalent_is_wrong_five_times_in_a_hundred_at_most() -> None:
    """A method whose mean is just the margin away from what is printed, and whose seeds hardly vary."""
    draw, wrong = np.random.default_rng(8), 0
    for _ in range(600):
        wrong += stsb(*draw.normal(76.38 + 0.5, 0.3, 4)).verdict == "equivalent"
    assert wrong / 600 <= 0.05 + 2 * (0.05 * 0.95 / 600) ** 0.5


def test_other_conditions_are_not_compared() -> None:
    for changed in (
        replace(stsb_run(), instead_of="bert-base-uncased"),
        replace(stsb_run(), asked={"max_steps": "5"}),
    ):
        assert (
            judge_cells([(changed, ours(76.0, 76.2))], "tokenised")[0][-1].verdict
            == "not comparable"
        )


def test_a_protocol_that_nobody_published_is_not_compared() -> None:
    alignment = Score(
        suite="geometry",
        task="alignment",
        protocol="geometry-stsb/1",
        metric="alignment",
        value=0.19,
        n=231,
        text="tokenised",
    )
    made = record("simcse", 1, backbone="bert-base-uncased", scores=(alignment,))
    first, *_ = judge_cells([(stsb_run(), [(made, Path("nowhere"))])], "tokenised")[0]
    assert (first.printed.task, first.mean, first.difference, first.verdict) == (
        "alignment",
        0.19,
        0.0,
        "not comparable",
    )


def test_another_text_form_is_no_score_of_that_cell() -> None:
    raw = [(stsb_run(), ours(76.0, 76.2, text="raw"))]
    assert judge_cells(raw, "tokenised")[0][-1].verdict == "not scored"
    assert judge_cells(raw, "raw")[0][-1].verdict != "not scored"


def test_a_score_of_another_protocol_is_left_alone() -> None:
    run = wanted_runs("promcse", "2", REGISTRY, words=("glove",))[0]
    (cell,) = run.rows[0].cells
    assert cell.protocol == "cxc-parekh/1"
    scores = tuple(
        Score(
            suite="cxc",
            task="CxC-STS",
            protocol=p,
            metric="spearman-bootstrap",
            value=v,
            n=44045,
            text="raw",
        )
        for p, v in (("cxc-promcse/1", 1.0), ("cxc-parekh/1", 2.0))
    )
    found = score_of(record("glove-avg", None, setting="none", scores=scores), cell, "tokenised")
    assert (
        found is not None and found.value == 2.0
    )  # the form does not matter: the print names none


def test_a_printed_value_stands_for_all_that_is_rounded_to_it() -> None:
    """Nothing is random here: 76.874 is within half a point of all that is rounded to 76.38, 76.876 is not."""
    for value, verdict in (
        (76.874, "equivalent"),
        (76.876, "different"),
        (75.886, "equivalent"),
        (75.884, "different"),
    ):
        made = record("cls", None, setting="none", scores=(stsb_score(value),))
        assert judge_cells([(stsb_run(), [(made, Path())])], "tokenised")[0][-1].verdict == verdict
    assert set(VERDICTS) == {
        "equivalent",
        "different",
        "inconclusive",
        "not comparable",
        "not scored",
    }


def test_gpu_hours_by_hand() -> None:
    """Unsupervised SimCSE on BERT base: 15,625 steps of 64 x 2 x 32 tokens, 85 million parameters in the layers."""
    (run,) = wanted_runs("promcse", "3", REGISTRY, words=("simcse",))[:1]
    merged, entry, _ = recipe(run, REGISTRY)
    cls = REGISTRY["simcse"].cls
    parameters, length, speed = (
        12 * (4 * 768**2 + 2 * 768 * 3072),
        32 * FILLED,
        SHARE * CARDS["A100"].tflops["bf16"] * 1e12,
    )
    training = max(15_625 * STEP_SECONDS, 6 * parameters * 1_000_000 * 2 * length / speed)
    dev = 125 * 2 * parameters * 3000 * length / speed
    assert entry is not None and gpu_hours(
        cls, merged, "bert-base-uncased", entry.corpus
    ) == pytest.approx((training + dev) / 3600)
    assert gpu_hours(cls, merged, "no-such-model", entry.corpus) is None
    assert gpu_hours(cls, merged, "bert-base-uncased", "a file of the user") is None


def test_gpu_hours_of_a_budget_by_hand() -> None:
    """300 steps of 64 rows are 300 steps whatever the corpus is; ten minutes are ten minutes; how long tokens last is not known."""
    (run,) = wanted_runs("promcse", "3", REGISTRY, words=("simcse",))[:1]
    cls, parameters = REGISTRY["simcse"].cls, 12 * (4 * 768**2 + 2 * 768 * 3072)
    speed = SHARE * CARDS["A100"].tflops["bf16"] * 1e12

    def hours(budget: str, corpus: str = "wiki1m") -> float | None:
        merged, _, _ = recipe(replace(run, asked={"budget": budget, "select_on": "last"}), REGISTRY)
        return gpu_hours(cls, merged, "bert-base-uncased", corpus)

    steps = max(300 * STEP_SECONDS, 6 * parameters * 300 * 64 * 2 * 32 * FILLED / speed) / 3600
    assert hours("300steps") == pytest.approx(steps) == hours("300steps", "a file of the user")
    assert (
        hours("19200sentences") == pytest.approx(steps)
        and hours("19200sentences", "a file of the user") is None
    )
    assert hours("10m") == pytest.approx(1 / 6) and hours("1000000tokens") is None


def test_weighted_means_over_sub_datasets_are_read_from_the_details() -> None:
    """SimCSE's table B.3: each task's weighted mean, and of all seven the mean; nothing where a task has none."""
    run = next(
        one
        for one in wanted_runs("simcse", "B.3", REGISTRY, words=("own",))
        if one.setting == "unsupervised"
    )
    sizes, correlations = (
        np.array([750, 750, 459]),
        np.array([0.31, 0.74, 0.52]),
    )  # of three sub-datasets, by hand
    weighted = 100 * float((sizes * correlations).sum() / sizes.sum())

    def of(task: str, **detail: float) -> Score:
        return Score(
            suite="sts",
            task=task,
            protocol="senteval-all/1",
            metric="spearman",
            value=40.0,
            n=1959,
            text="tokenised",
            detail=detail,
        )

    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    scores = [of(task, wmean=weighted + i) for i, task in enumerate(tasks)] + [of("Avg.")]
    made = record("simcse", 1, backbone="bert-base-uncased", scores=scores)
    ours = {cell.task: score_of(made, cell, "tokenised") for cell in run.rows[0].cells}
    assert [ours[task].value for task in tasks if ours[task]] == pytest.approx(
        [weighted + i for i in range(7)]
    )
    average = ours["Avg."]
    assert (
        average is not None
        and average.value == pytest.approx(weighted + 3)
        and average.protocol == "senteval-wmean/1"
    )
    partly = record(
        "simcse", 1, backbone="bert-base-uncased", scores=[*scores[:3], of("STS15"), *scores[4:]]
    )
    assert [score_of(partly, cell, "tokenised") is None for cell in run.rows[0].cells] == [
        False
    ] * 3 + [True] + [False] * 3 + [True]
    cells = judge_cells([(run, [(made, Path())])], "tokenised")[0]
    assert [cell.mean for cell in cells] == pytest.approx(
        [*(weighted + i for i in range(7)), weighted + 3]
    )


def test_one_released_checkpoint_is_not_the_mean_of_several_trainings() -> None:
    """PromptBERT prints a mean, and released one model; PromCSE's print is of the model that it released."""
    found = {
        run.method: run
        for run in wanted_runs(
            "promcse", "1", REGISTRY, words=("promptbert", "unsupervised"), released=True
        )
    }
    for method, verdict in (("promptbert", "not comparable"), ("stored-prefix", "equivalent")):
        run = found[method]
        scores = tuple(
            Score(
                suite="sts",
                task=cell.task,
                protocol="senteval-all/1",
                metric="spearman",
                value=cell.value,
                n=9,
                text="tokenised",
            )
            for cell in run.rows[0].parts
        )
        made = record(method, None, setting="none", scores=scores)
        (cells,) = judge_cells([(run, [(made, Path())])], "tokenised")
        assert {cell.verdict for cell in cells if cell.mean is not None} == {verdict}
