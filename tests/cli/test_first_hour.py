"""Mistakes of the first hour: each is one clear line with what helps, and what helps is tried here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line, tree
from factories import record
from msgspec.structs import replace

from bench.cli import main
from bench.runs import RunsFolder

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


# --- recipe keys by other names ---


# --- corpora by the names that recipes use ---


def test_a_corpus_may_be_called_as_recipes_call_it(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "wiki1m_for_simcse.txt").write_text("one\ntwo\n")
    command = (
        *argv("run --method simcse --suite check --data"),
        tmp_path,
        *argv("--dry-run --json --corpus wiki1m"),
    )
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["corpus"] == "wiki1m_for_simcse.txt"


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nli").write_text("x")
    assert "unknown format" in error_line(
        bench("run", "--method", "simcse", "--suite", "check", "--corpus", "nli", "--dry-run")
    )


# --- runs ---


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs, one that failed, and one of a plugin."""
    runs = RunsFolder(tmp_path_factory.mktemp("many"))
    for seed in range(14):
        runs.write(record("simcse", seed))
    runs.write(record("promcse", 3, variant="layer-shared", backbone="roberta-large"))
    runs.write(
        record(
            "dclr",
            1,
            status="failed",
            error="the loss became nan at step 2; the 64 rows of its batch are in a file",
            scores=(),
        )
    )
    for name, package in (("mine", "plugins/my_method.py"), ("theirs", "their-package")):
        one = record(name, 1)
        made_by = {
            "package": package,
            "version": "" if package.endswith(".py") else "1.2",
            "sha256": "0" * 64,
        }
        runs.write(replace(one, provenance=replace(one.provenance, plugin=made_by)))
    return runs.path


@pytest.mark.slow
def test_a_run_of_a_plugin_says_which_and_the_hint_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    made = bench("run", "--method", "mine", "--plugin", "mine.py", "--suite", "check", "--json")
    assert made.exit_code == 0, made.stderr
    (run_id,) = RunsFolder(tmp_path / "runs").ids()
    Path("text.txt").write_text("a line\n")
    before = tree(tmp_path)
    for verb in (
        ("export", run_id, "--to", "new"),
        ("encode", run_id, "text.txt", "--to", "v.npy"),
    ):
        done = bench(*verb)
        assert (
            error_line(done)
            == f"error: {run_id} was made with the method 'mine' of the plugin file mine.py"
        ), verb
        assert hint(done) == "--plugin mine.py"
    assert tree(tmp_path) == before
    told = bench("verify", run_id, "--retrain-free")
    assert "--plugin mine.py" in told.output and "nothing differs" in told.output
    assert (
        bench("encode", run_id, "text.txt", "--to", "v.npy", "--plugin", "mine.py").exit_code == 0
    )


def test_a_locked_run_is_told_with_wait_where_the_verb_has_it(tiny: str, tmp_path: Path) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    (plan,) = [
        json.loads(line) for line in bench(*command, "--dry-run", "--json").stdout.splitlines()
    ]
    with RunsFolder(tmp_path).lock(plan["run_id"]):
        done = bench(*command)
    assert "is being worked on by process" in error_line(done) and hint(done).startswith("--wait ")
    assert bench(*command, "--wait").exit_code == 0
    import click

    from bench.cli.run_all import _can_wait

    for verb, has in (
        ("run", True),
        ("reproduce", False),
        ("demo", False),
    ):  # reproduce waits by itself
        command = main.get_command(click.Context(main), verb)
        assert command is not None
        with click.Context(command):
            assert _can_wait() is has, verb


# --- files, options and groups ---


# --- a screenful of a method, and whole words ---
