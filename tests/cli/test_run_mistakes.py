"""``bench run``: what it says when it cannot, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench, error_line, the_run, tree

from bench.runs import RunsFolder


def test_two_processes_on_one_run(command: tuple[Any, ...], tmp_path: Path) -> None:
    (plan,) = [
        json.loads(line)
        for line in bench(*command, "--runs", tmp_path, "--dry-run", "--json").stdout.splitlines()
    ]
    with RunsFolder(tmp_path).lock(plan["run_id"]):
        line = error_line(bench(*command, "--runs", tmp_path))
    assert f"{plan['run_id']} is locked by {socket.gethostname()}:{os.getpid()}" in line
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "simsce"), "unknown method 'simsce'; nearest: simcse"),
        (("--method", ","), "no method was named"),
        (("--backbone", "/nothing"), "--backbone /nothing: no such folder"),
        (("--backbone", "a b"), "unknown backbone 'a b'"),
        (
            ("--backbone", "nobody/nothing-of-that-name", "--offline"),
            "'nobody/nothing-of-that-name' is not on this machine",
        ),
        (("--suite", "chek"), "unknown suite 'chek'; nearest: check"),
        (("--suite", "chek:"), "unknown suite 'chek'; nearest: check"),
        (("--suite", "sts"), "STS12"),
        (("--variant", "energy"), "unknown variant 'energy' of simcse"),
        (
            ("--set", "temprature=1"),
            "unknown recipe key 'temprature' of simcse; nearest: temperature",
        ),
        (("--set", "batch_size"), "--set batch_size: expected KEY=VALUE"),
        (("--set", "batch_size=many"), "--set batch_size=many: expected a whole number"),
        (("--set", "=3"), "expected KEY=VALUE"),
        (("--set", "dropout=7"), "dropout"),
        (("--seeds", "a"), "--seeds a: expected numbers or ranges"),
        (("--seeds", "5-1"), "--seeds 5-1"),
        (("--seeds", ""), "--seeds"),
        (("--seeds", "1-99999999"), "--seeds 1-99999999"),
        (("--corpus", "/nothing.txt"), "no corpus at /nothing.txt"),
        (("--corpus", "/"), "/ is a folder"),
        (("--setting", "supervised"), "needs columns sent0, sent1"),
        (("--device", "tpu"), "--device tpu is not available"),
        (("--precision", "fp16"), "fp16 needs a GPU"),
        (("--plugin", "/nothing.py"), "--plugin /nothing.py: no such file"),
        (("--runs", "/proc/nothing/runs"), "cannot write"),
        (("--max-steps", "0"), "--max-steps"),
        (("--text", "shouted"), "shouted"),
        (("--no-such-option",), "--no-such-option"),
        (("--setting", "zero-shot"), "zero-shot"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(
    command: tuple[Any, ...], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    runs = tmp_path / "runs"
    done = bench(*command, "--runs", runs, *arguments)
    assert said in error_line(done)
    assert not runs.exists() and done.stdout == ""


@pytest.mark.parametrize("taken", ["simcse", "cls"])
def test_a_plugin_with_the_name_of_a_built_in_method_is_refused(
    command: tuple[Any, ...], tmp_path: Path, taken: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        f"from methods.simcse import SimCSE\n\n\nclass Mine(SimCSE):\n    name = '{taken}'\n"
    )
    for done in (
        bench("methods", "--check", file),
        bench(
            *command,
            "--runs",
            tmp_path / "runs",
            "--method",
            taken,
            "--plugin",
            file,
            "--set",
            "own=1",
        ),
    ):
        line = error_line(done)
        assert (
            f"'{taken}'" in line
            and str(file) in line
            and "sentence-bench" in line
            and done.exit_code == 2
        )
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "empty"),
        ("latin.txt", "café\n".encode("latin-1"), "UTF-8"),
        ("later.txt", b"good\n" * 9 + b"\xff\n", "line 10"),
        ("columns.csv", b"a,b,c\n1,2,3\n", "columns"),
        ("ragged.csv", b"sent0,sent1\na,b\nc\n", "line 3"),
        ("pairs.csv", b"sent0,sent1\na,b\n", "one column"),
        ("text.xz", b"not xz", "text.xz"),
        ("cut.txt.gz", b"\x1f\x8b\x08\x00", "cut.txt.gz"),
        ("file.docx", b"x", "unknown format"),
    ],
)
def test_a_corpus_that_cannot_be_read(
    command: tuple[Any, ...], tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    setting = "supervised" if name == "ragged.csv" else "unsupervised"
    done = bench(
        *command, "--runs", tmp_path / "runs", "--corpus", tmp_path / name, "--setting", setting
    )
    line = error_line(done)
    assert said in line and name in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("kind", ["file", "folder below a file"])
def test_runs_that_cannot_be_written(command: tuple[Any, ...], tmp_path: Path, kind: str) -> None:
    (tmp_path / "taken").write_text("a file")
    runs = tmp_path / "taken" if kind == "file" else tmp_path / "taken" / "runs"
    assert str(tmp_path / "taken") in error_line(bench(*command, "--runs", runs))
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_folder_that_is_no_model(command: tuple[Any, ...], tiny: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "it has no config.json" in error_line(
        bench(*command, "--backbone", tmp_path / "empty", "--runs", tmp_path / "runs")
    )
    broken = Path(shutil.copytree(tiny, tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:5000])
    done = bench(*command, "--backbone", broken, "--runs", tmp_path / "runs")
    assert f"{broken} cannot be loaded as an encoder" in error_line(
        done, done.exit_code
    ) and done.exit_code in (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("content", ["{", '{"schema": "bench.run/99"}'])
def test_a_damaged_record_is_made_anew(tiny: str, tmp_path: Path, content: str) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    assert bench(*command).exit_code == 0
    file = the_run(tmp_path) / "run.json"
    whole = json.loads(file.read_text())
    file.write_text(content)
    assert "run.json" in bench("runs", "--runs", tmp_path).stderr
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert json.loads(file.read_text())["scores"] == whole["scores"]


@pytest.mark.slow
def test_a_checkpoint_that_was_cut_is_a_failed_run_that_says_so(
    finished: tuple[Path, Result], command: tuple[Any, ...], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(finished[0], tmp_path / "runs"))
    file = the_run(copy) / "run.json"
    file.write_text(
        json.dumps({**json.loads(file.read_text()), "scores": [], "status": "interrupted"})
    )
    weights = the_run(copy) / "checkpoint" / "trained.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    done = bench(*command, "--runs", copy)
    assert str(weights) in error_line(done, 1) and "--fresh" in done.stderr.splitlines()[-1]
    assert bench(*command, "--runs", copy, "--fresh").exit_code == 0


def test_a_bad_number_of_seconds_in_the_environment(
    command: tuple[Any, ...], tmp_path: Path
) -> None:
    assert "BENCH_SAVE_SECONDS=often" in error_line(
        bench(*command, "--runs", tmp_path / "runs", BENCH_SAVE_SECONDS="often")
    )


@pytest.mark.slow
def test_a_stop_while_tokenising_leaves_no_cache_and_the_run_goes_on_later(
    command: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    from bench.run.executors import local

    @contextmanager
    def asked_at_once(**_: Any) -> Any:
        yield lambda: True

    with monkeypatch.context() as patch:
        patch.setattr(local, "stop_signals", asked_at_once)
        done = bench(*command, "--runs", tmp_path / "runs", BENCH_CACHE=str(tmp_path / "cache"))
    assert "stopped while tokenising" in error_line(done, 130)
    assert (
        RunsFolder(tmp_path / "runs").read(the_run(tmp_path / "runs").name).status == "interrupted"
    )
    assert not list((tmp_path / "cache" / "tokenised").glob("*.part")) and not list(
        (tmp_path / "cache").rglob("*.ids")
    )
    assert (
        bench(*command, "--runs", tmp_path / "runs", BENCH_CACHE=str(tmp_path / "cache")).exit_code
        == 0
    )
