"""A disk that fails at any write, a clock that jumps backwards, a user who may not: one line, nothing lost, the same command goes on.

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
from kills import contents
from made_runs import made_runs
from models import sentences


EVERY = bool(os.environ.get("BENCH_TEST_LONG"))
Command = Callable[[Path], Result]


def some(count: int, few: int) -> list[int]:
    """Numbers below ``count``: all of them in the long form, else so many, spread over the whole."""
    return (
        list(range(count)) if EVERY else sorted({i * (count - 1) // (few - 1) for i in range(few)})
    )


@pytest.fixture
def run(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Training of 6 steps with two dev scores and a state after each, and scoring, in a folder's runs."""
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
    """Do it with a disk that fails at one write after the other; afterwards with a good one. (Writes that failed, calls that said so.)"""
    fresh()
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch, folder)
        assert do(folder).exit_code == 0
    whole, failed, told = contents(folder), 0, 0
    for at in some(len(disk.writes), few):
        fresh()
        with pytest.MonkeyPatch.context() as patch:
            bad = FailingDisk(patch, folder, at, once=once)
            done = do(folder)
        failed += bad.failed > 0
        if done.exit_code:
            told += 1
            line = error_line(done, done.exit_code)
            assert done.exit_code in (1, 2) and any(
                word in line for word in ("No space", "Input/output error")
            ), (disk.writes[at], line)
        else:  # it was a courtesy: what is there is whole
            assert contents(folder) == whole, disk.writes[at]
        again = do(folder)
        assert again.exit_code == 0, (disk.writes[at], again.output)
        assert contents(folder) == whole, disk.writes[at]
    return failed, told


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize("once", [False, True], ids=["full from there on", "once"])
def test_a_run_on_a_disk_that_fails_at_any_write(run: Command, tmp_path: Path, once: bool) -> None:
    folder = tmp_path / "here"
    failed, told = write_every_time(
        run, folder, lambda: shutil.rmtree(folder, ignore_errors=True), few=5, once=once
    )
    assert failed >= 4 and told >= 2


# --- clocks ---


# --- rights ---

SAID = """
import json, sys
from click.testing import CliRunner
from bench.cli import main
said = []
for command in json.loads(sys.stdin.read()):
    done = CliRunner().invoke(main, command)
    said.append([done.exit_code, done.stdout, done.stderr, done.exception is not None and not isinstance(done.exception, SystemExit)])
print(json.dumps(said))
"""


def without_rights(commands: list[list[str]], **environment: str) -> list[tuple[int, str, str]]:
    """What ``bench`` says to somebody who has the rights of files and no others: root without the capability to pass over them."""
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


@pytest.mark.slow
def test_a_user_without_rights_is_told_in_a_line_and_changes_nothing(
    tiny: str, tmp_path: Path
) -> None:
    made = made_runs(
        tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",)
    )
    (tmp_path / "text.txt").write_text("\n".join(sentences(24, seed=6)) + "\n")
    runs, boards, closed, cache = (
        tmp_path / name for name in ("runs", "boards", "closed", "cache")
    )
    assert (
        bench(
            "publish", "--runs", runs, "--out", boards, "--statistics", "no", "--format", "md"
        ).exit_code
        == 0
    )
    shutil.copytree(runs, closed)
    cache.mkdir()
    unreadable = [
        closed / made[0].run_id / "run.json",
        *(closed / made[1].run_id / "predictions").iterdir(),
        tmp_path / "unreadable.txt",
    ]
    (tmp_path / "unreadable.txt").write_text("a\nb\n")
    for path in unreadable:
        path.chmod(0)
    before = contents(boards), contents(runs)
    for folder in (
        *(path for top in (runs, boards) for path in [top, *top.rglob("*")]),
        closed,
        cache,
    ):
        if folder.is_dir():
            folder.chmod(0o555)
    (tmp_path / "mine").mkdir()
    train = [
        *argv("run --method simcse --backbone"),
        tiny,
        *argv("--suite check --device cpu --precision fp32 --set batch_size=8"),
    ]
    commands = {
        "run": (
            [*train, "--corpus", str(tmp_path / "text.txt"), "--runs", str(runs)],
            2,
            "cannot write",
        ),
        "corpus": (
            [
                *train,
                "--corpus",
                str(tmp_path / "unreadable.txt"),
                "--runs",
                str(tmp_path / "mine" / "runs"),
            ],
            2,
            "unreadable.txt",
        ),
        "runs": (["runs", "--runs", str(closed)], 0, ""),
        "compare": (
            ["compare", "--runs", str(closed)],
            0,
            f"{made[0].run_id}/run.json: Permission denied",
        ),
        "show": (["show", made[0].run_id, "--runs", str(closed)], 2, "Permission denied"),
        "verify": (["verify", "--runs", str(closed)], 1, ""),
        "publish": (
            ["publish", "--runs", str(runs), "--out", str(boards), "--statistics", "no"],
            2,
            f"cannot write in {boards}: Permission denied",
        ),
        "board": (
            [
                "publish",
                "--runs",
                str(closed),
                "--out",
                str(tmp_path / "mine" / "boards"),
                *argv("--statistics no --format md"),
            ],
            0,
            "",
        ),
        "check": (["publish", "--check", "--out", str(boards)], 0, ""),
        "submit": (
            ["submit", made[2].run_id, "--runs", str(runs), "--to", str(closed / "sent.zip")],
            2,
            "cannot write",
        ),
        "export": (
            [
                "export",
                made[2].run_id,
                "--runs",
                str(runs),
                "--format",
                "mteb-results",
                "--to",
                str(closed / "out"),
            ],
            2,
            "",
        ),
        "matches": (
            [
                "data",
                "overlap",
                str(tmp_path / "text.txt"),
                "--suite",
                "check",
                "--matches",
                str(closed / "m.jsonl"),
            ],
            2,
            "cannot write",
        ),
    }
    try:
        said = without_rights(
            [command for command, _, _ in commands.values()],
            BENCH_CACHE=str(cache),
            BENCH_SAVE_SECONDS="0",
        )
        after = contents(boards), contents(runs)
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            path.chmod(0o755)
    for (name, (_, code, words)), (found, out, err) in zip(commands.items(), said, strict=True):
        assert found == code, (name, out, err)
        assert words in err and err.count("error: ") == (code == 2), (name, err)
    assert after == before
    assert made[0].run_id in "".join(
        (tmp_path / "mine" / "boards" / "v1" / "README.md").read_text().partition("eft out")[1:]
    )
