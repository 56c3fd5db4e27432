"""bench search on a made method with a dev score that is a known function of its learning rate,
with its peak at 2e-4.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import bench, error_line, tree
from models import sentences

from bench.base.errors import BenchError
from bench.method import Recipe, Value
from bench.method.config import RunConfig
from bench.records.searches import Trial, best_trial, read_search
from bench.run.search.space import Dimension, read_dimension
from bench.run.search.study import search_options

PEAK = 2e-4
MADE = '''"""Made: the dev score falls ten points for each power of ten from the best rate.

It is 80 at best, and grows over the steps.
"""
import math
import time
from bench.methods.simcse import SimCSE

class {cls}(SimCSE):
    name = "{name}"
    settings = ("unsupervised",)
    def dev_score(self, score_of):
        rate = self.recipe.learning_rate
        if rate > {fails}:
            raise ValueError("made to fail")
        time.sleep({sleep})
        self.dev_steps = getattr(self, "dev_steps", 0) + 1
        return {top} - 10 * abs(math.log10(rate / 2e-4)) - 1 / self.dev_steps
'''
SPACE = (
    "[[space]]\n[space.values]\n"
    'learning_rate = {{ low = 1e-5, high = 4e-3, scale = "log", '
    'source = "made: the peak is inside" }}\n'
)


def plugin(folder: Path, name: str = "made", *, space: str = SPACE, **facts: Any) -> Path:
    facts = {"top": 80, "fails": 1, "sleep": 0} | facts
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(MADE.format(cls=name.title(), name=name, **facts))
    (folder / "recipes").mkdir(exist_ok=True)
    (folder / "recipes" / f"{name}.toml").write_text(space.format())
    return file


@pytest.fixture
def ask(tiny: str, tmp_path: Path) -> Any:
    """Arguments of a small search of the made method; and the folder that it is kept in."""
    corpus = tmp_path / "text.txt"
    corpus.write_text("\n".join(sentences(40, seed=8)) + "\n")
    file = plugin(tmp_path / "own")

    def arguments(
        *more: str | Path, method: str = "made", files: tuple[Path, ...] = (file,)
    ) -> list[str]:
        plugins = [part for one in files for part in ("--plugin", str(one))]
        words = f"search --method {method} --backbone {tiny} --corpus {corpus} --suite check"
        words += " --device cpu --precision fp32 --budget 2steps --set batch_size=4"
        words += f" --set eval_steps=1 --runs {tmp_path / 'runs'} --name one"
        return [*words.split(), *plugins, *map(str, more)]

    return arguments


def trials(tmp_path: Path, method: str = "made", name: str = "one") -> list[Trial]:
    search = read_search(tmp_path / "runs" / name / "search.json")
    return [] if search is None else list(search.trials[method])


def started(command: list[str], save_seconds: str, log: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "bench", *command]
    environment = os.environ | {"BENCH_SAVE_SECONDS": save_seconds}
    with log.open("a") as stream:
        return subprocess.Popen(words, env=environment, stdout=stream, stderr=stream)


def results(tmp_path: Path, name: str = "one") -> list[tuple[Any, ...]]:
    return [(t.number, t.values, t.state, t.dev, t.steps) for t in trials(tmp_path, name=name)]


def printed(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


def off_peak(trial: Trial) -> float:
    return abs(math.log10(trial.values["learning_rate"] / PEAK))


@pytest.mark.nightly
def test_a_known_best_rate_is_found_and_becomes_a_recipe(ask: Any, tmp_path: Path) -> None:
    found = printed(bench(*ask("--trials", "8", "--json")))
    own = trials(tmp_path)
    assert [(t.number, t.state) for t in own] == [(n, "finished") for n in range(9)]
    for trial in own[1:]:  # each score belongs to its rate
        assert trial.score == pytest.approx(79.5 - 10 * off_peak(trial))
    best = best_trial(own)
    assert best is not None and off_peak(best) == min(map(off_peak, own[1:])) < 0.5
    counted = (found["trials"], found["finished"], found["failed"], found["trial"])
    assert counted == (8, 8, 0, best.number)
    source = f"search one, 8 trials, captions dev {best.score:.2f}"
    rate = {"value": best.values["learning_rate"], "source": source}
    assert tomllib.loads(Path(found["recipe"]).read_text())["values"]["learning_rate"] == rate


@pytest.mark.nightly
def test_the_same_command_repeats_nothing_and_more_trials_continue(
    ask: Any, tmp_path: Path
) -> None:
    printed(bench(*ask("--trials", "3", "--json")))
    before = tree(tmp_path / "runs" / "one" / "trials")
    printed(bench(*ask("--trials", "3", "--json")))
    assert tree(tmp_path / "runs" / "one" / "trials") == before
    assert printed(bench(*ask("--trials", "5", "--json")))["trials"] == 5
    assert before.items() <= tree(tmp_path / "runs" / "one" / "trials").items()
    printed(bench(*ask("--trials", "5", "--json", "--name", "whole")))
    assert results(tmp_path) == results(tmp_path, "whole")
    printed(bench(*ask("--trials", "2", "--json", "--name", "seeds", "--seeds", "902")))
    assert trials(tmp_path, name="seeds")[1].values != trials(tmp_path)[1].values


@pytest.mark.nightly
def test_trials_that_fail_are_counted_and_a_recipe_that_is_best_stays(
    ask: Any, tmp_path: Path
) -> None:
    file = plugin(tmp_path / "own", fails=1e-4)
    done = bench(*ask("--trials", "6", files=(file,)))
    failed = [t for t in trials(tmp_path)[1:] if t.state == "failed"]
    assert failed and f"{len(failed)} failed" in done.stdout
    assert all(t.values["learning_rate"] > 1e-4 and "made to fail" in str(t.error) for t in failed)
    narrow = plugin(tmp_path / "own", "narrow", space=SPACE.replace("1e-5", "3e-3"))
    more = ("--trials", "2", "--json", "--name", "two")
    found = printed(bench(*ask(*more, method="narrow", files=(narrow,))))
    assert found["trial"] == 0  # the recipe's own rate, 3e-5, is nearer to the peak
    rate = tomllib.loads(Path(found["recipe"]).read_text())["values"]["learning_rate"]
    assert rate["value"] == 3e-5 and rate["source"].startswith("search two, 2 trials")


@pytest.mark.nightly
def test_killed_twice_it_ends_with_the_trials_of_an_undisturbed_search(
    ask: Any, tmp_path: Path
) -> None:
    slow = plugin(tmp_path / "own", sleep=0.15)
    command = ask("--trials", "3", "--plain", files=(slow,))
    for number in (1, 2):
        process = started(command, "0", tmp_path / "log.txt")
        until = time.monotonic() + 60
        while time.monotonic() < until and len(trials(tmp_path)) <= number:
            time.sleep(0.01)
        time.sleep(0.1)
        process.kill()
        assert process.wait() == -signal.SIGKILL and trials(tmp_path)[-1].state == "running"
    assert bench(*command).exit_code == 0
    assert bench(*command, "--name", "whole").exit_code == 0
    assert results(tmp_path) == results(tmp_path, "whole")


@pytest.mark.nightly
def test_two_processes_share_a_search_and_no_trial_is_run_twice(ask: Any, tmp_path: Path) -> None:
    slow = plugin(tmp_path / "own", sleep=0.1)
    command = ask("--trials", "5", "--plain", files=(slow,))
    logs = [tmp_path / "log1.txt", tmp_path / "log2.txt"]
    processes = [started(command, "60", log) for log in logs]
    for process in processes:
        assert process.wait(120) == 0, [log.read_text() for log in logs]
    begun = [set(re.findall(r"^(\S.*?) \(\d+ of \d+\)$", log.read_text(), re.M)) for log in logs]
    assert begun[0] and begun[1] and not begun[0] & begun[1], "both worked, on different trials"
    every = {"made recipe as it is", *(f"made trial {i}" for i in range(1, 6))}
    assert begun[0] | begun[1] == every
    assert [(t.number, t.state) for t in trials(tmp_path)] == [(n, "finished") for n in range(6)]


@pytest.mark.nightly
def test_another_search_under_the_same_name_is_refused(
    ask: Any, tmp_path: Path, snapshot: Any
) -> None:
    first, second = tmp_path / "own" / "made.py", plugin(tmp_path / "own", "second")
    printed(bench(*ask("--trials", "1", "--json")))
    before = tree(tmp_path / "runs")
    commands = [ask("--trials", "1", method="made,second", files=(first, second))]
    for words in (
        "--budget 3steps --seeds 905",
        "--sampler grid",
        "--space learning_rate=log:1e-5..1e-2",
    ):
        commands.append(ask("--trials", "1", *words.split()))
    lines = [error_line(bench(*command)) for command in commands]
    first.write_text(first.read_text() + "VERSION = 2\n")
    lines.append(error_line(bench(*ask("--trials", "1"))))
    assert [line.replace(str(tmp_path), "FOLDER") for line in lines] == snapshot
    assert tree(tmp_path / "runs") == before, "nothing was changed"


@pytest.mark.slow
def test_a_search_names_its_plugin_and_runs_and_a_damaged_file_is_one_line(
    ask: Any, tmp_path: Path
) -> None:
    done = bench(*ask("--trials", "1"))
    following = shlex.split(done.stdout.splitlines()[-1].removeprefix("next: bench "))
    assert {"--plugin", "--runs"} <= set(following), "the method's file, and the folder of runs"
    file = tmp_path / "runs" / "one" / "search.json"
    half = file.read_bytes()[:-20]
    file.write_bytes(half)
    said = error_line(bench(*ask("--trials", "2")))
    assert f"{file} is damaged" in said
    assert file.read_bytes() == half


def test_a_lock_that_cannot_be_opened_is_one_line(ask: Any, tmp_path: Path) -> None:
    """As in a folder that may not be written, which root may."""
    (tmp_path / "runs" / "one" / ".lock").mkdir(parents=True)
    line = error_line(bench(*ask("--trials", "1")))
    assert f"cannot write {tmp_path / 'runs' / 'one'}: Is a directory" in line


DRAWN = {
    "rate": [0.000125, 6.82e-05, 7.45e-05, 0.000126, 0.000859],
    "dropout": [0.132, 0.113, 0.115, 0.133, 0.195],
    "length": [11, 9, 9, 11, 16],
    "queue": [292, 203, 213, 294, 935],
    "margin": [0.2, 0.2, 0.3, 0.2, 0.3],
}


def test_values_are_drawn_as_published_searches_drew_them() -> None:
    """With Optuna's random sampler, which these numbers come from."""
    axes = {
        "rate": Dimension(source="made", low=1e-5, high=1e-3, scale="log"),
        "dropout": Dimension(source="made", low=0.05, high=0.2),
        "length": Dimension(source="made", low=4, high=16),
        "queue": Dimension(source="made", low=64, high=1024, scale="log"),
        "margin": Dimension(source="made", values=(0.1, 0.2, 0.3, 0.4)),
    }
    drawn = {key: [axis.draw(seed) for seed in range(5)] for key, axis in axes.items()}
    assert drawn == DRAWN


