"""A machine that several people use: modes, launchers, full outputs, folders that are
gone, plugins that leave.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.base.errors import BenchError
from bench.base.files import share_files
from bench.base.launched import NAMES
from bench.records.store import RunsFolder


def run_bench(
    folder: Path, *words: str, output: str = os.devnull
) -> subprocess.CompletedProcess[str]:
    with open(output, "w") as out:
        return subprocess.run(
            [sys.executable, "-m", "bench", *words],
            cwd=folder,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )


def test_files_get_the_mode_that_umask_gives(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("private", "below/private"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o600)
    (tmp_path / "script").touch()
    (tmp_path / "script").chmod(0o700)
    before = os.umask(0o027)
    try:
        share_files(tmp_path)
    finally:
        os.umask(before)
    modes = {
        file.name: file.stat().st_mode & 0o777 for file in tmp_path.rglob("*") if file.is_file()
    }
    assert modes == {"private": 0o640, "script": 0o700}


@pytest.mark.slow
def test_a_process_that_waits_for_others_says_so_and_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from datetime import timedelta

    from bench.method import ranks

    for name, value in zip(NAMES, ("0", "2", "0", "127.0.0.1", "29761"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ranks, "PATIENCE", 0.1)
    monkeypatch.setattr(ranks, "MEETING", timedelta(seconds=0.3))
    with pytest.raises(BenchError, match="waited in vain for 1 other process at 127.0.0.1:29761"):
        ranks.meet_ranks("cpu")
    assert "waits for 1 other process at 127.0.0.1:29761" in capfd.readouterr().err


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_output_ends_each_verb_with_one_line(tiny: str, tmp_path: Path) -> None:
    from made_runs import made_runs

    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    commands = [
        "compare --runs runs",
        "runs --runs runs",
        "runs simcse-builtin-s1 --runs runs --json",
        "verify --runs runs",
        "methods simcse",
        "suites sts",
        "doctor",
        "papers promcse",
        "--help",
        "publish --preview --runs runs --out boards",
        "submit simcse --by Ada --runs runs --to box",
        f"evaluate {tiny} --set pooling=cls --suite check --runs scored",
    ]
    for command in commands:
        done = run_bench(tmp_path, *command.split(), output="/dev/full")
        assert done.returncode == 2 and "Traceback" not in done.stderr, (command, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert lines == ["error: No space left on device"], command
    assert (tmp_path / "boards" / "preview").is_dir()
    assert len(RunsFolder(tmp_path / "scored").ids()) == 1, "what was done is kept"


SAID = """
import json, sys
from click.testing import CliRunner
from bench.cli import main
said = []
for command in json.loads(sys.stdin.read()):
    done = CliRunner().invoke(main, command)
    crashed = done.exception is not None and not isinstance(done.exception, SystemExit)
    said.append([done.exit_code, done.stdout, done.stderr, crashed])
print(json.dumps(said))
"""


def without_rights(commands: list[list[str]], **environment: str) -> list[tuple[int, str, str]]:
    """Run ``bench`` as somebody with the rights of the files and no others, and return its output.

    Root has to give up the capability to bypass file permissions.
    """
    drop = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all"]
        if os.geteuid() == 0
        else []
    )
    if drop and shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv that gives up root's rights")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [*drop, sys.executable, "-c", SAID],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200", "PYTHONPATH": root} | environment,
    )
    if drop and "setpriv:" in done.stderr:
        pytest.skip(f"root that may not give up its rights: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [command for command, one in zip(commands, said, strict=True) if one[3]] == [], (
        "tracebacks"
    )
    return [(code, out, err) for code, out, err, _ in said]


HOMES = ("missing/below/a-file", "a-file", "read-only")


@pytest.mark.nightly
@pytest.mark.parametrize("home", HOMES)
def test_a_home_that_cannot_be_written_costs_a_line_at_most(home: str, tmp_path: Path) -> None:
    from made_runs import made_runs

    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    (tmp_path / "a-file").touch()
    (tmp_path / "missing").mkdir(mode=0o555)
    (tmp_path / "read-only").mkdir(mode=0o555)
    runs = f"--runs {tmp_path}/runs"
    commands = [
        f"compare {runs}",
        f"runs {runs}",
        f"verify {runs}",
        "doctor",
        "methods",
        "data",
        f"publish --preview {runs} --out {tmp_path}/boards",
        f"submit simcse --by Ada {runs} --to {tmp_path}/box",
        f"run cls --backbone builtin --suite check --runs {tmp_path}/made",
    ]
    words = [command.split() for command in commands]
    said = without_rights(words, HOME=str(tmp_path / home), BENCH_CACHE="")
    for command, (code, _, err) in zip(commands, said, strict=True):
        assert code == 0, (command, err)
    train = "run simcse --backbone builtin --corpus builtin --suite check --set max_steps=1"
    ((code, _, err),) = without_rights(
        [[*train.split(), "--runs", f"{tmp_path}/trained"]],
        HOME=str(tmp_path / home),
        BENCH_CACHE="",
    )
    assert code == 2 and "error: the tokenised corpus cannot be written to" in err
    assert "BENCH_CACHE" in err


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.base.cache import default_cache
    from bench.base.paths import hide_paths

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("BENCH_CACHE")
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(BenchError, match="HOME is not set"):
        default_cache()
    assert hide_paths("no path") == "no path"


def test_an_unreadable_checkpoint_is_not_trained_again(tmp_path: Path) -> None:
    from msgspec.structs import replace
    from scored_run import finished_run

    from bench.records.damage import UNREADABLE, checkpoint_problem

    store = RunsFolder(tmp_path)
    run = finished_run(store)
    file = store.folder(run.run_id) / "checkpoint" / "method.json"
    file.unlink()
    file.symlink_to("/etc/hostname")
    problem = checkpoint_problem(replace(run), store.folder(run.run_id))
    assert problem is not None and UNREADABLE in problem and "link" in problem
