"""``bench run``: what it says when it cannot, and that nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, the_run

from bench.runs import RunsFolder


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
    assert not list((tmp_path / "cache" / "tokenised").glob("*.part"))
    assert not list((tmp_path / "cache").rglob("*.ids"))
    assert (
        bench(*command, "--runs", tmp_path / "runs", BENCH_CACHE=str(tmp_path / "cache")).exit_code
        == 0
    )
