"""What a board says in words: its answer, how it was made, and how things are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from bench.board.board import YOURS, Board, BoardTable, PublishedRun
from bench.board.content import board
from bench.board.judged_tables import answer
from bench.board.names import slug, unused_name
from bench.compare.statistics.table import Cell, Row, Table
from bench.runs import Training
from bench.runs.record import public_name


def shown(
    *methods: str, columns: tuple[str, ...] = ("Avg.",), metric: str = "spearman"
) -> BoardTable:
    rows = tuple(
        Row(
            method=method,
            variant="",
            setting="unsupervised",
            backbone="builtin",
            differs=(),
            runs=(method,),
            seeds=(1,),
            cells=(Cell(mean=71.0 - i, sd=None, values=(71.0 - i,), n=100),),
        )
        for i, method in enumerate(methods)
    )
    table = Table(
        setting="unsupervised",
        backbone="builtin",
        suite="sts",
        protocol="senteval-all/1",
        text="tokenised",
        metric=metric,
        columns=columns,
        rows=rows,
    )
    return BoardTable(anchor="a", table=table, selection="", costs_comparable=True, cost_note="")


def test_the_first_table_that_ranks_several_rows_gives_the_answer() -> None:
    geometry, single = shown("z", "y", columns=("alignment",), metric="alignment"), shown("x")
    assert "average is a, 71.00" in answer([geometry, single, shown("a", "b")])
    assert ": x reaches" in answer([geometry, single])
    assert answer([geometry]) == answer([]) == "No method has a score on every task yet."
    assert "none is ranked" in answer([replace(single, checked=False)])


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
