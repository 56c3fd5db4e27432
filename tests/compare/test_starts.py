"""Trained rows that are not above their untrained start are not judged."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev

import pytest
from compared_runs import only, row_named, shown
from msgspec import structs
from predicted_runs import sts_run
from scipy import stats

from bench.base.errors import UnknownName
from bench.compare.statistics.table import FOR_SCALE, NOT_TRAINED, Row, Table
from bench.compare.tables import make_tables
from bench.compare.words.finding import table_finding
from bench.compare.words.notes import table_notes
from bench.records import Run

SEEDS = (1, 2, 3, 4, 5)


def trained(folder: Path, method: str, noise: float, **changes: object) -> list[Run]:
    made = [sts_run(folder, method, seed, noise, **changes) for seed in SEEDS]  # type: ignore[arg-type]
    return [Run(record, folder / record.run_id) for record in made]


def start(folder: Path, method: str, noise: float, seed: int = 1, **recipe: object) -> Run:
    """Return a run that ended before its first step."""
    folder = folder / "starts" / "-".join(map(str, [method, noise, *recipe.values()]))
    record = sts_run(folder, method, seed, noise, recipe={"budget": "0steps", **recipe})
    assert record.training is not None
    done = structs.replace(record.training, steps=0, best_step=0, dev_score=None)
    return Run(structs.replace(record, training=done), folder / record.run_id)


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Three trained methods; PromCSE is where CT's start is."""
    methods = {"simcse": 0.5, "promcse": 1.0, "ct": 0.5}
    return [run for method, noise in methods.items() for run in trained(tmp_path, method, noise)]


def test_a_row_at_its_start_is_not_trained(runs: list[Run], tmp_path: Path) -> None:
    starts = [start(tmp_path, "promcse", 1.0, seed=9), start(tmp_path, "ct", 1.0)]
    table = only(make_tables([*runs, *starts]))
    assert shown(table) == {
        "CT": "inconclusive",
        "SimCSE": None,
        "PromCSE": NOT_TRAINED,
        "PromCSE (step 0)": FOR_SCALE,
        "CT (step 0)": FOR_SCALE,
    }
    assert [row.stands for row in table.rows] == ["", "", NOT_TRAINED, FOR_SCALE, FOR_SCALE]
    assert table.tested is not None and table.tested.comparisons == 1
    found = table_finding(table).text
    assert found.startswith("CT against SimCSE on the STS average is inconclusive")
    assert "PromCSE is not trained: not above the untrained start." in found
    of = row_named(table, "ct").start
    assert of is not None and of.row == "CT (step 0)" and of.ci_low > 0


def test_a_start_changes_no_other_number(runs: list[Run], tmp_path: Path) -> None:
    def judged(table: Table) -> list[Row]:
        return [row for row in table.rows if row.stands == ""]

    before = only(make_tables(runs))
    after = only(make_tables([*runs, start(tmp_path, "diffcse", 1.2)]))
    for one, other in zip(judged(before), judged(after), strict=True):
        ours, theirs = one.cells[-1], other.cells[-1]
        assert ours is not None and theirs is not None
        assert (ours.against, ours.spread) == (theirs.against, theirs.spread)


def test_the_first_token_of_the_backbone_is_a_start_of_every_row(
    runs: list[Run], tmp_path: Path
) -> None:
    """Of two starts the one that is harder to be above counts."""
    vectors = sts_run(tmp_path, "cls", None, 1.0, setting="none")
    known = [*runs, Run(vectors, tmp_path / vectors.run_id)]
    table = only(make_tables(known))
    assert shown(table)["PromCSE"] == NOT_TRAINED and shown(table)["CT"] == "inconclusive"
    table = only(make_tables([*known, start(tmp_path, "promcse", 3.0)]))
    assert shown(table)["PromCSE"] == NOT_TRAINED, "it is above its own start, and gained nothing"
    of = row_named(table, "promcse").start
    assert of is not None and of.row == "CLS"
    (note,) = [note for note in table_notes(table) if note.startswith("untrained start not scored")]
    assert note.startswith("untrained start not scored, CLS taken for it: SimCSE and CT (bench run")


def test_the_interval_is_that_of_the_seeds_if_items_say_nothing(
    runs: list[Run], tmp_path: Path
) -> None:
    """Far above the start, items are what the interval is made of: seeds alone are shorter."""
    table = only(make_tables([*runs, start(tmp_path, "ct", 1.0)]))
    row, at_start = row_named(table, "ct"), table.rows[-1]
    values, base = row.cells[-1], at_start.cells[-1]
    assert values is not None and base is not None and row.start is not None
    apart = [value - base.mean for value in values.values]
    assert row.start.difference == pytest.approx(fmean(apart))
    half = stats.t.ppf(0.975, len(apart) - 1) * stdev(apart) / len(apart) ** 0.5
    assert row.start.ci_low < fmean(apart) - half


