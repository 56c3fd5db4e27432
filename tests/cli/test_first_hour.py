"""Mistakes of the first hour: each is one clear line with what helps, and what helps is tried
here.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line, tree
from made_runs import made_runs

from bench.backbones.known_models import nearest_known
from bench.records import RunsFolder

MINE = """
from bench.method import TorchMethod

class Mine(TorchMethod):
    name = "mine"

    def embed(self, features):
        return self.hidden(features)[:, 0]
"""


def hint(done: Any) -> str:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("try: ")]
    return str(line.removeprefix("try: "))


def test_a_corpus_may_be_called_as_recipes_call_it(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "wiki1m_for_simcse.txt").write_text("one\ntwo\n")
    what = "run --method simcse --suite check --dry-run --json --corpus wiki1m --data"
    done = bench(*argv(what), tmp_path)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["corpus"] == "wiki1m_for_simcse.txt"


@pytest.mark.slow
def test_a_run_of_a_plugin_says_which_and_the_hint_works(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    run = argv("run --method mine --plugin mine.py --suite check --json")
    made = bench(*run, "--backbone", tiny)
    assert made.exit_code == 0, made.stderr
    (run_id,) = RunsFolder(tmp_path / "runs").ids()
    before = tree(tmp_path)
    export = ("export", run_id, "--to", "new")
    done = bench(*export)
    assert "'mine' of mine.py" in error_line(done)
    assert hint(done) == "--plugin mine.py"
    assert tree(tmp_path) == before
    assert "nothing differs" in bench("verify", run_id).output
    # found with its file, and refused for another reason: it has nothing that could travel
    assert "portable" in bench(*export, "--plugin", "mine.py").stderr


@pytest.mark.usefixtures("short_check")
def test_a_run_that_another_process_works_on_is_left_to_it(tiny: str, tmp_path: Path) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    plan = json.loads(bench(*command, "--dry-run", "--json").stdout)
    with RunsFolder(tmp_path).lock(plan["run_id"]):
        done = bench(*command)
    assert done.exit_code == 0 and done.stdout == "" and RunsFolder(tmp_path).ids() == []
    last = done.stderr.splitlines()[-1]
    assert f"is locked by {socket.gethostname()}:{os.getpid()}, which does it" in last
    assert bench(*command, "--wait").exit_code == 0 and len(RunsFolder(tmp_path).ids()) == 1


def test_data_among_the_models_is_for_the_option_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my pairs.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n")
    done = bench("evaluate", "builtin", "my pairs.tsv")
    assert error_line(done) == "error: my pairs.tsv is a file of data, and no model"
    assert "bench evaluate MODEL --suite 'my pairs.tsv'" in done.stderr


def test_the_folder_of_a_version_in_place_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``bench verify`` takes the folder of a version; the other verbs say where its runs are."""
    monkeypatch.chdir(tmp_path)
    made_runs(Path("boards/v5/runs"), {"simcse": 0.5}, seeds=(1,))
    found = "--runs boards/v5/runs"
    assert hint(bench("compare", "boards/v5")) == found
    assert hint(bench("compare", "--runs", "boards/v5")).endswith(f"another folder: {found}")
    assert hint(bench("publish", "--runs", "boards/v5")).endswith(f"another folder: {found}")
    assert bench("runs", "--runs", "boards/v5").stdout == f"no run in boards/v5; {found}\n"
    assert bench(*argv(f"runs {found}")).stdout.count("simcse") == 1


def test_names_nearly_right() -> None:
    task = bench("suites", "STS-B")
    assert hint(task) == "--suite sts:STS-B; bench suites sts shows it"
    one = bench(*argv("run simcse --suite check --corpus builtin --on slurm:gpu=1 --dry-run"))
    assert "slurm has no option gpu" in error_line(one) and "gpus=1" in hint(one)
    assert nearest_known("BERT-base") == "bert-base-uncased"
    assert "epochs" in error_line(
        bench(*argv("run simcse --suite check --budget 3weeks --dry-run"))
    )
