"""bench search on a made method whose dev score is a known function of its learning rate, with its peak at 2e-4."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import killed_worker
import pytest
from click.testing import Result
from commands import bench, error_line, tree
from forked import server
from models import sentences

from bench.runs import RunsFolder
from bench.runs.searches import Trial, best_trial, read_study, read_trials

PEAK = 2e-4
MADE = '''"""Made: the dev score is 80 less ten points for each power of ten from the best rate; it grows over the steps."""
import math
import time
from methods.simcse import SimCSE

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
SPACE = '[[space]]\n[space.values]\nlearning_rate = {{ low = 1e-5, high = 4e-3, scale = "log", source = "made: the peak is inside" }}\n'


def plugin(
    folder: Path,
    name: str = "made",
    top: float = 80,
    fails: float = 1,
    sleep: float = 0,
    space: str = SPACE,
) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(MADE.format(cls=name.title(), name=name, top=top, fails=fails, sleep=sleep))
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
        return [
            "search",
            "--method",
            method,
            "--backbone",
            tiny,
            "--corpus",
            str(corpus),
            "--suite",
            "check",
            "--device",
            "cpu",
            *plugins,
            "--precision",
            "fp32",
            "--budget",
            "2steps",
            "--set",
            "batch_size=4",
            "--set",
            "eval_steps=1",
            "--runs",
            str(tmp_path / "runs"),
            "--name",
            "one",
            *map(str, more),
        ]

    return arguments


def trials(tmp_path: Path, method: str = "made", name: str = "one") -> list[Trial]:
    return read_trials(tmp_path / "runs" / name, method)


def told(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_known_best_rate_is_found_and_becomes_a_recipe_whose_run_says_so(
    ask: Any, tiny: str, tmp_path: Path
) -> None:
    found = told(bench(*ask("--trials", "8", "--json")))
    own = trials(tmp_path)
    assert [trial.number for trial in own] == list(range(9)) and {trial.state for trial in own} == {
        "finished"
    }
    for trial in own[1:]:  # each score is that of its rate: nothing was mixed up
        assert trial.score == pytest.approx(
            79.5 - 10 * abs(math.log10(trial.values["learning_rate"] / PEAK))
        )
    best = best_trial(own)
    assert best is not None and abs(math.log10(best.values["learning_rate"] / PEAK)) < 0.35
    assert (
        best.number
        == min(
            own[1:], key=lambda trial: abs(math.log10(trial.values["learning_rate"] / PEAK))
        ).number
    )
    assert (found["trials"], found["finished"], found["failed"], found["trial"]) == (
        8,
        8,
        0,
        best.number,
    )
    for record in (tmp_path / "runs" / "one" / "trials").rglob(
        "run.json"
    ):  # no test score was computed
        content = json.loads(record.read_text())
        assert (
            content["scores"] == []
            and content["provenance"]["data"] == {}
            and content["training"]["dev_task"] == "captions dev"
        )
        assert (
            not list(record.parent.glob("predictions/*"))
            and not (record.parent / "checkpoint").exists()
        )

    recipe = Path(found["recipe"])
    content = tomllib.loads(recipe.read_text())
    source = f"search one, 8 trials, captions dev {best.score:.2f}"
    assert content["values"]["learning_rate"] == {
        "value": best.values["learning_rate"],
        "source": source,
    }
    command = [
        "run",
        "--recipe",
        recipe,
        "--plugin",
        tmp_path / "own" / "made.py",
        "--suite",
        "check",
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--runs",
        tmp_path / "tuned",
    ]
    assert "seed 901 is one on which one chose these values" in error_line(
        bench(*command, "--seeds", "900-902")
    )
    assert "no text with sha256:" in error_line(
        bench(*command, "--seeds", "1")
    )  # a file of ones own is known by its content
    command += ["--corpus", tmp_path / "text.txt"]
    done = bench(*command, "--seeds", "1", "--json")
    record = RunsFolder(tmp_path / "tuned").find(json.loads(done.stdout.splitlines()[-1])["run_id"])
    assert (
        record.recipe["learning_rate"].source == source
        and record.recipe["batch_size"].value == 4
        and record.backbone == tiny
    )
    assert (
        record.training is not None
        and record.training.dev_score == pytest.approx(best.score)
        and record.scores
    )
    kept = (record.provenance.execution or {})["search"]
    assert (kept["trials"], kept["seeds"], kept["steps"]) == (8, [901], 18) and kept["seconds"] > 0
    alone = " ".join(
        bench("compare", "--runs", tmp_path / "tuned", "--statistics", "no").stdout.split()
    )
    assert (
        "all that was trained: tuned with 8 trials each" in alone and "made tuned" not in alone
    ), alone
    own_values = bench(
        "run",
        "--method",
        "made",
        *command[3:-2],
        "--backbone",
        tiny,
        "--corpus",
        tmp_path / "text.txt",
        "--budget",
        "2steps",
        "--set",
        "batch_size=4",
        "--runs",
        tmp_path / "tuned",
    )
    assert own_values.exit_code == 0, own_values.output
    table = " ".join(
        bench(
            "compare", "--runs", tmp_path / "tuned", "--cost", "--statistics", "no"
        ).stdout.split()
    )
    assert "made tuned: 8 trials" in table and "made recipe" in table and "/8 " in table, table
    assert re.search(r"values: recipe in made; tuned: 8 trials in the others", table), table
    assert "--strict: the runs of check are not of one kind: values" in error_line(
        bench("compare", "--runs", tmp_path / "tuned", "--strict")
    )


@pytest.mark.slow
def test_the_same_command_repeats_nothing_and_more_trials_go_on(ask: Any, tmp_path: Path) -> None:
    told(bench(*ask("--trials", "3", "--json")))
    before = tree(tmp_path / "runs" / "one" / "trials")
    again = bench(*ask("--trials", "3", "--json"))
    assert "goes on with" in again.stderr and tree(tmp_path / "runs" / "one" / "trials") == before
    more = told(bench(*ask("--trials", "5", "--json")))
    assert (
        more["trials"] == 5 and before.items() <= tree(tmp_path / "runs" / "one" / "trials").items()
    )
    whole = told(bench(*ask("--trials", "5", "--json", "--name", "other")))
    assert [trial.values for trial in trials(tmp_path)] == [
        trial.values for trial in trials(tmp_path, name="other")
    ]
    assert [trial.dev for trial in trials(tmp_path)] == [
        trial.dev for trial in trials(tmp_path, name="other")
    ]
    assert whole["dev"] == more["dev"]
    other = bench(*ask("--trials", "2", "--json", "--name", "seeds", "--seeds", "902"))
    assert (
        other.exit_code == 0
        and trials(tmp_path, name="seeds")[1].values != trials(tmp_path)[1].values
    )


@pytest.mark.slow
def test_trials_that_fail_are_counted_and_a_recipe_that_is_best_stays(
    ask: Any, tmp_path: Path
) -> None:
    file = plugin(tmp_path / "own", fails=1e-4)
    done = bench(*ask("--trials", "6", files=(file,)))
    own = trials(tmp_path)[1:]
    failed = [trial for trial in own if trial.state == "failed"]
    assert failed and all(
        trial.values["learning_rate"] > 1e-4 and "made to fail" in (trial.error or "")
        for trial in failed
    )
    assert (
        f"{6 - len(failed)} + {len(failed)} failed + 0 pruned" in done.stdout
        and "failed, and counts as a trial: made: " in done.stderr
        and "made to fail" in done.stderr
    )
    narrow = plugin(
        tmp_path / "own", name="narrow", space=SPACE.replace("1e-5", "3e-3")
    )  # the recipe's own rate, 3e-5, is nearer
    found = told(
        bench(
            *ask(
                "--trials",
                "2",
                "--json",
                "--name",
                "two",
                "--set",
                "weight_decay=0.1",
                method="narrow",
                files=(narrow,),
            )
        )
    )
    assert (
        found["trial"] == 0
        and "learning_rate" not in tomllib.loads(Path(found["recipe"]).read_text())["values"]
    )


@pytest.mark.slow
def test_killed_twice_it_ends_with_the_trials_of_an_undisturbed_search(
    ask: Any, tmp_path: Path
) -> None:
    sampler = (
        "tpe"  # which has a memory; what a trial of the others is follows from its number alone
    )
    slow = plugin(tmp_path / "own", sleep=0.15)
    command, log = (
        ask("--trials", "4", "--sampler", sampler, "--plain", files=(slow,)),
        tmp_path / "log.txt",
    )
    for number in (1, 3):
        process = server().Process(target=killed_worker.work, args=(command, "0", str(log)))
        process.start()
        until = time.monotonic() + 60
        while time.monotonic() < until and not any(
            trial.number == number for trial in trials(tmp_path)
        ):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert any(trial.state == "running" for trial in trials(tmp_path))
    done = bench(*command)
    assert done.exit_code == 0 and "goes on with" in done.stderr
    assert (
        bench(
            *ask("--trials", "4", "--sampler", sampler, "--name", "whole", files=(slow,))
        ).exit_code
        == 0
    )
    ends = [
        [
            (trial.number, trial.values, trial.state, trial.dev)
            for trial in trials(tmp_path, name=name)
        ]
        for name in ("one", "whole")
    ]
    assert ends[0] == ends[1] and len(ends[0]) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["before it says that it ended", "before its checkpoint is removed"]
)
def test_a_kill_between_a_trials_training_and_its_end_loses_nothing(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A trial whose checkpoint is gone before it has ended would be a failed one for ever."""
    from bench.run.search import trials as module

    class Killed(BaseException):
        pass

    write = module.write_trial

    def stopped(folder: Path, trial: Trial) -> None:
        ends = trial.state == "finished" and trial.number == 1
        if not ends or moment.startswith("before its"):
            write(folder, trial)
        if ends:
            raise Killed

    command = ask("--trials", "2", "--plain", files=(plugin(tmp_path / "own"),))
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_trial", stopped)
        with pytest.raises(Killed):
            bench(*command)
    assert len(list((tmp_path / "runs" / "one").glob("trials/*/001/*/checkpoint"))) == 1
    assert bench(*command).exit_code == 0
    assert [(trial.number, trial.state) for trial in trials(tmp_path)] == [
        (0, "finished"),
        (1, "finished"),
        (2, "finished"),
    ]
    assert not list((tmp_path / "runs" / "one").glob("trials/*/*/*/checkpoint"))
    assert (
        bench(
            *ask("--trials", "2", "--name", "whole", files=(tmp_path / "own" / "made.py",))
        ).exit_code
        == 0
    )
    assert [trial.dev for trial in trials(tmp_path)] == [
        trial.dev for trial in trials(tmp_path, name="whole")
    ]


