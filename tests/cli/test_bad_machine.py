"""A disk that fails at any write, a clock that jumps backwards, a user who may not: one line,
nothing lost, the same command goes on.

``BENCH_TEST_LONG``: every single write in the place of some.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from commands import argv, bench, error_line
from failing_disk import FailingDisk
from folder_contents import contents
from made_runs import made_runs
from models import sentences

EVERY = bool(os.environ.get("BENCH_TEST_LONG"))
Command = Callable[[Path], Result]


def some(count: int, few: int) -> list[int]:
    """Numbers below ``count``: all of them in the long form, else so many, spread over the
    whole.
    """
    return (
        list(range(count)) if EVERY else sorted({i * (count - 1) // (few - 1) for i in range(few)})
    )


@pytest.fixture
def run(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Training of 6 steps with two dev scores and a state after each, and scoring, in a folder's
    runs.
    """
    (tmp_path / "text.txt").write_text("\n".join(sentences(24, seed=6)) + "\n")
    monkeypatch.setenv("BENCH_SAVE_SECONDS", "0")
    command = [
        *argv("run --method simcse --backbone"),
        tiny,
        "--suite",
        "check",
        "--corpus",
        tmp_path / "text.txt",
        *argv("--device cpu --precision fp32 --set batch_size=4 --set eval_steps=3"),
    ]
    return lambda folder: bench(*command, "--runs", folder / "runs")


def write_every_time(
    do: Command, folder: Path, fresh: Callable[[], None], few: int, *, once: bool
) -> tuple[int, int]:
    """Do it with a disk that fails at one write after the other; afterwards with a good one.
    (Writes that failed, calls that said so.)
    """
    fresh()
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch, folder)
        assert do(folder).exit_code == 0
    whole = contents(folder)
    failed = 0
    told = 0
    for at in some(len(disk.writes), few):
        fresh()
        with pytest.MonkeyPatch.context() as patch:
            bad = FailingDisk(patch, folder, at, once=once)
            done = do(folder)
        failed += bad.failed > 0
        if done.exit_code:
            told += 1
            line = error_line(done, done.exit_code)
            assert done.exit_code in (1, 2)
            assert any(word in line for word in ("No space", "Input/output error")), (
                disk.writes[at],
                line,
            )
        else:  # it was a courtesy: what is there is whole
            assert contents(folder) == whole, disk.writes[at]
        again = do(folder)
        assert again.exit_code == 0, (disk.writes[at], again.output)
        assert contents(folder) == whole, disk.writes[at]
    return failed, told


@pytest.mark.nightly
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize("once", [False, True], ids=["full from there on", "once"])
def test_a_run_on_a_disk_that_fails_at_any_write(run: Command, tmp_path: Path, once: bool) -> None:
    folder = tmp_path / "here"
    failed, told = write_every_time(
        run, folder, lambda: shutil.rmtree(folder, ignore_errors=True), few=5, once=once
    )
    assert failed >= 4 and told >= 2


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


@pytest.mark.nightly
def test_a_user_without_rights_is_told_in_a_line_and_changes_nothing(
    tiny: str, tmp_path: Path
) -> None:
    methods = {"simcse": 0.8, "promcse": 0.45}
    made = made_runs(tmp_path / "runs", methods, seeds=(1, 2), suites=("check",))
    (tmp_path / "text.txt").write_text("\n".join(sentences(24, seed=6)) + "\n")
    names = ("runs", "boards", "closed", "cache", "mine")
    runs, boards, closed, cache, mine = (tmp_path / name for name in names)
    publish = argv("publish")
    assert bench(*publish, "--runs", runs, "--out", boards).exit_code == 0
    shutil.copytree(runs, closed)
    cache.mkdir()
    mine.mkdir()
    secret = tmp_path / "unreadable.txt"
    secret.write_text("a\nb\n")
    predictions = (closed / made[1].run_id / "predictions").iterdir()
    for path in (closed / made[0].run_id / "run.json", *predictions, secret):
        path.chmod(0)
    before = contents(boards), contents(runs)
    every = [path for top in (runs, boards) for path in (top, *top.rglob("*"))]
    for folder in (*every, closed, cache):
        if folder.is_dir():
            folder.chmod(0o555)
    train = f"run --method simcse --backbone {tiny} --suite check --device cpu --corpus "
    commands = {  # command -> exit code, and the words of the line
        f"{train} {tmp_path}/text.txt --runs {runs}": (2, "cannot write"),
        f"{train} {secret} --runs {mine}/runs": (2, "unreadable.txt"),
        f"runs --runs {closed}": (0, ""),
        f"compare --runs {closed}": (0, f"{made[0].run_id}/run.json: Permission denied"),
        f"verify --runs {closed}": (1, ""),
        f"publish --runs {runs} --out {boards}": (0, ""),  # nothing is new
        f"publish --runs {runs} --out {boards} --note New.": (2, f"{boards}: "),
        f"publish --runs {closed} --out {mine}/boards": (0, ""),
        f"publish --check --out {boards}": (0, ""),
        f"export {made[2].run_id} --runs {runs} --to {closed}/out": (2, ""),
    }
    try:
        said = without_rights(
            [argv(command) for command in commands], BENCH_CACHE=str(cache), BENCH_SAVE_SECONDS="0"
        )
        after = contents(boards), contents(runs)
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            path.chmod(0o755)
    for (command, (code, words)), (found, out, err) in zip(commands.items(), said, strict=True):
        assert found == code, (command, out, err)
        assert words in err and err.count("error: ") == (code == 2), (command, err)
    assert after == before


def test_native_windows_is_one_line_in_a_terminal_and_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import bench as library

    monkeypatch.setattr("bench.base.terminal.sys.platform", "win32")
    done = bench("doctor")
    assert error_line(done) == "error: bench runs on Linux and macOS, not on native Windows"
    assert "(WSL 2)" in done.stderr
    with pytest.raises(library.BenchError, match="not on native Windows"):
        _ = library.train
    assert bench("--help").exit_code == 0
