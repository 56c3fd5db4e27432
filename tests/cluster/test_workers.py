"""The contract of a worker: a command line, ids that do not depend on where they are planned, what a worker that cannot do it says."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, tree
from finished_runs import finished

from bench.base import devices


def lines_of(*arguments: Any) -> list[str]:
    done = bench(*arguments, "--commands")
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def only_of(line: str) -> list[str]:
    """The arguments behind ``bench`` of a printed command."""
    words = shlex.split(line)
    return words[words.index("bench") + 1 :]


@pytest.mark.slow
def test_every_line_works_by_sh_from_another_folder_with_an_empty_environment(
    plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths with blanks and quotes, a plugin file by a relative path; the runs are those of the local executor."""
    place = tmp_path / 'it\'s a "place" $(touch hit)'
    place.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(place)
    (place / "mine.py").write_text(
        "from methods.simcse import SimCSE\n\n\nclass Mine(SimCSE):\n    name = 'mine'\n"
    )
    own = [*plan, "--seeds", "1-2", "--plugin", "mine.py", "--precision", "fp32"]
    own[own.index("--method") + 1] = "mine"
    lines = lines_of(*own, "--runs", "runs here")
    assert len(lines) == 2
    (place / "mine.py").write_text("raise RuntimeError('edited after it was queued')\n")
    for line in lines:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=elsewhere,
            env={},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    assert not list(elsewhere.iterdir()) and not (place / "hit").exists()
    (place / "mine.py").write_text(
        "from methods.simcse import SimCSE\n\n\nclass Mine(SimCSE):\n    name = 'mine'\n"
    )
    assert bench(*own, "--device", "cpu", "--runs", "local").exit_code == 0
    assert finished(place / "runs here") == finished(place / "local")
    before = tree(place / "runs here")
    done = subprocess.run(
        ["/bin/sh", "-c", lines[0]],
        cwd=elsewhere,
        env={},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (
        done.returncode == 0
        and "was done already" in done.stderr
        and tree(place / "runs here") == before
    ), "idempotent"


def test_the_id_is_of_what_is_asked_and_not_of_the_machine_that_plans(
    plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ids(*arguments: str) -> list[str]:
        return [
            words[words.index("--only") + 1]
            for words in map(only_of, lines_of(*plan, "--runs", tmp_path / "runs", *arguments))
        ]

    here, with_gpus = ids(), ids("--gpus", "1")
    monkeypatch.setattr(
        devices, "choose_device", lambda asked: "cuda"
    )  # a machine with a GPU that computes in bf16
    monkeypatch.setattr(devices, "choose_precision", lambda asked, device: "bf16")
    assert (ids(), ids("--gpus", "1")) == (here, with_gpus) and here != with_gpus
    words = only_of(lines_of(*plan, "--gpus", "4", "--runs", tmp_path / "runs")[0])
    assert (
        words[words.index("--device") + 1] == "cuda"
        and words[words.index("--precision") + 1] == "bf16"
    )
    assert words[words.index("--executor") + 1 : words.index("--executor") + 4] == [
        "torchrun",
        "--gpus",
        "4",
    ]
    said = bench(*plan, "--commands", "--gpus", "1", "--runs", tmp_path / "runs").stderr
    assert "device cuda, precision bf16: of what is asked (--gpus 1), not of this machine" in said


def test_a_worker_whose_plan_lacks_the_id_names_what_differs(
    plan: tuple[str, ...], tmp_path: Path
) -> None:
    """Corpus, precision, recipe and plugin of another machine; nothing is written."""
    file = tmp_path / "mine.py"
    source = "from methods.simcse import SimCSE\n\n\nclass Mine(SimCSE):\n    name = 'mine'\n"
    file.write_text(source)
    corpus = Path(plan[plan.index("--corpus") + 1])
    other = tmp_path / corpus.name
    other.write_text(corpus.read_text() + "one more sentence\n")
    words = only_of(
        lines_of(
            *plan,
            "--runs",
            tmp_path / "runs",
            "--plugin",
            file,
            "--method",
            "mine",
            "--seeds",
            "1-2",
        )[1]
    )
    kept = next(one for one in words if one.endswith("mine.py"))
    assert kept != str(file) and Path(kept).read_text() == source

    def refused(*instead: str) -> str:
        changed = list(words)
        for old, new in zip(instead[::2], instead[1::2], strict=True):
            changed[changed.index(old)] = new
        return error_line(bench(*changed))

    assert "the corpus (then" in refused(str(corpus), str(other)) and "backbone" not in refused(
        str(corpus), str(other)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            devices, "choose_precision", lambda asked, device: asked
        )  # a machine that has it
        assert "the precision (then fp32, here bf16)" in refused("fp32", "bf16")
    assert "the recipe (then" in refused("batch_size=8", "batch_size=16")
    Path(kept).write_text(source + "# changed\n")
    assert "the source of the method's plugin (then" in refused()
    assert "these options mean no such run" in error_line(
        bench(*plan, "--runs", tmp_path / "runs", "--only", "simcse-nobody-s1-00000000")
    )
    assert not list((tmp_path / "runs").glob("*/run.json"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--executor", "slurm", "--device", "cuda:1"], "--device cuda:1 is about this machine"),
        (["--commands", "--device", "cpu"], "--device cpu is about this machine"),
        (["--commands", "--executor", "slurm"], "--commands with --executor slurm"),
        (["--cpus", "2"], "--cpus is for runs on other machines"),
        (["--memory", "1G"], "--memory is for runs on other machines"),
        (["--slurm", "time=1"], "--slurm is for runs on other machines"),
        (["--commands", "--slurm", "time=1"], "--slurm gives options to sbatch"),
        (["--commands", "--precision", "fp16"], "--precision fp16 needs a GPU"),
        (["--commands", "--only", "x"], "--only is what a worker is called with"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], said: str, plan: tuple[str, ...], tmp_path: Path
) -> None:
    assert said in error_line(bench(*plan, "--runs", tmp_path / "runs", *arguments))
    assert not (tmp_path / "runs").exists()


def test_a_look_at_a_plan_reads_every_record_once(
    plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 runs of a plan against 60 records of others: reads grow with their sum and not with their product."""
    from factories import record

    from bench.runs import RunsFolder, store

    runs = RunsFolder(tmp_path / "runs")
    for seed in range(60):
        runs.write(record("other", seed))
    read, listed = [], []
    of_record, of_ids = store.read_record, RunsFolder.ids
    monkeypatch.setattr(store, "read_record", lambda path: read.append(path) or of_record(path))
    monkeypatch.setattr(RunsFolder, "ids", lambda self: listed.append(self) or of_ids(self))
    done = bench(
        *plan,
        "--seeds",
        "1-40",
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--runs",
        runs.path,
        "--dry-run",
        "--json",
    )
    assert (
        done.exit_code == 0 and len([json.loads(line) for line in done.stdout.splitlines()]) == 40
    )
    assert len(read) == 60 and len(listed) == 1
