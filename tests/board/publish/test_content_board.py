"""The contents of a board: which runs share a table, their baseline, and which costs may be
compared.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from factories import RAW_PROTOCOL, record, sts_scores
from made_runs import failed_run, made_run, made_runs
from msgspec import structs

from bench.base.errors import UnknownName
from bench.board.board import Board, build_board
from bench.board.tables import BoardTable
from bench.compare.statistics.table import FOR_SCALE
from bench.compare.words.finding import verdict_of
from bench.records import Run, RunRecord, Training

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}


def published(records: Sequence[RunRecord], runs: Path) -> list[Run]:
    return [Run(record=one, folder=runs / one.run_id) for one in records]


def board_of_records(
    records: Sequence[RunRecord], runs: Path = Path("nowhere"), **asked: Any
) -> Board:
    return build_board(published(records, runs), version="v1", title="A board", **asked)


def only(shown: Board) -> BoardTable:
    (one,) = shown.tables
    return one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RunRecord]]:
    runs = tmp_path_factory.mktemp("runs")
    records = made_runs(runs, METHODS)
    return runs, [
        *records,
        made_run(runs, "cls", None, noise=1.6),
        made_run(runs, "last-avg", None, noise=1.2),
        failed_run(runs),
    ]


@pytest.fixture(scope="module")
def shown(folder: tuple[Path, list[RunRecord]]) -> Board:
    return board_of_records(folder[1], folder[0])


def test_the_order_in_which_runs_are_found_changes_nothing(
    shown: Board, folder: tuple[Path, list[RunRecord]]
) -> None:
    mixed = list(folder[1])
    random.Random(3).shuffle(mixed)
    assert mixed != folder[1]
    assert board_of_records(mixed, folder[0]) == shown


def test_the_baseline_is_simcse_or_the_one_that_is_named(
    shown: Board, folder: tuple[Path, list[RunRecord]]
) -> None:
    rows = {row.name: row for row in shown.tables[0].table.rows}
    assert shown.tables[0].table.baseline == "simcse" and rows["simcse"].is_baseline
    assert verdict_of(rows["promptbert"]) == "better"
    assert verdict_of(rows["cls"]) is None and rows["cls"].stands == FOR_SCALE
    assert rows["promptbert"].may_be_best and not rows["simcse"].may_be_best
    named = board_of_records(folder[1], folder[0], baseline="promcse").tables[0].table
    assert [row.name for row in named.rows if row.is_baseline] == ["promcse"]
    others = [record(f"m{i}", 1, base=20 + 5 * i) for i in range(3)]
    assert only(board_of_records(others)).table.baseline is None, "never the best row"


def test_the_main_budget_comes_first_and_untrained_rows_stand_at_every_budget() -> None:
    short = [record(m, s, recipe={"budget": "100steps"}) for m in METHODS for s in (1, 2)]
    longer = [record("simcse", s, base=75, recipe={"budget": "1000steps"}) for s in (1, 2)]
    supervised = record("simcse", 1, setting="supervised", recipe={"budget": "1000steps"})
    untrained = [
        record("cls", None, base=40, setting="none"),
        record("pretrained", None, base=80, setting="none", backbone="other"),
    ]
    records = [*short, *longer, supervised, *untrained]

    def shown(**asked: str) -> list[tuple[str | None, str, list[str]]]:
        tables = [one.table for one in board_of_records(records, **asked).tables]
        return [(one.setting, one.budget, [row.name for row in one.rows]) for one in tables]

    usual = ("unsupervised", "", ["simcse", "promcse", "promptbert", "cls"])
    main = ("unsupervised", "1000steps", ["simcse", "cls"])
    supervised_rows, scale = ("supervised", "", ["simcse"]), ("none", "", ["other"])
    assert sorted(shown()[0][2]) == sorted(usual[2]) and shown()[-1] == main
    *of_that_budget, third, last = shown(main_budget="1000steps")
    assert of_that_budget == [main, supervised_rows]
    assert sorted(third[2]) == sorted(usual[2]) and last == scale
    assert shown(main_budget="100steps") == shown(), "the length of most runs has a name, too"
    with pytest.raises(UnknownName, match="unknown main budget '2h'.*1000steps"):
        shown(main_budget="2h")


def selected(dev_task: str | None, dev_score: float | None = 70.0) -> Training:
    return Training(
        steps=1000, best_step=875, dev_task=dev_task, dev_score=dev_score, sentences=64_000
    )


def test_the_rule_that_chose_checkpoints_is_said() -> None:
    records = [
        record("simcse", 1),
        record("promcse", 1, base=80, training=selected("none", None)),
        record("cls", None, base=40, setting="none"),
    ]
    (shown,) = board_of_records(records).tables
    assert (
        shown.selection
        == "Checkpoint: best on STS-B dev: 1 run; the last step, nothing selected: 1 run."
    )


def on(
    device: str | None, version: str | None = "0.1.0", method: str = "simcse", seed: int = 1
) -> RunRecord:
    basis = record(method, seed)
    return structs.replace(
        basis,
        cost=structs.replace(basis.cost, device=device),
        provenance=structs.replace(basis.provenance, bench_version=version, platform={}),
    )


@pytest.mark.parametrize(
    "other",
    [
        on("cuda: B", method="dclr"),
        on("cpu: A", "0.2.0", method="ct"),
    ],
)
def test_times_of_two_machines_or_versions_are_in_no_table(other: RunRecord) -> None:
    alike = [on("cpu: A"), on("cpu: A", method="promcse")]
    for records, is_shown in ((alike, True), ([*alike, other], False)):
        one = only(board_of_records(records))
        costs = [row.cost for row in one.table.rows if row.cost is not None]
        assert len(costs) == len(one.table.rows)
        assert all((cost["train_seconds"] is not None) is is_shown for cost in costs)
        assert all((cost["peak_memory_bytes"] is not None) is is_shown for cost in costs)
        assert all(cost["trainable_parameters"] is not None for cost in costs)
        assert one.cost_note == ("Time and memory: cpu: A, bench 0.1.0." if is_shown else "")


def test_times_are_left_out_if_seeds_of_a_row_took_unlike_long() -> None:
    """The same work took twice as long beside another process; that is no cost of the method."""
    alike = [on("cpu: A"), on("cpu: A", method="promcse")]
    slow = on("cpu: A", seed=2)
    assert slow.cost.train_seconds is not None
    slow = structs.replace(
        slow, cost=structs.replace(slow.cost, train_seconds=2 * slow.cost.train_seconds)
    )
    one = only(board_of_records([*alike, slow]))
    assert all(row.cost and row.cost["train_seconds"] is None for row in one.table.rows)
    assert all(row.cost and row.cost["trainable_parameters"] for row in one.table.rows)
    assert one.cost_note.startswith("Times are left out: of two seeds of one row, one took 2.0")


def test_tables_come_in_blocks_and_have_addresses_of_their_own() -> None:
    raw = tuple(structs.replace(score, protocol=RAW_PROTOCOL) for score in sts_scores(60))
    records = [
        record("simcse", 1),
        record("promcse", 1),
        record("simcse", 1, setting="supervised"),
        record("promcse", 2, scores=raw),
        record("pretrained", None, setting="none", backbone="/home/me/models/all-MiniLM-L6-v2"),
        record("pretrained", None, setting="none", backbone="/elsewhere/all-MiniLM-L6-v2/"),
        record("simcse", 1, backbone="bert-base-uncased", base=75),
    ]
    shown = board_of_records(records)
    assert [one.anchor for one in shown.tables] == [
        "unsupervised-builtin-sts-senteval-all-1",
        "unsupervised-builtin-sts-senteval-all-raw-1",
        "unsupervised-bert-base-uncased-sts-senteval-all-1",
        "supervised-builtin-sts-senteval-all-1",
        "untrained-all-minilm-l6-v2-sts-senteval-all-1",
    ]
    assert shown.tables[-1].table.backbone == "all-MiniLM-L6-v2"
    assert "/home/me" not in repr([one for one in shown.tables]) + shown.answer + repr(shown.made)
