"""``bench speed``: what encoding takes is measured under a condition, and compared only where that is the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree
from factories import record
from msgspec.structs import replace

from bench.compare.costs import with_costs
from bench.compare.statistics.summary import summarise
from bench.runs import RunsFolder
from bench.runs.record import EncodingCost
from bench.show.tables.lines import cost_columns, costs

HERE = EncodingCost(
    sentences_per_second=1000.0,
    memory_bytes=5 * 10**8,
    device="cpu: A, 2 cores",
    threads=1,
    precision="fp32",
    text="a text",
    torch="2.13.0",
    bench_version="0.1.0",
)


@pytest.mark.slow
def test_a_run_is_measured_and_the_record_keeps_under_what_condition(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    run = shutil.copytree(the_run(finished[0]), tmp_path / "runs" / the_run(finished[0]).name)
    before = tree(run)
    done = bench("speed", "simcse", "--device", "cpu", "--runs", run.parent, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    kept = RunsFolder(run.parent).read(run.name).cost.encoding
    assert kept is not None and told == {
        "run": run.name,
        **json.loads(run.joinpath("run.json").read_text())["cost"]["encoding"],
    }
    assert (
        10 < kept.sentences_per_second < 1e6
        and 1e8 < kept.memory_bytes < 1e10
        and "1,000 sentences" in kept.text
    )
    assert {name for name, content in tree(run).items() if before.get(name) != content} <= {
        "run.json",
        ".lock",
    }
    shown = bench("show", run.name, "--provenance", "--runs", run.parent).stdout
    assert "encoding, measured" in shown and "corpus builtin" in shown


def test_a_run_that_cannot_encode_is_named_before_any_is_measured(
    finished: tuple[Path, Result], tmp_path: Path
) -> None:
    run = shutil.copytree(the_run(finished[0]), tmp_path / "runs" / the_run(finished[0]).name)
    other = shutil.copytree(run, run.with_name("simcse-other"))
    other.joinpath("run.json").write_text(
        run.joinpath("run.json").read_text().replace(run.name, other.name)
    )
    shutil.rmtree(other / "checkpoint")
    done = bench("speed", "simcse", "--runs", run.parent)
    assert done.exit_code == 2 and "simcse-other" in error_line(done), done.output
    assert RunsFolder(run.parent).read(run.name).cost.encoding is None
    nothing = bench("speed", "nosuch", "--runs", run.parent)
    assert nothing.exit_code == 2 and "unknown run 'nosuch'" in error_line(nothing)


def compared(*measured: EncodingCost | None) -> Any:
    """The one table of as many rows, method 0 best."""
    made = [record(f"method-{i}", 1, base=80 - 5 * i) for i in range(len(measured))]
    runs = [
        replace(one, cost=replace(one.cost, encoding=given))
        for one, given in zip(made, measured, strict=True)
    ]
    (table,) = with_costs(summarise(runs), {run.run_id: run for run in runs})
    return table


def test_rows_of_one_condition_stand_side_by_side() -> None:
    table = compared(HERE, replace(HERE, sentences_per_second=250.0))
    assert cost_columns(table) == ("params", "train", "memory", "encode")
    assert [costs(row.cost)["encode"] for row in table.rows] == ["1.0k/s", "250/s"]
    assert [note for note in table.notes if "encode" in note] == [
        f"encode is what bench speed measured: {HERE.condition}"
    ]


@pytest.mark.parametrize(
    "field, value",
    [
        ("device", "cuda"),
        ("threads", 2),
        ("text", "another"),
        ("torch", "2.11.0"),
        ("bench_version", "9"),
    ],
)
def test_a_row_of_another_condition_is_left_out_and_named(field: str, value: object) -> None:
    table = compared(HERE, replace(HERE, **{field: value}), HERE)
    assert [costs(row.cost)["encode"] for row in table.rows] == ["1.0k/s", "", "1.0k/s"]
    assert any(note.endswith("measured otherwise, and not shown: method-1") for note in table.notes)


def test_without_a_measurement_there_is_no_column() -> None:
    table = compared(None, None)
    assert "encode" not in cost_columns(table) and not any("encode" in note for note in table.notes)


def test_two_seeds_of_two_conditions_have_no_mean() -> None:
    runs = [record("simcse", seed) for seed in (1, 2)]
    runs = [
        replace(run, cost=replace(run.cost, encoding=replace(HERE, threads=i + 1)))
        for i, run in enumerate(runs)
    ]
    (table,) = with_costs(summarise(runs), {run.run_id: run for run in runs})
    assert table.rows[0].cost is not None and table.rows[0].cost.encode_sentences_per_second is None
