"""What a board says in words: its answer, how it was made, and how things are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from bench.base.text import slug
from bench.board.board import YOURS, Board, BoardTable, PublishedRun
from bench.board.content import board
from bench.board.judged_tables import answer
from bench.board.names import unused_name
from bench.compare.statistics.table import Against, Cell, Cost, Row, Table
from bench.runs import Training
from bench.runs.record import public_name


def cell(mean: float, verdict: str | None = None, difference: float = 0.0) -> Cell:
    against = (
        None
        if verdict is None
        else Against(
            difference=difference, low=difference - 0.5, high=difference + 0.5, verdict=verdict
        )
    )
    return Cell(mean=mean, sd=None, values=(mean,), n=100, against=against)


def row(
    method: str,
    mean: float | None,
    rank: int | None = None,
    verdict: str | None = None,
    difference: float = 0.0,
    *,
    seeds: int = 3,
    variant: str = "",
    setting: str = "unsupervised",
    baseline: bool = False,
) -> Row:
    return Row(
        method=method,
        variant=variant,
        setting=setting,
        backbone="builtin",
        differs=(),
        runs=tuple(f"{method}-s{i}" for i in range(seeds)),
        seeds=tuple(range(seeds)),
        cells=(None if mean is None else cell(mean, verdict, difference),),
        rank=rank and (rank, rank),
        is_baseline=baseline,
    )


def says(*rows: Row, baseline: str | None = "simcse", **changes: object) -> str:
    return answer([shown(*rows, baseline=baseline, **changes)])


def shown(*rows: Row, baseline: str | None = "simcse", **changes: object) -> BoardTable:
    fields = {
        "setting": "unsupervised",
        "backbone": "builtin",
        "suite": "sts",
        "protocol": "senteval-all/1",
        "text": "tokenised",
        "metric": "spearman",
        "columns": ("Avg.",),
    } | changes
    table = Table(rows=rows, baseline=baseline, **fields)  # type: ignore[arg-type]
    return BoardTable(
        anchor="a", table=table, baselines={}, selection="", costs_comparable=True, cost_note=""
    )


SIMCSE = row("simcse", 70.0, 4, baseline=True)


def test_rows_that_cannot_be_told_apart_and_beat_the_baseline() -> None:
    rows = [
        row("promptbert", 72.0, 1, "better", 2.0),
        row("conpvp", 71.9, 1, "better", 1.9),
        row("promcse", 71.4, 1, "better", 1.4),
        SIMCSE,
    ]
    assert says(*rows) == (
        "On the built-in backbone, unsupervised, 3 seeds: promptbert is highest on the STS average, 72.00, but cannot be told from "
        "conpvp and promcse; it is better than the baseline simcse: +2.00 [+1.50, +2.50]; 3 of 3 rows are better."
    )


def test_one_row_above_all() -> None:
    rows = [row("promcse", 71.4, 1, "better", 1.4), row("conpvp", 70.5, 2), SIMCSE]
    assert says(*rows) == (
        "On the built-in backbone, unsupervised, 3 seeds: promcse is the best on the STS average, 71.40, 0.90 above conpvp; "
        "it is better than the baseline simcse: +1.40 [+0.90, +1.90]."
    )


@pytest.mark.parametrize(
    "rows, end",
    [
        (
            [row("a", 71, 1, "better", 1), row("b", 70.5, 1, "unknown", 0.5), SIMCSE],
            "but cannot be told from b; it is better than the baseline simcse: +1.00 [+0.50, +1.50]; 1 of 2 rows is better, 1 unknown.",
        ),
        (
            [row("a", 71, 1, "unknown", 1), row("b", 70.5, 1, "unknown", 0.5), SIMCSE],
            "; it cannot be told from the baseline simcse: +1.00 [+0.50, +1.50].",
        ),
        (
            [row("a", 71, 1, "worse", -1), SIMCSE],
            "; it is worse than the baseline simcse: -1.00 [-1.50, -0.50].",
        ),
        (
            [
                row("a", 71, 1, "unknown", 0.2),
                replace(SIMCSE, rank=(1, 2)),
                row("c", 60, 3, "worse", -10),
            ],
            "a is highest on the STS average, 71.00, but cannot be told from simcse, the baseline (+0.20 [-0.30, +0.70]); 1 of 2 rows is worse, 1 unknown.",
        ),
        (
            [row("a", 71, 1, "better", 1), replace(SIMCSE, rank=(1, 2))],
            "a is the best on the STS average, 71.00, 1.00 above simcse; it is better than the baseline simcse: +1.00 [+0.50, +1.50].",
        ),
        (
            [
                row("a", 71, 1, "unknown", 0.2),
                row("b", 70.9, 1, "unknown", 0.1),
                replace(SIMCSE, rank=(1, 3)),
            ],
            "but cannot be told from any other row; the difference to the baseline simcse is +0.20 [-0.30, +0.70].",
        ),
        (
            [replace(SIMCSE, rank=(1, 2)), row("c", 69, 1, "worse", -1)],
            "simcse is the best on the STS average, 70.00, 1.00 above c, and it is the baseline.",
        ),
        (
            [row("a", 71, 1), replace(SIMCSE, rank=(1, 2)), row("c", 60, 1)],
            "a is highest on the STS average, 71.00, but cannot be told from any other row.",
        ),
        (
            [replace(SIMCSE, rank=(1, 1)), row("c", 60, 2, "worse", -10)],
            "10.00 above c, and it is the baseline.",
        ),
        (
            [replace(SIMCSE, rank=(1, 2)), row("c", 60, 2)],
            "simcse is the best on the STS average, 70.00, 10.00 above c, and it is the baseline.",
        ),
        (
            [row("a", 71, 1, "equivalent", 0.1), SIMCSE],
            "; it is equivalent to the baseline simcse: +0.10 [-0.40, +0.60].",
        ),
        (
            [
                SIMCSE,
                *(
                    row(f"m{i}", 60 - i, 5, one, -10)
                    for i, one in enumerate(
                        ["better", "worse", "worse", "equivalent", "unknown", None]
                    )
                ),
            ],
            ", and it is the baseline; 1 of 5 rows is better, 2 worse, 1 equivalent, 1 unknown.",
        ),
        ([row("a", 71, 1), SIMCSE], "a is the best on the STS average, 71.00, 1.00 above simcse."),
    ],
)
def test_what_is_said_of_the_baseline(rows: Sequence[Row], end: str) -> None:
    assert says(*rows).endswith(end)


def test_where_nothing_was_tested_only_the_numbers_are_told() -> None:
    assert says(row("a", 71.0), row("b", 70.5), row("c", None), baseline=None) == (
        "On the built-in backbone, unsupervised, 3 seeds: a has the highest value on the STS average, 71.00, 0.50 above b; differences were not tested."
    )


def test_many_rows_of_one_group_are_counted() -> None:
    rows = [row(f"m{i}", 80.0 - i, 1) for i in range(7)]
    assert (
        ": m0 is highest on the STS average, 80.00, but cannot be told from m1, m2, m3, m4 and 2 more."
        in says(*rows, SIMCSE)
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (39.2, "; training a takes 39s."),
        (812.0, "; training a takes 13m32s."),
        (0.0, "."),
        (None, "."),
    ],
)
def test_what_the_best_row_cost(seconds: float | None, words: str) -> None:
    """Of the best row, not of another; nothing where it was not trained."""
    best = replace(
        row("a", 71.0, 1),
        cost=Cost(trainable_parameters=None, train_seconds=seconds, peak_memory_bytes=None),
    )
    other = replace(
        row("b", 70.0, 2),
        cost=Cost(trainable_parameters=None, train_seconds=5.0, peak_memory_bytes=None),
    )
    for said in (
        says(best, other, baseline=None),
        says(best, baseline=None),
        says(best, replace(other, rank=None), baseline=None),
    ):
        assert said.endswith(words) and "5s" not in said


def test_where_the_numbers_are_from() -> None:
    alone = row("pretrained", 78.9, seeds=1, setting="none")
    assert says(alone, setting="none", backbone="all-MiniLM-L6-v2", baseline=None) == (
        "On all-MiniLM-L6-v2, nothing trained: pretrained reaches 78.90 on the STS average."
    )
    several = says(
        row("a", 71.0, seeds=3),
        row("b", 70.0, seeds=1),
        row("cls", 50.0, seeds=1, setting="none"),
        baseline=None,
    )
    assert several.startswith("On the built-in backbone, unsupervised, 1 to 3 seeds: ")
    assert "on CxC-STS (raw)" in says(
        row("a", 71.0), row("b", 70.0), baseline=None, suite="cxc", columns=("CxC-STS",), text="raw"
    )


def test_what_every_row_has_is_said_once() -> None:
    """Values that a search found: beside each row only where not all trained ones have them."""
    tuned, other, cls = (
        replace(row(name, mean), values=values)
        for name, mean, values in (
            ("a", 71.0, "tuned: 6 trials"),
            ("b", 70.0, "tuned: 6 trials"),
            ("cls", 50.0, ""),
        )
    )
    flow = replace(
        cls, method="flow", setting="none", values="paper"
    )  # fitted, by a setting of no search
    for rows in ((tuned, other, cls), (tuned, other, flow)):
        assert says(*rows, baseline=None).startswith(
            "On the built-in backbone, unsupervised, 3 seeds: a has the highest value"
        )
    for values in ("paper", "tuned: 12 trials", "tuned: 6 trials, paper"):
        said = says(tuned, replace(other, values=values), cls, baseline=None)
        assert said.startswith(
            "On the built-in backbone, unsupervised, 3 seeds: a (tuned: 6 trials) has"
        ), said


def test_the_first_table_that_ranks_several_rows_gives_the_answer() -> None:
    geometry = shown(
        row("z", 0.2), row("y", 0.1), columns=("alignment",), metric="alignment", suite="geometry"
    )
    single = shown(row("x", 90.0), backbone="other")
    both = shown(row("a", 71.0), row("b", 70.0), baseline=None)
    assert ": a has" in answer([geometry, single, both])
    assert ": x reaches" in answer([geometry, single])
    assert answer([geometry]) == answer([]) == "No method has a score on every task yet."


# --- how it was made ---


def made_of(*changes: dict[str, object], left_out: Sequence[str] = ()) -> Board:
    records = [record(f"m{i}", 1 + i, **one) for i, one in enumerate(changes)]  # type: ignore[arg-type]
    runs = [PublishedRun(record=one, folder=Path("nowhere")) for one in records]
    return board(runs, version="v7", title="T", left_out=left_out)


def facts(shown: Board) -> dict[str, str]:
    return {fact.topic: fact.text for fact in shown.made}


def test_the_facts_are_those_of_the_records() -> None:
    said = facts(
        made_of(
            {},
            {},
            {"training": Training(steps=10, sentences=64_000)},
            left_out=["x: failed", "y: interrupted"],
        )
    )
    assert said["Protocols"].startswith(
        "sts: senteval-all/1, Spearman's rank correlation × 100, tokenised text."
    )
    assert (
        said["Selection"]
        == "Checkpoints of trained runs: best on STS-B dev (2 runs); the last step, nothing selected (1 run)."
    )
    assert said["Seeds"].startswith("Seeds: 1, 2, 3.")
    assert (
        said["Training"]
        == "Each trained run saw 64,000 rows of wiki.txt@cccccc, the same for every trained row."
    )
    assert "2 runs were left out" in said["Missing and failed"]
    assert said["Hardware"].startswith("cpu; bench 0.1.0, torch 2.13.0.")
    assert said["Intervals and tests"] == "Differences were not tested."
    assert said["Trust"].startswith("Runs by grade. 3 own: ")


def test_unequal_budgets_are_not_called_the_same() -> None:
    said = facts(made_of({}, {"training": Training(steps=10, sentences=1_000)}))
    assert said["Training"] == "Each trained run saw 1,000 to 64,000 rows of wiki.txt@cccccc."
    untrained = facts(made_of({"setting": "none"}))
    assert "Training" not in untrained and untrained["Selection"].startswith("Nothing was trained")


def test_what_another_processor_may_give_is_said_of_clusterings_alone() -> None:
    from bench.runs import Score

    of = {
        "task": "AgNews",
        "protocol": "sccl-kmeans/1",
        "metric": "clustering-accuracy",
        "value": 70.0,
        "n": 8000,
        "text": "sccl",
    }
    clustered = facts(made_of({"scores": (Score(suite="clustering", **of),)}))["Repeat"]  # type: ignore[arg-type]
    assert "On another kind of processor a clustering may differ in the second decimal" in clustered
    assert "processor" not in facts(made_of({}))["Repeat"]


def test_what_to_type_names_the_version() -> None:
    commands = {fact.topic: fact.command for fact in made_of({}).made if fact.command}
    assert commands == {
        "Check": "bench verify leaderboards/v7",
        YOURS: 'bench submit RUN --by "your name"',
    }


# --- names ---


@pytest.mark.parametrize(
    "backbone, name",
    [
        ("builtin", "builtin"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("owner/model-x", "owner/model-x"),
        ("/home/me/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("/work/minilm/model/", "minilm"),
        ("./runs/x/checkpoint", "x"),
        ("~/m", "m"),
        ("../up", "up"),
        ("C:\\Users\\me\\bert", "bert"),
        ("runs/a/b", "b"),
        ("/", "local folder"),
        ("/model", "local folder"),
    ],
)
def test_no_path_of_the_publishers_machine_is_a_name(backbone: str, name: str) -> None:
    assert public_name(backbone) == name


def test_addresses_are_plain() -> None:
    assert (
        slug("unsupervised", "owner/Model X", None, "senteval-all/1")
        == "unsupervised-owner-model-x-senteval-all-1"
    )
    assert slug("Ünï<script>") == "uni-script"
    assert slug("…", None) == "table"
    assert len(slug("x" * 500)) == 100
    assert unused_name("a", {"a", "a-2"}) == "a-3" and unused_name("b", {"a"}) == "b"
