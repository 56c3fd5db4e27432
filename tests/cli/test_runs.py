"""``bench runs``: the list, and everything about one run."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from commands import bench
from factories import family, record
from msgspec import structs

from bench.board.repeat import NOT_REPEATABLE
from bench.records import RunsFolder
from bench.records.record import Score


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunsFolder(tmp_path / "runs")
    for one in family():
        store.write(one)
    error = "boom \x1b[2J [bold]x"
    store.write(record("simcse", 45, status="failed", error=error, scores=(), training=None))
    return store.path


def test_the_list_is_newest_first_and_holds_whole_ids(runs: Path) -> None:
    done = bench("runs", "--runs", runs, COLUMNS="80")
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80
    ids = [line.split()[0] for line in done.stdout.splitlines() if "-builtin-" in line]
    records = RunsFolder(runs).records()[0]
    newest = sorted(records, key=lambda r: (r.provenance.created, r.run_id))[::-1]
    assert ids == [one.run_id for one in newest]
    assert "\x1b" not in done.stdout
    listed = bench("runs", "--runs", runs, "--json", "--status", "failed").stdout.splitlines()
    assert [json.loads(line)["error"] for line in listed] == ["boom \x1b[2J [bold]x"]
    failed = bench("runs", "simcse-builtin-s45", "--runs", runs).stdout
    assert r"error: boom \x1b[2J [bold]x" in failed and "\x1b" not in failed


def test_runs_that_differ_in_a_value_or_a_setting_are_told_apart(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path / "runs")
    for temperature in (0.05, 0.1):
        for seed in (1, 2):
            store.write(record("simcse", seed, recipe={"temperature": temperature}))
    store.write(record("promcse", 1))
    store.write(record("promcse", 1, setting="supervised"))
    lines = bench("runs", "--runs", store.path, COLUMNS="120").stdout.splitlines()
    values = sorted(line.split()[2] for line in lines if "-builtin-" in line)
    assert values == [
        "supervised",
        *["temperature=0.05"] * 2,
        *["temperature=0.1"] * 2,
        "unsupervised",
    ]
    (tmp_path / "one").mkdir()
    RunsFolder(tmp_path / "one").write(record("simcse", 1))
    assert "values" not in bench("runs", "--runs", tmp_path / "one").stdout


def test_a_file_of_ones_own_has_its_name_unless_two_share_it(tmp_path: Path) -> None:
    first = Score(
        suite="own",
        task="tickets",
        protocol="own-pairs-984f129a/1",
        metric="spearman",
        value=14.29,
        n=6,
    )
    other = structs.replace(first, task="mails", protocol="own-pairs-0123abcd/1", value=50.0)
    changed = structs.replace(first, protocol="own-pairs-4567cdef/1", value=20.0)
    for seed, scores in ((1, (first, other)), (2, (first, changed))):
        RunsFolder(tmp_path).write(record("simcse", seed, scores=scores))
    shown = bench("runs", "--runs", tmp_path, COLUMNS="200").stdout
    assert "tickets 14.29, mails 50.00" in shown
    assert "own-pairs-984f129a/1 14.29, own-pairs-4567cdef/1 20.00" in shown


def test_one_run_on_one_screen_and_the_rest_by_option(runs: Path) -> None:
    one = record("promcse", 43, base=72.5)
    folder = runs / one.run_id
    curve = '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0, "dev_score": 70.0}\n{"step": 3, "lo'
    (folder / "curve.jsonl").write_text(curve)

    def shown(*options: str) -> str:
        done = bench("runs", one.run_id[:-2], *options, "--runs", runs, COLUMNS="80")
        assert done.exit_code == 0, done.stderr
        return done.stdout

    first = shown()
    lines = first.splitlines()
    long = [line for line in lines if len(line) > 80 and str(folder) not in line]
    assert len(lines) <= 40 and not long and NOT_REPEATABLE in first
    (folder / "plan.toml").write_text("")
    assert f"bench run --plan {folder}/plan.toml" in shown()
    (folder / "plan.toml").unlink()
    assert "step 875: STS-B dev 74.50" in first and "2.00 to 1.00" in first
    assert str(one.provenance.command) not in first  # a record may have anything as its command
    for part in ("MSRvid", "SimCSE README", "torch 2.13.0"):
        assert part in shown("--all") and part not in first
    assert bench("runs", folder, COLUMNS="80").stdout.splitlines()[:5] == lines[:5]
    last = bench("runs", folder).stdout.splitlines()[-1]
    whole = shlex.split(last.removeprefix("everything: bench "))
    assert "MSRvid" in bench(*whole).stdout
    assert json.loads(shown("--json")) == json.loads((folder / "run.json").read_text())


def test_a_run_that_is_worked_on_is_running_and_not_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := record(status="interrupted", scores=()))

    def status() -> str:
        return str(json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["status"])

    with store.lock(one.run_id):
        assert status() == "running"
    assert status() == "interrupted"


def test_the_newest_log_of_a_run_is_named(tmp_path: Path) -> None:
    for seconds, batch in enumerate(("slurm-20260101-000000-aa", "local-20260202-000000-aa")):
        file = tmp_path / ".jobs" / batch / "logs" / "simcse-builtin-s1.log"
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (seconds, seconds))
    assert "local-" in bench("runs", "simcse-builtin-s1", "--runs", tmp_path).stdout