@pytest.mark.slow
def test_two_processes_share_a_search_and_no_trial_is_run_twice(ask: Any, tmp_path: Path) -> None:
    slow = plugin(tmp_path / "own", sleep=0.1)
    command = ask("--trials", "5", "--plain", files=(slow,))
    logs = [tmp_path / "log1.txt", tmp_path / "log2.txt"]
    processes = [
        server().Process(target=killed_worker.work, args=(command, "60", str(log))) for log in logs
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0, [log.read_text() for log in logs]
    begun = [
        {
            line.partition(" (")[0]
            for line in log.read_text().splitlines()
            if line.endswith("): starts")
        }
        for log in logs
    ]
    assert begun[0] and begun[1] and not begun[0] & begun[1], "both worked, on different trials"
    assert begun[0] | begun[1] == {
        "made recipe as it is",
        *(f"made trial {i}" for i in range(1, 6)),
    }
    own = trials(tmp_path)
    assert (
        len(own) == 6
        and {trial.state for trial in own} == {"finished"}
        and len({trial.process for trial in own}) == 2
    )


@pytest.mark.slow
def test_a_pruned_trial_costs_no_more_than_it_ran(ask: Any, tmp_path: Path) -> None:
    done = bench(*ask("--trials", "9", "--pruner", "median", "--budget", "4steps"))
    assert done.exit_code == 0, done.output
    own = trials(tmp_path)[1:]
    pruned, whole = (
        [trial for trial in own if trial.state == state] for state in ("pruned", "finished")
    )
    assert (
        pruned
        and whole
        and {trial.steps for trial in whole} == {4}
        and all(trial.steps < 4 for trial in pruned)
    )
    best = best_trial(own)
    assert best is not None and all(
        abs(math.log10(best.values["learning_rate"] / PEAK))
        < abs(math.log10(trial.values["learning_rate"] / PEAK))
        for trial in pruned
    )
    assert f"{len(whole)} + 0 failed + {len(pruned)} pruned" in done.stdout


@pytest.mark.slow
def test_another_search_under_the_same_name_is_refused_with_what_differs(
    ask: Any, tmp_path: Path
) -> None:
    second = plugin(tmp_path / "own", name="second")
    first = tmp_path / "own" / "made.py"
    told(bench(*ask("--trials", "1", "--json")))
    before = tree(tmp_path / "runs")
    cases = {
        "holds a search of made, not of made, second": ask(
            "--trials", "1", method="made,second", files=(first, second)
        ),
        "holds a search with budget 2steps, not 3steps": ask("--trials", "1", "--budget", "3steps"),
        "holds a search with seeds 901, not 905": ask("--trials", "1", "--seeds", "905"),
        "holds a search with sampler random, not grid": ask("--trials", "1", "--sampler", "grid"),
        "in whose space learning_rate is 1e-05 to 0.004, not 1e-05 to 0.01": ask(
            "--trials", "1", "--space", "learning_rate=log:1e-5..1e-2"
        ),
    }
    for words, command in cases.items():
        assert words in error_line(bench(*command)), words
    first.write_text(first.read_text() + "# another version\n")
    line = error_line(bench(*ask("--trials", "1")))
    assert "the code of made has changed since that search began" in line
    assert tree(tmp_path / "runs") == before, "nothing was changed"


def test_bad_spaces_and_options_are_one_line(ask: Any, tmp_path: Path) -> None:
    def refused(*more: str, **how: Any) -> str:
        return error_line(bench(*ask("--dry-run", *more, **how)))

    assert "unknown recipe key 'temprature'" in refused("--space", "temprature=0.1,0.2")
    assert "--space temperature=: it is empty" in refused("--space", "temperature=")
    assert "expected a number" in refused("--space", "temperature=hot,cold")
    assert "low 0.2 is not below high 0.1" in refused("--space", "temperature=0.2..0.1")
    assert "scale 'log'" in refused("--space", "weight_decay=log:0..0.1")
    assert "'max_steps' is not searched" in refused("--space", "max_steps=2,3")
    assert "one searches it, the other does not" in refused(
        "--space", "temperature=0.1,0.2", "--set", "temperature=0.1"
    )
    assert "a search chooses by a dev score" in refused("--select", "last")
    assert "unknown selection set 'STS-B'" in refused("--select", "STS-B")
    assert "the grid of made has 9 points, fewer than 12 trials" in refused(
        "--sampler", "grid", "--space", "temperature=0.1,0.2,0.3", "--set", "weight_decay=0"
    )
    assert "cls cannot be searched: nothing of it is trained" in refused(method="cls", files=())
    for space, words in {
        "[[space]]\n[space.values]\n": "is empty: nothing of bad is searched",
        '[[space]]\n[space.values]\nlearn = {{ values = [1], source = "x" }}\n': "unknown recipe key 'learn'",
        '[[space]]\n[space.values]\nlearning_rate = {{ values = ["fast"], source = "x" }}\n': "expected a number, found 'fast'",
        "[[space]]\n[space.values]\nlearning_rate = {{ values = [1e-4] }}\n": "does not say where the bounds come from",
        '[[space]]\n[space.values]\nlearning_rate = {{ values = [], source = "x" }}\n': "its values are empty",
        '[[space]]\n[space.values]\npooler = {{ low = 1, high = 2, source = "x" }}\n': "a range has no meaning",
        '[[space]]\n[space.values]\nlearning_rate = {{ value = 1, source = "x" }}\n': "unknown key value",
    }.items():
        line = refused(
            method="bad", files=(plugin(tmp_path / words[:9].strip(), name="bad", space=space),)
        )
        assert words in line and ("bad.toml" in line), line
    assert not (tmp_path / "runs").exists()
    study = bench(*ask("--dry-run", "--json"))
    assert (
        json.loads(study.stdout)["space"]["learning_rate"]["source"] == "made: the peak is inside"
        and not (tmp_path / "runs").exists()
    )


def test_a_budget_that_is_not_the_same_for_each_method_is_told_and_the_advice_helps() -> None:
    def said(*more: str) -> list[str]:
        done = bench(
            "search",
            "--method",
            "simcse,mirror-bert,ct",
            "--trials",
            "2",
            "--suite",
            "check",
            "--dry-run",
            *more,
        )
        assert done.exit_code == 0, done.output
        return [line for line in done.stderr.splitlines() if line.startswith("warning: ")]

    shorter, rows = said("--budget", "100steps")
    assert (
        shorter
        == "warning: mirror-bert: the recipe ends after 50 steps, before the budget of 100steps does; to use it up: --max-steps 100"
    )
    assert rows == (
        "warning: a step has 200 rows in mirror-bert and 64 in the others, so as many steps are not as much training; "
        "--set batch_size=64, or a budget of sentences, gives each the same"
    )
    assert said("--budget", "100steps", "--max-steps", "100", "--set", "batch_size=64") == []
    assert said("--budget", "6400sentences") == [], "50 steps of 200 rows are more than that"
    assert said("--budget", "100steps", "--max-steps", "100") == [rows]
    assert said() == [], "recipes as long as they say are not held to be alike"


def test_a_seed_of_a_scored_run_is_refused(ask: Any, tiny: str, tmp_path: Path) -> None:
    from factories import record

    RunsFolder(tmp_path / "runs").write(record(method="made", seed=901))
    assert "seed 901 is that of" in error_line(bench(*ask("--trials", "1")))
    assert read_study(tmp_path / "runs" / "one") is None


@pytest.mark.slow
def test_two_ranks_train_each_trial_together_and_go_on_after_one_failed(
    ask: Any, tmp_path: Path
) -> None:
    """A failure of rank 0 alone parts them; it is a trial, and the same command begins the next."""
    file = plugin(tmp_path / "own", fails=1e-4)
    command = ask("--trials", "2", "--executor", "torchrun", "--gpus", "2", files=(file,))
    codes = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-m", "bench", *command],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        codes.append(done.returncode)
        if done.returncode == 0:
            break
        assert "the same command goes on with the next trial" in done.stderr, done.stderr
    states = [trial.state for trial in trials(tmp_path)]
    assert (
        len(states) == 3
        and codes == [1] * states.count("failed") + [0]
        and states[0] == "finished"
        and "failed" in states
    )
    records = [
        json.loads(path.read_text())
        for path in (tmp_path / "runs" / "one" / "trials").rglob("run.json")
    ]
    assert all(
        one["provenance"]["execution"]["ranks"] == 2
        for one in records
        if one["status"] == "finished"
    )
    assert "ends a trial in one process" in error_line(
        bench(*ask("--pruner", "median", "--executor", "torchrun", "--gpus", "2"))
    )