OPTIONS = {
    "--space temperature=0.2..0.1": "low below high",
    "--select STS-B": "nearest: STS-B dev",
}
SPACE_WITHOUT_SOURCE = "[[space]]\n[space.values]\nlearning_rate = {{ values = [1e-4] }}\n"


@pytest.mark.slow
def test_mistakes_in_spaces_and_options_are_one_line(ask: Any, tmp_path: Path) -> None:
    for words, said in OPTIONS.items():
        assert said in error_line(bench(*ask("--dry-run", *words.split()))), words
    file = plugin(tmp_path / "bad", "bad", space=SPACE_WITHOUT_SOURCE)
    line = error_line(bench(*ask("--dry-run", method="bad", files=(file,))))
    assert "recipes/bad.toml: space of learning_rate" in line and "source" in line
    assert not (tmp_path / "runs").exists()


def test_a_factor_of_0_is_one_line() -> None:
    recipe = Recipe({"queue_size": Value(64, "made")})
    with pytest.raises(BenchError, match=r"space of queue_size: .*> 0"):
        read_dimension("queue_size", {"factor": 0, "source": "x"}, recipe, "space of queue_size")


def test_the_dev_set_is_that_of_select_else_of_set_else_the_usual_one() -> None:
    def selected_on(select: str | None = None, **values: str) -> str:
        config = RunConfig(methods=("simcse",), overrides=values)
        asked = search_options(
            [config], select, seeds_named=False, trials=1, sampler="random", name=None
        )
        return asked.config.overrides["select_on"]

    assert selected_on() == "captions dev"  # the backbone is built in
    assert selected_on(select_on="STS-B dev") == "STS-B dev"
    assert selected_on("sts-dev-clean", select_on="STS-B dev") == "sts-dev-clean"


