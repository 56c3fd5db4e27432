"""One run id in two folders: copies count once, two different runs are refused with both folders,
in the command and in Python.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bench as command
from commands import error_line
from msgspec.structs import replace
from predicted_runs import sts_run

import bench
from bench.base.errors import BenchError
from bench.records import RunsFolder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run, in one runs folder."""
    made = sts_run(tmp_path / "one", "simcse", 1, 0.2)
    sts_run(tmp_path / "one", "promcse", 1, 0.3)
    return tmp_path / "one" / made.run_id


def copy(run: Path, folder: str = "two") -> Path:
    return Path(shutil.copytree(run, run.parents[1] / folder / run.name))


def linked(run: Path) -> Path:
    place = run.parents[1] / "linked"
    place.symlink_to(run.parent, target_is_directory=True)
    return place / run.name


def without_predictions(run: Path) -> Path:
    other = copy(run)
    shutil.rmtree(other / "predictions")
    return other


SAME: dict[str, Callable[[Path], object]] = {
    "given twice": lambda run: run,
    "its id beside its folder": lambda run: run.name,
    "a copy": copy,
    "a linked folder": linked,
    "a copy without predictions": without_predictions,
}


@pytest.mark.parametrize("kind", SAME)
def test_copies_count_once(kind: str, run: Path) -> None:
    alone = command("compare", "--runs", run.parent, run, "promcse", "--format", "json")
    other = str(SAME[kind](run))
    for names in ((str(run), other), (other, str(run))):
        done = command("compare", "--runs", run.parent, *names, "promcse", "--format", "json")
        assert done.exit_code == 0, done.stderr
        assert done.stdout == alone.stdout
        tables = bench.compare_runs([*names, "promcse"], runs=run.parent)
        assert [row.runs for row in tables.tables[0].rows if row.method == "simcse"] == [
            (run.name,)
        ]


def change_score(other: Path) -> None:
    store = RunsFolder(other.parent)
    made = store.read(other.name)
    first = replace(made.scores[0], value=made.scores[0].value + 1)
    store.write(replace(made, scores=(first, *made.scores[1:])))


def test_two_runs_of_one_id_are_refused_with_both_folders(run: Path) -> None:
    other = copy(run)
    change_score(other)
    for names in itertools.permutations((run, other)):
        line = error_line(command("compare", *names))
        assert f"two different runs have the id {run.name}" in line
        assert str(run) in line
        assert str(other) in line
        calls: tuple[Callable[[], object], ...] = (
            lambda given=names: bench.compare_runs(given),
            lambda given=names: bench.load_runs([one.parent for one in given]),
            lambda given=names: bench.frame([one.parent for one in given]),
            lambda given=names: bench.compare_runs([bench.load_runs(one.parent) for one in given]),
        )
        for call in calls:
            with pytest.raises(BenchError, match="two different runs") as refused:
                call()
            assert str(run) in str(refused.value)
            assert str(other) in str(refused.value)


def test_several_folders_are_read_as_one(run: Path) -> None:
    copy(run)
    sts_run(run.parents[1] / "two", "mirror-bert", 1, 0.4)
    both = bench.load_runs([run.parent, run.parents[1] / "two"])
    assert sorted(one.record.method for one in both) == ["mirror-bert", "promcse", "simcse"]
    frame = bench.frame([run.parent, run.parents[1] / "two"])
    assert len(frame) == sum(len(one.scores) for one in both)


def test_an_unfinished_copy_is_left_out(run: Path) -> None:
    other = copy(run)
    store = RunsFolder(other.parent)
    store.write(replace(store.read(other.name), status="interrupted"))
    for names in itertools.permutations((run, other)):
        done = command("compare", *names)
        assert done.exit_code == 0, done.stderr
        assert f"left out, not finished: {run.name}" in done.stderr