def test_the_start_of_the_baseline_is_no_baseline(tmp_path: Path) -> None:
    runs = [*trained(tmp_path, "ct", 0.5), start(tmp_path, "simcse", 0.4)]
    table = only(make_tables(runs))
    assert table.baseline is None and not table.has_verdicts
    with pytest.raises(UnknownName, match=r"nearest: SimCSE \(step 0\)"):
        make_tables(runs, baseline="simcse")
    by_its_name = only(make_tables(runs, baseline="SimCSE (step 0)"))
    assert [row.name for row in by_its_name.rows if row.is_baseline] == ["simcse"]


def test_the_baseline_is_said_to_be_at_its_start(runs: list[Run], tmp_path: Path) -> None:
    table = only(make_tables([*runs, start(tmp_path, "simcse", 0.5)]))
    assert shown(table)["SimCSE"] is None and shown(table)["CT"] == "inconclusive"
    assert "SimCSE itself is not above its untrained start." in table_finding(table).text


def test_if_nothing_has_learned_nothing_is_judged(runs: list[Run], tmp_path: Path) -> None:
    starts = [start(tmp_path, method, 0.1) for method in ("promcse", "ct")]
    table = only(make_tables([*runs, *starts]))
    assert table.tested is None
    assert table_finding(table).text.startswith(
        "CT and PromCSE are not trained: not above the untrained start."
    )


def test_a_missing_start_is_named_with_its_command(runs: list[Run], tmp_path: Path) -> None:
    table = only(make_tables([*runs, start(tmp_path, "ct", 1.0)]))
    (note,) = [note for note in table_notes(table) if note.startswith("untrained start not scored")]
    assert note == (
        "untrained start not scored: SimCSE and PromCSE (bench run simcse,promcse "
        "--budget 0steps --seeds 1 --backbone builtin --setting unsupervised --suite sts --corpus builtin)"
    )


def test_the_command_names_the_files_of_a_method_and_a_suite(
    runs: list[Run], tmp_path: Path
) -> None:
    made = []
    for run in runs:
        code = structs.replace(run.record.provenance.plugin, package="mine.py")
        suite = structs.replace(code, package="pairs.py")
        execution = structs.replace(run.record.provenance.execution, suites={"sts": suite})
        provenance = structs.replace(run.record.provenance, plugin=code, execution=execution)
        made.append(Run(structs.replace(run.record, provenance=provenance), run.folder))
    (note,) = [note for note in table_notes(only(make_tables(made))) if "start" in note]
    assert note.endswith("--corpus builtin --plugin mine.py --plugin pairs.py)")


def test_of_several_starts_it_is_the_one_of_its_values(runs: list[Run], tmp_path: Path) -> None:
    """A start with another prompt would be another row's."""
    rows = trained(tmp_path / "long", "ct", 0.5, recipe={"prompt_length": 16})
    starts = [
        start(tmp_path, "ct", 0.4, prompt_length=4),
        start(tmp_path, "ct", 1.0, prompt_length=16),
    ]
    others = [run for run in runs if run.record.method != "ct"]
    table = only(make_tables([*others, *rows, *starts]))
    of = row_named(table, "ct").start
    assert of is not None and "prompt_length 16" in of.row and of.ci_low > 0


def test_starts_stand_in_the_tables_of_every_length_and_text(
    runs: list[Run], tmp_path: Path
) -> None:
    longer = trained(tmp_path / "longer", "simcse", 0.4, recipe={"budget": "2000steps"})
    tables = make_tables([*runs, *longer, start(tmp_path, "simcse", 1.0)])
    assert [table.budget for table in tables] == ["", "2000steps"]
    assert all("SimCSE (step 0)" in shown(table) for table in tables)


def test_a_backbone_as_good_without_training_is_named(runs: list[Run], tmp_path: Path) -> None:
    def vectors(method: str, noise: float) -> Run:
        made = sts_run(tmp_path, method, None, noise, setting="none")
        return Run(made, tmp_path / made.run_id)

    said = "not trained, and not below SimCSE on the STS average: "
    table = only(make_tables([*runs, vectors("cls", 1.2), start(tmp_path, "ct", 0.2)]))
    assert not any(note.startswith(said) for note in table_notes(table))
    high = [vectors("first-last-avg", 0.2), vectors("last-avg", 0.3)]
    table = only(make_tables([*runs, vectors("cls", 1.2), *high]))
    (note,) = [note for note in table_notes(table) if note.startswith(said)]
    base = row_named(table, "simcse").cells[-1]
    names = {"first-last-avg": "first-last avg", "last-avg": "last avg"}
    told = []
    for method, name in names.items():
        cell = row_named(table, method).cells[-1]
        assert base is not None and cell is not None
        told.append(f"{name} (+{round(cell.mean, 2) - round(base.mean, 2):.2f})")
    assert note == f"{said}{told[0]} and {told[1]}"


def test_a_start_has_no_training_values(runs: list[Run], tmp_path: Path) -> None:
    table = only(make_tables([*runs, start(tmp_path, "ct", 1.0)]))
    values = {row.is_start: (row.values, row.trained_with) for row in table.rows}
    assert values[True] == ("", {}) and values[False][1]["steps"]
    assert not any(row.notes for row in table.rows if row.is_start)
