"""``bench verify`` on the command line: its output, its exit code, and which runs it means."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bench
from msgspec import structs
from scored_run import finished_run

from bench.base.findings import AGREES, Finding
from bench.board.publish.version_files import SCHEMA
from bench.board.verify.findings import RunReport
from bench.board.verify.tables import check_tables
from bench.board.verify.verified import report_grids
from bench.compare.rule import RULE
from bench.records import RunsFolder
from bench.records.arrays import read_arrays


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def test_scores_that_cannot_be_computed_again_are_listed_with_the_reason(store: RunsFolder) -> None:
    good, other = finished_run(store, 1), finished_run(store, 2)
    (score,) = other.scores
    away = [structs.replace(score, suite="theirs", task=task) for task in ("A", "B", "Avg.")]
    for task in ("A", "B"):
        store.write_predictions(
            other.run_id,
            task,
            score.protocol,
            read_arrays(store.predictions_path(other.run_id, "CHECK", "check/1")),
            "theirs",
        )
    data = structs.replace(other.provenance, data={"A": "d" * 64, "B": "d" * 64})
    store.write(structs.replace(other, scores=tuple(away), provenance=data))
    done = bench("verify", "--runs", store.path)
    said = " ".join(done.output.split())
    assert (
        done.exit_code == 1
        and f"{good.run_id} agrees" in said
        and f"{other.run_id} not checked" in said
    )
    for task in ("A", "B"):
        assert f"score theirs {task} the suite theirs is not known; pass its file" in said
    assert "2 scores could not be computed again" in said and "nothing differs" not in said
    assert bench("verify", good.run_id, "--runs", store.path).exit_code == 0


def published(store: RunsFolder) -> Path:
    """A version as it is published: runs somewhere below, no checkpoints, a manifest."""
    version = store.path / "v1"
    for seed in (1, 2):
        run = finished_run(RunsFolder(version / "records"), seed)
        shutil.rmtree(version / "records" / run.run_id / "checkpoint")
    (version / "index.html").write_text("<!doctype html>")
    files = {
        path.relative_to(version).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in version.rglob("*")
        if path.is_file()
    }
    (version / "MANIFEST.json").write_text(json.dumps({"files": files}))
    return version


def link(page: Path) -> None:
    page.rename(page.parents[1] / "index.html")
    page.symlink_to(page.parents[1] / "index.html")


def name_outside(page: Path) -> None:
    path = page.with_name("MANIFEST.json")
    path.write_text(path.read_text().replace('"index.html"', '"../index.html"'))


ALTERED: dict[str, Callable[[Path], object]] = {
    "a link": link,
    "leads out": name_outside,
}


@pytest.mark.parametrize(("said", "change"), ALTERED.items(), ids=ALTERED)
def test_a_published_version_that_was_altered(
    store: RunsFolder, said: str, change: Callable[[Path], object]
) -> None:
    version = published(store)
    change(version / "index.html")
    done = bench("verify", version)
    assert done.exit_code == 1 and said in " ".join(done.output.split())


@pytest.mark.parametrize("content", ["", '{"files": {"a": 1}}'])
def test_a_manifest_that_is_none(store: RunsFolder, content: str) -> None:
    version = published(store)
    (version / "MANIFEST.json").write_text(content)
    done = bench("verify", version)
    assert (
        done.exit_code == 1
        and "cannot be read" in done.output
        and "2 runs, 2 scores" in done.output
    )


TABLE = {"suite": "sts", "rows": []}


@pytest.mark.parametrize(
    "change",
    [
        {"tables": [{}]},
        {"tables": [{"table": {"rows": [{"runs": [["a"], {}]}]}}]},
        {"tables": [{"anchor": "a", "table": TABLE}, {"anchor": "a", "table": TABLE}]},
        {"runs": [{"run_id": "../../secret", "method": "cls", "submitted_by": None}]},
        {"answer": "[" * 100_000},
        {"judged": {"rule": RULE, "baseline": "\x1b[2J"}},
    ],
)
def test_tables_that_are_none(store: RunsFolder, change: dict[str, object]) -> None:
    """Each is a difference in a report, whatever was written into the file."""
    version = published(store)
    (version / "records").rename(version / "runs")
    ids = [path.name for path in sorted((version / "runs").iterdir())]
    content = {
        "schema": SCHEMA,
        "date": "2026-11-28",
        "title": "",
        "note": None,
        "answer": "",
        "judged": {"rule": RULE},
        "tables": [],
        "runs": [{"run_id": name, "method": "simcse", "submitted_by": None} for name in ids],
        "left_out": [],
    }
    (version / "tables.json").write_text(json.dumps(content | change))
    report = check_tables(version)
    assert report.differences
    assert bench("verify", version).exit_code == 1


@pytest.mark.parametrize(
    ("status", "result"), [("interrupted", "not finished"), ("finished", "agrees")]
)
def test_a_run_without_scores_agrees_only_if_it_is_finished(status: str, result: str) -> None:
    found = [Finding("data", "corpus", AGREES)]
    (table, *_) = report_grids([RunReport("simcse-builtin-s1", found, status=status)])
    assert table.rows[0][1].text == result
