"""``tools/hide_paths.py``: records of an earlier bench, and a version, without the folders of the
machines that made them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from commands import bench
from made_runs import made_run
from msgspec.structs import replace
from published import Publish

from bench.records import RunsFolder

TOOL = Path(__file__).parents[3] / "tools" / "hide_paths.py"
FOLDER = "/home/ada/my-sets"


def with_paths(runs: Path) -> str:
    """A run as an earlier bench recorded it."""
    made = made_run(runs, "ct", 1, suites=("check",))
    origin = replace(
        made.provenance,
        command=f"bench run --data {FOLDER} --set teacher=/t/simcse-builtin-s1-01234567",
        backbone=replace(made.provenance.backbone, name=f"{FOLDER}/mini"),
    )
    RunsFolder(runs).write(replace(made, backbone=f"{FOLDER}/mini", provenance=origin))
    return made.run_id


def hide(folder: Path) -> None:
    subprocess.run([sys.executable, TOOL, folder], check=True, capture_output=True)


def test_runs_can_be_published_then_and_their_numbers_are_the_same(
    quick: Publish, runs: Path
) -> None:
    run_id = with_paths(runs)
    before = RunsFolder(runs).read(run_id)
    assert len(quick(preview=True).board.left_out) == 1
    hide(runs)
    after = RunsFolder(runs).read(run_id)
    assert after.provenance.command == (
        "bench run --data my-sets --set teacher=simcse-builtin-s1-01234567"
    )
    assert after.backbone == after.provenance.backbone.name == "mini"
    assert (after.scores, after.cost, after.fingerprint) == (
        before.scores,
        before.cost,
        before.fingerprint,
    )
    assert quick(preview=True).board.left_out == ()


def test_a_version_keeps_its_numbers_and_its_manifest_agrees(
    quick: Publish, runs: Path, out: Path, monkeypatch
) -> None:
    run_id = with_paths(runs)
    monkeypatch.setattr("bench.board.publish.gather.refuse_published_paths", lambda run: None)
    quick()
    monkeypatch.undo()
    version = out / "v1"
    tables = (version / "tables.json").read_bytes()
    page = version / "runs" / run_id / "index.html"
    assert FOLDER in page.read_text(encoding="utf-8")
    hide(version)
    assert not any(FOLDER.encode() in file.read_bytes() for file in version.rglob("*.*"))
    assert (version / "tables.json").read_bytes() == tables
    assert bench("publish", "--check", "--out", out).exit_code == 0
    record = json.loads((version / "runs" / run_id / "run.json").read_bytes())
    assert record["backbone"] == "mini"
