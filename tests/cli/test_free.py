"""``bench runs --free``: what runs take, and what may be removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import bench, error_line, tree
from factories import record

from bench.records import RunsFolder
from bench.records.sizes import measure_runs


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    """Two runs, one with 3,000 bytes of vectors and a checkpoint of 2,000."""
    store = RunsFolder(tmp_path / "runs")
    first, second = record("simcse", 1), record("simcse", 2)
    for one in (first, second):
        store.write(one)
    folder = store.folder(first.run_id)
    for name, size in (("vectors", 3000), ("checkpoint", 2000)):
        (folder / name).mkdir()
        (folder / name / "file").write_bytes(bytes(size))
    return store


def test_a_link_is_not_followed_and_its_run_is_left(store: RunsFolder, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1_000_000))
    largest = measure_runs(store)[0]
    link = store.folder(largest.run_id) / "vectors" / "link"
    link.symlink_to(tmp_path / "large")
    assert measure_runs(store)[0].vectors < 4000
    done = bench("runs", "--free", "--yes", "--runs", store.path)
    assert done.exit_code == 0 and largest.run_id in done.stderr and "a link" in done.stderr
    assert link.is_symlink() and (tmp_path / "large").exists()


def test_vectors_go_and_nothing_else(store: RunsFolder) -> None:
    before = tree(store.path)
    done = bench("runs", "--free", "--yes", "--runs", store.path)
    assert done.exit_code == 0 and "removed 3." in done.stdout
    after = tree(store.path)
    assert after == {name: facts for name, facts in before.items() if "/vectors/" not in name}
    assert "no stored vectors" in bench("runs", "--free", "--runs", store.path).stdout


def test_without_a_terminal_it_asks_nobody_and_removes_nothing(store: RunsFolder) -> None:
    before = tree(store.path)
    done = bench("runs", "--free", "--runs", store.path)
    assert "nobody can answer here, and nothing was removed" in error_line(done)
    assert tree(store.path) == before


def test_a_run_that_is_worked_on_keeps_its_vectors(store: RunsFolder) -> None:
    before = tree(store.path)
    with store.lock(measure_runs(store)[0].run_id):
        done = bench("runs", "--free", "--yes", "--runs", store.path)
    assert "a process works on it" in done.stderr
    assert tree(store.path) == before
