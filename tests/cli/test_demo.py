"""``bench demo``: its text follows from its numbers, its page has the same sentence, and the whole
of it as a real process.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import argv, bench, tree
from factories import record
from msgspec.structs import replace

from bench.cli.demo import show_demo
from bench.records import RunRecord, RunsFolder, Score

N = 400
GOLD = np.random.default_rng(0).integers(0, 6, N).astype(float)
STRAY = np.random.default_rng(1).normal(size=N)


def scored(store: RunsFolder, method: str, seed: int | None, noise: float) -> RunRecord:
    """Make a run with cosines that follow the ratings but for ``noise``; all methods share most of
    it.
    """
    from scipy.stats import spearmanr

    own = np.random.default_rng([seed or 0, len(method)]).normal(size=N)
    cosines, subset = GOLD + noise * (STRAY + 0.1 * own), np.full(N, "c2c_isim")
    found = {"prediction": cosines, "gold": GOLD, "subset": subset, "image": np.arange(N) // 2}
    value = 100 * float(spearmanr(cosines, GOLD)[0])
    cell = {"suite": "check", "task": "captions", "protocol": "check/2", "metric": "spearman"}
    setting = "none" if seed is None else "unsupervised"
    made = record(method, seed, setting=setting, scores=(Score(**cell, n=N, value=value),))
    made = replace(made, provenance=replace(made.provenance, data={"captions": "0" * 64}))
    store.write_predictions(made.run_id, "captions", "check/2", found, "check")
    store.write(made)
    return made


def runs(
    folder: Path, noise: float, seeds: tuple[int, ...] = (1, 2, 3)
) -> tuple[RunsFolder, list[RunRecord]]:
    """An untrained baseline with noise 3, and a trained method."""
    store = RunsFolder(folder / "runs")
    return store, [
        scored(store, "cls", None, 3.0),
        *(scored(store, "simcse", seed, noise) for seed in seeds),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "finding"),
    [
        (1.0, "SimCSE beats CLS on captions, by "),
        (9.0, "SimCSE is worse than CLS on captions, by "),
        (3.0, "SimCSE against CLS on captions is inconclusive"),
    ],
    ids=["it helps", "it harms", "it does nothing"],
)
def test_page_and_terminal_answer_with_one_sentence_that_follows_from_the_numbers(
    tmp_path: Path, noise: float, finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store, records = runs(tmp_path, noise)
    show_demo(records, store, tmp_path, browse=False)
    printed = " ".join(capsys.readouterr().out.split())
    page = " ".join((tmp_path / "index.html").read_text(encoding="utf-8").split())
    done = bench("compare", "--runs", store.path, "--baseline", "cls", "--format", "json")
    (table,) = json.loads(done.stdout)["tables"]
    (row,) = [row for row in table["rows"] if row["method"] == "simcse"]
    values = [record.scores[0].value for record in records]
    assert row["against"]["difference"] == pytest.approx(np.mean(values[1:]) - values[0], abs=0.011)
    assert table["baseline"] == "cls" and printed.startswith(finding) and finding in page


BLOCKED = """
import socket
def refuse(*_, **__):
    raise SystemExit("a connection was opened")
socket.socket.connect = refuse
socket.create_connection = refuse
"""
DEMO = [*argv("demo --steps 3 --seeds 1 --out"), "a demo"]
UNTRAINED = {
    "first-last-avg": 61.13,
    "last-avg": 59.95,
    "embedding-last-avg": 60.76,
    "cls": 54.12,
}


def demo_process(folder: Path, before: str = "") -> tuple[str, list[RunRecord]]:
    """Run the demo, one seed of three steps, in a process that starts cold after ``before``."""
    code = f"{BLOCKED}\n{before}\nfrom bench.cli import main; main()"
    environment = {**os.environ, "COLUMNS": "80", "BENCH_CACHE": str(folder / "cache")}
    how = {"capture_output": True, "text": True, "timeout": 600}
    command = [sys.executable, "-c", code, *DEMO]
    done = subprocess.run(command, cwd=folder, env=environment, **how)
    assert done.returncode == 0, done.stderr
    records, damaged = RunsFolder(folder / "a demo" / "runs").records()
    assert damaged == []
    assert [(one.method, one.seed) for one in records if one.seed] == [("simcse", 1)]
    assert {one.method for one in records} == {*UNTRAINED, "simcse"}
    return done.stdout, records


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_the_whole_of_it_gives_the_numbers_that_the_readme_of_the_data_names(
    tmp_path: Path,
) -> None:
    _, records = demo_process(tmp_path)
    values = {one.method: one.scores[0].value for one in records}
    assert {name: values[name] for name in UNTRAINED} == pytest.approx(UNTRAINED, abs=0.3)
    assert all(one.scores[0].protocol == "check/2" and one.scores[0].n == 4742 for one in records)


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_it_runs_as_a_process_again_and_what_it_says_to_do_next_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a part of the suite: a process that starts cold, then the same and the next steps here."""
    from bench.score.suites import check

    cut = f"""
from pathlib import Path
from bench.score.suites import check
check.CHECK_DATA = Path({str(check.CHECK_DATA)!r})
vars(check.CHECK_TASK)["n"] = {check.CHECK_TASK.n}
"""
    printed, records = demo_process(tmp_path, cut)
    assert {one.scores[0].n for one in records} == {check.CHECK_TASK.n}
    runs = tmp_path / "a demo" / "runs"
    for line in ("vs first-last avg [", "SimCSE ", str(runs.parent / "index.html")):
        assert line in printed

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was opened"))
    before, again = tree(runs), bench(*DEMO, COLUMNS="80")
    assert again.exit_code == 0 and again.stdout == printed and tree(runs) == before
    assert again.stderr.count("was done already, nothing repeated") == 5
    lines = printed.partition("next:")[2].splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.strip().startswith("bench ")]
    by_verb = {command[0]: command for command in commands}
    told = bench(*by_verb["export"])
    assert told.exit_code == 0, told.stderr
    assert (tmp_path / "model" / "modules.json").is_file()
    planned = bench(*by_verb["run"][:-1], tmp_path, "--dry-run")
    assert "STS" in planned.stderr + planned.stdout
    assert "no such option" not in planned.stderr.lower()
