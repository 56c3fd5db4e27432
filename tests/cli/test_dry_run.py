"""``bench run --dry-run``: the plan's numbers, and that they are true of the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import argv, bench, error_line, tree

from bench.base.text import format_duration
from bench.cli.dry_run import measuring_command

BERT = argv("run --method simcse,promcse --backbone bert-base-uncased --seeds 1-5 --dry-run")


@pytest.fixture(autouse=True)
def a_machine_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a machine without a hub, data, a backbone or a card: there is only the package."""
    for name in ("HF_HUB_CACHE", "BENCH_CACHE", "BENCH_RUNS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("BENCH_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "HF_HUB_CACHE"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def plans(*arguments: Any) -> list[dict[str, Any]]:
    done = bench(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(shown: str) -> list[list[str]]:
    """The table of runs, its heading first."""
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["method"])
    table = lines[start : lines.index("", start)]
    runs = [line.split() for line in table[1:] if line[:1] in ("1", "2")]
    return [["#", *table[0].split()], *runs]


def test_ten_runs_are_two_rows_on_one_screen() -> None:
    for width, most in (("100", 40), ("80", 50)):
        done = bench(*BERT, "--device", "cpu", COLUMNS=width)
        assert done.exit_code == 0 and done.stderr == ""
        lines = done.stdout.splitlines()
        assert len(lines) <= most and max(map(len, lines)) <= int(width)
        heading, *runs = rows(done.stdout)
        assert [run[heading.index("seeds")] for run in runs] == ["1-5", "1-5"]
        assert lines[0].startswith("Plan: 10 runs of simcse and promcse, unsupervised ")
        assert [(run[0], run[-1]) for run in runs] == [("1", "76.25"), ("2", "78.49")]
        assert [run[1].rstrip("¹²³⁴·") for run in runs] == ["simcse", "promcse"]
    notes = {note for plan in plans(*BERT, "--device", "cpu") for note in plan["notes"]}
    assert notes == {"setting unsupervised (no --setting was given)"}
    assert done.stdout.count("(the paper's setting for this") == 1


def test_the_chunk_of_the_hint_fits_the_device_and_twice_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = argv(
        "run --method promcse --backbone roberta-large --setting supervised --dry-run --device cpu"
    )

    def memory(*more: str) -> int:
        return int(plans(*command, *more)[0]["memory_bytes"])

    room = 24 * 2**30
    monkeypatch.setattr("bench.cli.plan_rows.usable_memory", lambda device: room)
    assert memory() > room
    chunk = re.search(r" --chunk (\d+) ", bench(*command).stdout)
    assert chunk is not None and int(chunk[1]) == plans(*command)[0]["chunk"]
    assert memory("--chunk", chunk[1]) <= room < memory("--chunk", str(2 * int(chunk[1])))
    assert "too much" not in bench(*command, "--chunk", chunk[1]).stdout


def test_what_nobody_can_count_before_it_is_here_is_said() -> None:
    command = argv("run --backbone bert-base-uncased --dry-run --device cpu --method")
    (plan,) = plans(*command, "diffcse")
    assert (plan["trained_parameters"], plan["memory_bytes"], plan["chunk"]) == (None, None, None)
    shown = bench(*command, "diffcse").stdout
    assert "parameters not counted: a model or a file that it is built on is not here" in shown
    assert "GiB" not in shown
    (whole,) = plans(*command, "simcse")
    encoder = 109_482_240 - 590_592  # BertModel without its pooling layer
    assert whole["trained_parts"] == {"encoder": encoder, "head": 768 * 768 + 768}


def test_finished_runs_are_counted_and_not_summed(tiny: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = (*argv(f"run --method cls --backbone {tiny} --suite check --device cpu --runs"), runs)
    assert bench(*command, "--dry-run").stdout.startswith("Plan: 1 run of cls, nothing trained, on")
    assert not runs.exists()
    assert bench(*command).exit_code == 0
    before = tree(runs)
    assert [plan["finished"] for plan in plans(*command, "--dry-run")] == [True]
    shown = bench(*command, "--dry-run").stdout
    assert "; 1 of 1 finished\n" in shown and tree(runs) == before


def test_a_finished_run_without_the_scores_of_a_suite_is_not_finished(
    tiny: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    command = (*argv(f"run cls --backbone {tiny} --device cpu --runs"), runs)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,score\na,b,1\na,a,2\nb,c d,0\n")
    assert bench(*command, "--suite", "check").exit_code == 0
    shown = bench(*command, "--suite", "check", "--suite", pairs, "--dry-run").stdout
    assert "; 1 trained and to score\n" in shown and "finished" not in shown
    (plan,) = plans(*command, "--suite", pairs, "--dry-run")
    assert plan["finished"] is False


def test_the_short_recipe_names_the_budget_and_no_cap_that_is_not_reached() -> None:
    command = argv("run simcse --suite check --corpus builtin --device cpu --dry-run")
    plain = bench(*command).stdout
    assert "max_steps" not in plain and "epochs" not in plain
    assert "max_steps" in bench(*command, "--all").stdout
    capped = bench(*command, "--budget", "12steps").stdout
    assert re.search(r"budget +\"12steps\" +--budget 12steps", capped) and "null" not in capped
    assert re.search(
        r"epochs +2.0 +--budget 2epochs", bench(*command, "--budget", "2epochs").stdout
    )


def test_device_and_precision_are_named() -> None:
    one = (*argv("run promcse --backbone roberta-large --dry-run"), "--device")
    for command in ((*BERT, "--device"), one):
        assert re.search(r"^  device +.+, precision fp32$", bench(*command, "cpu").stdout, re.M)
    assert "--device A100" in error_line(bench(*one, "A100"))


def test_one_run_is_told_in_facts_and_what_is_fetched_in_one_line() -> None:
    command = argv("run promcse --backbone roberta-large --dry-run --device cpu")
    done = bench(*command, COLUMNS="80")
    lines = done.stdout.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    flat = " ".join(done.stdout.split())
    assert flat.startswith(
        "Plan: 1 run of promcse, supervised (the paper's setting for this backbone), on "
        "roberta-large backbone roberta-large: hub model FacebookAI/roberta-large (commit "
    )
    assert "275,601 rows x 10 epochs = 5,390 steps of 512 " in flat
    assert "published 84.76 (PromCSE paper, table 1)" in flat
    assert "1,541,120 parameters: prompt 491,520, head 1,049,600 " in flat
    assert "download 1.5 GB: roberta-large 1.4 GB, nli 48.0 MB, sts data 6.1 MB Recipe" in flat
    assert "licence" not in flat.partition("Every value, licence and source: --all.")[0]
    whole = bench(*command, "--all").stdout
    assert "CC BY-NC-SA 3.0" in whole and "accepted by fetching:" in whole


def test_a_note_of_one_plan_is_not_repeated_in_another(tiny: str) -> None:
    command = argv(f"run simcse --suite check --corpus builtin --device cpu --backbone {tiny}")
    shown = bench(*command, "--budget", "12steps", "--dry-run").stdout
    assert "(no --setting was given)" in shown and "paper's setting" not in shown
    assert "10,000 rows: 12 steps of 64" in shown and "epochs" not in shown
    assert not any(word in shown for word in ("published", "download", "too much"))
    named = bench(*command, "--setting", "unsupervised", "--dry-run").stdout
    assert named.startswith("Plan: 1 run of simcse, unsupervised, on ")
    untrained = bench(*argv("run cls --suite check --device cpu --dry-run")).stdout
    assert "on the built-in backbone" in untrained
    assert not any(word in untrained for word in ("train  ", "trains", "memory", "Recipe values"))


COMMANDS = {
    "run simcse": "run simcse --budget 20steps",
    "run simcse --budget 2h --set epochs=3 --set temperature=0.1 --all": "run simcse --set "
    "temperature=0.1 --budget 20steps",
    "run --budget=5epochs simcse --set=epochs=3 --chunk=8": "run simcse --chunk=8 --budget 20steps",
}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_plan_ends_with_the_command_that_measures(words: str) -> None:
    with_plan = ["bench", *words.split(), "--dry-run"]
    row = SimpleNamespace(in_steps=True, chunk=None)
    too_large = SimpleNamespace(in_steps=True, chunk=16)
    none_fits = SimpleNamespace(in_steps=True, chunk=0)
    untrained = SimpleNamespace(in_steps=False, chunk=None)
    wanted = f"bench {COMMANDS[words]}"
    assert measuring_command(with_plan, [untrained, row]) == wanted
    smaller = measuring_command(with_plan, [row, too_large])
    assert smaller == f"{wanted.replace(' --chunk=8', '')} --chunk 16"
    assert measuring_command(with_plan, [row, too_large], takes_chunk=False) is None
    assert measuring_command(with_plan, [row, none_fits]) is None
    assert measuring_command(with_plan, [untrained]) is None


@pytest.mark.usefixtures("short_check")
def test_a_few_steps_say_how_long_the_whole_would_take(tiny: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = (
        *argv("run simcse --suite check --corpus builtin --device cpu --set batch_size=8"),
        *("--set", "select_on=last", "--backbone", tiny, "--runs", runs),
    )
    planned = bench(*command, "--set", "epochs=2", "--dry-run").stdout
    measuring = " ".join(planned.split("\n\n")[-1].split()).partition(": bench ")[2]
    assert measuring == f"{' '.join(map(str, command))} --budget 20steps"
    assert bench(*command, "--budget", "101steps", "--dry-run").exit_code == 0
    for _ in ("measured", "nothing repeated"):
        done = bench(*measuring.replace("20steps", "2steps").split())
        assert done.exit_code == 0, done.stderr
        (file,) = runs.glob("*/run.json")
        cost = json.loads(file.read_text())["cost"]
        steps = 10_000 // 8
        duration = format_duration(cost["train_seconds"] / 2 * steps)
        last = done.stdout.splitlines()[-1]
        assert f"its 1,250 steps would take {duration} here" in last
        assert last.endswith(f"{cost['train_seconds'] / 2:.3g} s a step, without evaluations")


def test_a_switch_is_true_or_false() -> None:
    line = error_line(bench(*BERT, "--set", "compile=maybe"))
    assert line.endswith("--set compile=maybe: expected true or false")
