"""Tables claim nothing about rows with missing, unusable, too few or equal predictions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_runs import printed_text, row_named, runs_in, unwritten_runs
from factories import record
from msgspec import structs
from predicted_runs import N, cosines, family, gold_of, sts_run

from bench.compare.judge import NO_PREDICTIONS
from bench.compare.statistics.table import FEW_SEEDS
from bench.compare.statistics.table import Tested as OneFamily
from bench.compare.tables import make_tables
from bench.compare.words.finding import table_finding, verdict_of
from bench.records import RunsFolder

SEEDS = (1, 2, 3, 4, 5)


def test_without_predictions_nothing_is_claimed() -> None:
    made = [
        record(name, seed, base=base) for name, base in (("a", 70), ("b", 75)) for seed in (1, 2)
    ]
    runs = unwritten_runs(*made)
    (plain,) = make_tables(runs, baseline="a")
    assert plain.tested is None and not any(one.may_be_best for one in plain.rows)
    cells = [cell for one in plain.rows for cell in one.cells]
    assert {cell.spread.covers for cell in cells if cell and cell.spread} == {"seeds"}
    against = [cell.against for cell in cells if cell and cell.against]
    assert all(one.verdict is None for one in against)
    assert table_finding(plain).details == (
        "Differences were not tested: no predictions of every task."
    )


GOLD = gold_of("STS14")
SPOILT: dict[str, tuple[Any, str]] = {
    "missing": (None, "no predictions"),
    "other gold": ({"prediction": np.zeros(N), "gold": GOLD[::-1]}, "differ in the items' gold"),
    "NaN": ({"prediction": np.full(N, np.nan), "gold": GOLD}, "NaN"),
    "other score": (
        {"prediction": cosines("x", 9, "STS14", 5.0), "gold": GOLD},
        "give another score",
    ),
}


@pytest.mark.parametrize(("content", "said"), SPOILT.values(), ids=SPOILT)
def test_unusable_predictions_cost_their_cell_its_statistics(
    tmp_path: Path, content: Any, said: str
) -> None:
    made = family(tmp_path, {"one": 0.2, "two": 1.0}, seeds=SEEDS, tasks=("STS13", "STS14"))
    path = RunsFolder(tmp_path).predictions_path(made[0].run_id, "STS14", "senteval-all/1")
    path.unlink()
    if content:
        np.savez(path, **content)
    whole, spoilt = (
        make_tables(runs_in(tmp_path, made), baseline="two", tasks=(task,))[0]
        for task in ("STS13", "STS14")
    )
    assert verdict_of(row_named(whole, "one")) == "better"
    cell = row_named(spoilt, "one").cells[0]
    assert cell is not None and cell.spread is not None and cell.spread.covers == "seeds"
    assert spoilt.tested is None and row_named(spoilt, "one").untested == NO_PREDICTIONS
    (note,) = [note for note in spoilt.notes if note.startswith("without statistics: one on STS14")]
    assert said in note


def test_one_untested_row_does_not_hide_the_others(tmp_path: Path) -> None:
    """Rows of fewer than three seeds and rows without predictions are not judged; the others are,
    and what is not random needs no seeds.
    """
    made = [
        *family(tmp_path, {"five": 0.4, "more": 0.4}, seeds=SEEDS),
        *family(tmp_path, {"two": 0.01}, seeds=(1, 2)),
        sts_run(tmp_path, "one", None, 0.1),
        record("old", 1, base=50),
    ]
    (table,) = make_tables(runs_in(tmp_path, made), baseline="five")
    assert {one.name: (verdict_of(one), one.untested) for one in table.rows} == {
        "two": (None, FEW_SEEDS),
        "one": ("better", ""),
        "more": ("inconclusive", ""),
        "five": (None, ""),
        "old": (None, NO_PREDICTIONS),
    }
    assert [one.name for one in table.rows if one.may_be_best] == ["one"]
    said = table_finding(table).text
    assert "one is the best of 3 tested rows" in said
    assert said.endswith(f"Not tested: two, two seeds; old, {NO_PREDICTIONS}.")
    lines = [line for line in printed_text((table,), 120).splitlines() if line.startswith("old ")]
    assert " not tested" in lines[0]
    few = [one for one in made if one.seed in (1, 2)]
    (alone,) = make_tables(runs_in(tmp_path, few), baseline="two")
    assert alone.tested is None
    assert {row_named(alone, name).untested for name in ("five", "more", "two")} == {FEW_SEEDS}


def test_a_baseline_of_two_seeds_gives_no_signs(tmp_path: Path) -> None:
    """The other rows are then compared with one another alone."""
    made = [
        *family(tmp_path, {"good": 0.1, "bad": 1.5}, seeds=SEEDS),
        *family(tmp_path, {"simcse": 0.4}, seeds=SEEDS[:2]),
    ]
    (table,) = make_tables(runs_in(tmp_path, made))
    assert table.baseline == "simcse" and [verdict_of(one) for one in table.rows] == [None] * 3
    assert [one.name for one in table.rows if one.may_be_best] == ["good"]
    assert row_named(table, "simcse").untested == FEW_SEEDS and table.tested is not None
    assert (table.tested.rows, table.tested.comparisons) == (2, 1)


def test_equal_predictions_are_not_compared(tmp_path: Path) -> None:
    """Two names of one method: not tested against each other, and marked alike."""
    made = family(tmp_path, {"simcse": 0.3, "weak": 1.5}, seeds=SEEDS)
    made = [
        structs.replace(
            one,
            scores=tuple(
                structs.replace(score, predictions_sha256=f"{one.run_id} {score.task}")
                for score in one.scores
            ),
        )
        for one in made
    ]
    for one in made[: len(SEEDS)]:
        again = structs.replace(one, method="twin", run_id=f"twin-{one.seed}")
        shutil.copytree(tmp_path / one.run_id, tmp_path / again.run_id)
        RunsFolder(tmp_path).write(again)
        made.append(again)
    (table,) = make_tables(runs_in(tmp_path, made))
    twin = row_named(table, "twin")
    assert twin.untested == "same predictions as SimCSE" and verdict_of(twin) is None
    assert twin.may_be_best and row_named(table, "simcse").may_be_best
    assert verdict_of(row_named(table, "weak")) == "worse" and table.tested == OneFamily(
        rows=2, comparisons=1, ci_level=0.95
    )
