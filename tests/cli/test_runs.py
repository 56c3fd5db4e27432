"""``bench runs``: the list, and everything about one run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from commands import bench, error_line
from factories import family, record

from bench.runs import RunsFolder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunsFolder(tmp_path / "runs")
    for one in family():
        store.write(one)
    return store.path


def test_the_list_is_newest_first_and_holds_whole_ids(runs: Path) -> None:
    store = RunsFolder(runs)
    store.write(record("simcse", 45, status="failed", error="out of memory", scores=()))
    done = bench("runs", "--runs", runs, COLUMNS="80")
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80
    ids = [line.split()[0] for line in done.stdout.splitlines() if "-builtin-" in line]
    newest = sorted(store.records()[0], key=lambda r: (r.provenance.created, r.run_id))[::-1]
    assert ids == [one.run_id for one in newest]
    assert "sts 7" in done.stdout and "out of memory" in " ".join(done.stdout.split())
    listed = bench("runs", "--runs", runs, "--json", "--status", "failed").stdout.splitlines()
    assert [json.loads(line)["error"] for line in listed] == ["out of memory"]


def test_one_run_on_one_screen_and_the_rest_by_option(runs: Path) -> None:
    one = record("promcse", 43, base=72.5)
    folder = runs / one.run_id
    (folder / "curve.jsonl").write_text(
        '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0, "dev_score": 70.0}\n{"step": 3, "lo'
    )

    def shown(*options: str) -> str:
        done = bench("runs", one.run_id[:-2], *options, "--runs", runs, COLUMNS="80")
        assert done.exit_code == 0, done.stderr
        return done.stdout

    first = shown()
    lines = first.splitlines()
    assert len(lines) <= 40 and not [x for x in lines if len(x) > 80 and str(folder) not in x]
    for part in (one.run_id, "promcse, unsupervised, builtin, seed 43", "learning_rate", "13m32s"):
        assert part in first
    assert "step 875: STS-B dev 74.50" in first and "2.0000 █▁ 1.0000" in first
    command = shlex.join(shlex.split(str(one.provenance.command)))
    assert command in re.sub(r" \\\n +", " ", first)
    options = re.findall(r"^  (--\w+)  ", first, re.M)
    assert options == ["--scores", "--recipe", "--provenance", "--all"], "no overlap was recorded"
    texts = {option: shown(option) for option in options}
    for option, part in (
        ("--scores", "MSRvid"),
        ("--recipe", "SimCSE README"),
        ("--provenance", "torch 2.13.0"),
        ("--provenance", "curve.jsonl"),
    ):
        assert [other for other in options if part in texts[other]] == [option, "--all"]
        assert part not in first
    assert "not recorded: overlap" in shown("--overlap")
    assert bench("runs", folder, COLUMNS="80").stdout.splitlines()[:5] == lines[:5]
    assert json.loads(shown("--json")) == json.loads((folder / "run.json").read_text())


def test_a_failed_and_hostile_run(runs: Path) -> None:
    error = "boom \x1b[2J [bold]x"
    bad = record("simcse", 5, status="failed", error=error, scores=(), training=None)
    RunsFolder(runs).write(bad)
    shown = bench("runs", bad.run_id, "--runs", runs).stdout + bench("runs", "--runs", runs).stdout
    assert r"error: boom \x1b[2J [bold]x" in shown and "\x1b" not in shown


def test_mistakes(runs: Path, tmp_path: Path) -> None:
    assert "unknown run 'simsce'" in error_line(bench("runs", "simsce", "--runs", runs))
    assert "unknown status 'done'" in error_line(bench("runs", "--status", "done", "--runs", runs))
    assert "--scores needs a run" in error_line(bench("runs", "--scores", "--runs", runs))
    assert "no run in" in bench("runs", "--runs", tmp_path / "none").stdout
