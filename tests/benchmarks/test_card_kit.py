"""benchmarks/card.py pack, runs and collect: what travels to a card, and what comes back."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from card_environment import VERSIONS, card_python, wheels_for
from factories import record, write_run
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.records import Checkout, RunsFolder
from bench.run.config import Plan

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = ("models", "measure", "lines", "pack", "runs", "collect")
PLAN = """\
[common]
suites = ["check"]
corpus = "builtin"
set = { max_steps = 4, batch_size = 8, eval_steps = 2 }

[[run]]
methods = ["simcse"]
seeds = [1, 2]
"""


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(FOLDER))
    yield SimpleNamespace(**{name: importlib.import_module(f"card_{name}") for name in MODULES})
    for name in MODULES:
        sys.modules.pop(f"card_{name}", None)


@pytest.fixture
def parcel(card: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kit with a plan; its code is a file of 1,000 bytes."""
    monkeypatch.setattr(card.pack, "write_code", lambda file: file.write_bytes(b"x" * 1000))
    monkeypatch.setattr(card.pack, "SENTENCES", 5)
    monkeypatch.setattr(card.pack, "commit_here", lambda: "a" * 40 + "+")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    return lambda **values: card.pack.Parcel(
        **{
            "folder": tmp_path / "kit",
            "limit_bytes": 10**6,
            "command_length": 2000,
            "plan": plan,
            "processes": 3,
        }
        | values
    )