def test_a_dry_run_shows_the_space_and_warns_of_unequal_budgets(tmp_path: Path) -> None:
    def shown(*more: str) -> tuple[list[str], dict[str, Any]]:
        command = ["search", "--method", "simcse,mirror-bert", "--suite", "check", "--dry-run"]
        done = bench(*command, "--json", "--runs", tmp_path / "runs", *more)
        assert done.exit_code == 0 and not (tmp_path / "runs").exists(), done.output
        notes = [line for line in done.stderr.splitlines() if "steps" in line]
        return notes, json.loads(done.stdout)["methods"]

    plan = ["search", "--method", "simcse", "--suite", "check", "--dry-run", "--json"]
    done = bench(*plan, "--runs", tmp_path / "runs", "--seeds", "902,905-906")
    assert json.loads(done.stdout)["seeds"] == [902, 905, 906]
    notes, methods = shown("--budget", "100steps")
    # and no recipe's own limit, mirror-bert's 50, ends the training before it
    assert "equal steps are not equal training" in notes[0] and len(notes) == 1
    rate = methods["simcse"]["space"]["learning_rate"]
    assert (rate["low"], rate["high"], rate["scale"]) == (1e-5, 1e-3, "log") and rate["source"]
    assert shown("--budget", "6400sentences")[0] == []
    _, methods = shown("--space", "learning_rate=1e-4,1e-3")
    assert {name: [*shows["space"]] for name, shows in methods.items()} == dict.fromkeys(
        ("simcse", "mirror-bert"), ["learning_rate"]
    )


def test_a_dry_run_of_data_that_is_not_here_shows_the_space_and_what_will_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is on this machine, as on a new one; a search would fetch it as a run does."""
    for name in ("HF_HUB_CACHE", "BENCH_CACHE", "BENCH_RUNS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("BENCH_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "HF_HUB_CACHE"))
    command = "search promcse --setting unsupervised --backbone bert-base-uncased --dry-run"
    grid = [f"--space {key}" for key in ("learning_rate=5e-3,1e-2,3e-2", "batch_size=256,512")]
    shown = bench(*f"{command} {' '.join(grid)}".split()).stdout
    assert "0.005, 0.01, 0.03" in shown and "256, 512" in shown
    assert "sts-dev-clean: not fetched yet" in shown and "search-unknown" in shown
    for name in ("bert-base-uncased", "wiki1m", "STS12", "STS-B", "SICK-R"):
        assert re.search(f"^ *{name} +[0-9.]+ ", shown, re.M), name
    line = error_line(bench(*f"{command} --select last".split()))
    assert "gives no dev score" in line