def test_a_kit_has_its_parts_sizes_and_commands(card: Any, parcel: Any, tmp_path: Path) -> None:
    wheel, corpus, data = tmp_path / "a.whl", tmp_path / "text.txt", tmp_path / "sets"
    wheel.write_bytes(b"wheel")
    corpus.write_text("one\n")
    (data / "sts").mkdir(parents=True)
    (data / "sts" / "file").write_text("x")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace('"check"', '"sts"').replace('"builtin"', '"wiki1m"'))
    lines = card.pack.pack(parcel(wheels=(wheel,), corpus=corpus, data=data))
    kit = tmp_path / "kit"
    assert lines[0] == "code.tar.xz 1.0 kB"
    assert any(line.endswith(f"in {kit}") for line in lines)
    assert "--processes 3" in (kit / "commands.txt").read_text()
    (config,) = Plan.read(kit / "plan.toml").runs
    assert (config.corpus, config.data, config.on) == ("corpus/text.txt", "data", "here")
    assert (kit / "wheels" / "a.whl").is_file() and (kit / "corpus" / "text.txt").is_file()
    with tarfile.open(kit / "data.tar.xz") as archive:
        assert "data/sts/file" in archive.getnames()
    assert json.loads((kit / "kit.json").read_text())["dirty"] is True
    assert f"BENCH_COMMIT={'a' * 40}+" in (kit / "setup.sh").read_text()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"limit_bytes": 900}, r"the kit has .*; --limit-mb allows 900 B\. code\.tar\.xz 1\.0 kB"),
        ({"command_length": 100}, r"the command \w.* has \d+ characters; --command-length allows"),
        ({"wheels": (Path("none.whl"),)}, "none.whl: no such file"),
        ({"corpus": Path("none.txt")}, "none.txt: no such file"),
        ({"data": Path("none")}, "none: no such folder"),
    ],
)
def test_what_cannot_travel_leaves_no_folder(
    card: Any, parcel: Any, tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(BenchError, match=words):
        card.pack.pack(parcel(**values))
    assert not list(tmp_path.glob("*kit*")) and not list(tmp_path.glob(".card-*"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('suites = ["sts"]', "suite sts needs data"),
        ('corpus = "wiki1m"', "text wiki1m does not travel"),
        ('backbones = ["bert-base-uncased"]', "backbone bert-base-uncased does not travel"),
    ],
)
def test_a_plan_that_needs_more_is_refused(
    card: Any, parcel: Any, tmp_path: Path, line: str, words: str
) -> None:
    key = line.split(" ")[0]
    kept = [one for one in PLAN.splitlines() if not one.startswith(f"{key} ")]
    (tmp_path / "plan.toml").write_text("\n".join([kept[0], line, *kept[1:]]))
    with pytest.raises(BenchError, match=words):
        card.pack.pack(parcel())


def test_a_folder_with_files_is_left_alone(card: Any, parcel: Any, tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "mine").write_text("mine")
    with pytest.raises(BenchError, match="is not empty"):
        card.pack.pack(parcel())


def came_back(card: Any, folder: Path, *records: Any) -> Path:
    """Pack runs as a card does; returns the folder that comes back."""
    runs, out = folder / "there", folder / "out"
    out.mkdir(parents=True)
    for one in records:
        write_run(RunsFolder(runs), one)
        (runs / one.run_id / "checkpoint").mkdir(exist_ok=True)
        (runs / one.run_id / "checkpoint" / "model.safetensors").write_bytes(b"weights")
    (runs / ".jobs" / "local-1" / "logs").mkdir(parents=True)
    (runs / ".jobs" / "local-1" / "logs" / "a.log").write_text("said\n")
    about = {"commit": "b" * 40 + "+", "machine": "NVIDIA H100", "seconds": 1.0}
    (out / "card.json").write_text(json.dumps(about))
    card.runs.pack_runs(runs, out)
    return out


def without_git(one: Any) -> Any:
    return replace(one, provenance=replace(one.provenance, git=Checkout()))


def test_runs_come_back_with_their_commit_and_without_weights(card: Any, tmp_path: Path) -> None:
    one, two = without_git(record(seed=1)), record(seed=2)
    out, runs = came_back(card, tmp_path, one, two), tmp_path / "runs"
    lines = card.collect.collect(out, runs)
    assert lines[0] == "on NVIDIA H100" and lines[1].startswith("2 finished into")
    store = RunsFolder(runs)
    assert store.read(one.run_id).provenance.git == Checkout(commit="b" * 40, dirty=True)
    assert store.read(two.run_id).provenance.git == two.provenance.git
    assert not list(runs.rglob("model.safetensors"))
    there = {path.name for path in (tmp_path / "there" / one.run_id).rglob("*.npz")}
    assert there == {path.name for path in (runs / one.run_id).rglob("*.npz")}
    assert [path.read_text() for path in runs.glob(".jobs/*/logs/a.log")] == ["said\n"]


def test_a_finished_run_stays_and_a_failed_one_is_named(card: Any, tmp_path: Path) -> None:
    one, two = record(seed=1), replace(record(seed=2), status="failed", error="the loss is NaN")
    runs = tmp_path / "runs"
    RunsFolder(runs).write(replace(one, error="mine"))
    lines = card.collect.collect(came_back(card, tmp_path, one, two), runs)
    assert lines[1] == f"1 failed into {runs}; 1 finished run there already"
    assert f"{two.run_id}: the loss is NaN" in lines
    assert RunsFolder(runs).read(one.run_id).error == "mine"


def test_what_came_back_damaged_or_not_at_all(card: Any, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"has no runs\.tar\.xz"):
        card.collect.collect(tmp_path, tmp_path / "runs")
    out = came_back(card, tmp_path, record(seed=1))
    file = out / "runs.tar.xz"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(BenchError, match=r"runs\.tar\.xz is damaged"):
        card.collect.collect(out, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_runs_are_ended_at_the_deadline_and_packed(
    card: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake `bench run` ends with 130 once it is asked to stop."""
    script = tmp_path / "python"
    words = tmp_path / "words"
    script.write_text(
        f'#!/bin/sh\ntrap "exit 130" INT\necho "$@" > "{words}"\nwhile :; do sleep 0.02; done\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(card.runs.sys, "executable", str(script))
    monkeypatch.setattr(card.runs, "describe_card", lambda device: "a card")
    write_run(RunsFolder(tmp_path / "runs"), record(seed=1))
    out = tmp_path / "out"
    work = card.runs.Work(tmp_path / "plan.toml", out, "cpu", 3, 0.5, tmp_path / "runs")
    assert card.runs.do_runs(work) == 0
    assert "--on local:3" in words.read_text()
    about = json.loads((out / "card.json").read_text())
    assert about["exit_code"] == 130 and about["machine"] == "a card"
    lines = card.collect.collect(out, tmp_path / "taken")
    assert lines[1].startswith("1 finished into")


@pytest.mark.nightly
@pytest.mark.slow(seconds=120)
def test_the_kit_works_where_no_bench_is_installed(card: Any, tmp_path: Path) -> None:
    rehearse(card, tmp_path, sys.executable, ())


@pytest.mark.nightly
@pytest.mark.slow(seconds=400)
def test_the_kit_works_with_the_versions_of_the_machine_with_the_card(
    card: Any, tmp_path: Path
) -> None:
    """$BENCH_CARD_PYTHON: the python of an environment that is there already."""
    (tmp_path / "travels").mkdir()
    try:
        python = card_python(tmp_path)
        records = rehearse(card, tmp_path, python, wheels_for(python, tmp_path / "travels"))
    finally:
        shutil.rmtree(tmp_path / "venv", ignore_errors=True)
    wanted = dict(line.split("==") for line in VERSIONS.read_text().splitlines() if "==" in line)
    for one in records:
        for name in ("torch", "transformers", "numpy"):
            assert one.provenance.packages[name].partition("+")[0] == wanted[name]


def rehearse(card: Any, folder: Path, python: str, wheels: tuple[Path, ...]) -> list[Any]:
    """Pack a kit, give its commands on a CPU to that Python, and collect what came back.

    Returns the records.
    """
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    kit, runs = folder / "kit", folder / "runs"
    parcel = card.pack.Parcel(
        folder=kit,
        limit_bytes=64 * 2**20,
        command_length=2000,
        plan=plan,
        processes=2,
        wheels=wheels,
    )
    card.pack.pack(parcel)
    commands = card.pack.commands_of(parcel)
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (bin_folder / "python3").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "WORK": str(folder / "work"),
        "OUT": str(folder / "out"),
        "DEV": "cpu",
        "X": "--tiny --only right.dropout,memory.bert-base-64",
    }
    for name in ("measure", "runs"):
        done = subprocess.run(
            ["bash", "-c", commands[name]],
            cwd=kit,
            env=environment,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, (name, done.stdout, done.stderr)
    lines = card.collect.collect(folder / "out", runs)
    assert "2 finished" in lines[1]
    records = RunsFolder(runs).records()[0]
    assert {one.status for one in records} == {"finished"}
    assert all(one.provenance.git.commit and one.provenance.platform for one in records)
    return list(records)
