"""``bench run --dry-run``: the plan's numbers, and that they are true of the run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line, tree

from bench.base.text import format_bytes, format_duration
from bench.run.cards import CARDS
from bench.run.estimates import USABLE

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
        done = bench(*BERT, "--device", "cuda", COLUMNS=width)
        assert done.exit_code == 0 and done.stderr == ""
        lines = done.stdout.splitlines()
        assert len(lines) <= most and max(map(len, lines)) <= int(width)
        heading, *runs = rows(done.stdout)
        assert [run[heading.index("seeds")] for run in runs] == ["1-5", "1-5"]
        assert lines[0].startswith("Plan: 10 runs of simcse and promcse, unsupervised ")
        assert [(run[0], run[-1]) for run in runs] == [("1", "76.25"), ("2", "78.49")]
        assert [run[1].rstrip("¹²³⁴·") for run in runs] == ["simcse", "promcse"]
    notes = {note for plan in plans(*BERT, "--device", "cuda") for note in plan["notes"]}
    assert notes == {"setting unsupervised (no --setting was given)"}
    assert done.stdout.count("(the paper's setting for this") == 1


def test_the_total_is_the_sum_of_the_remaining_work() -> None:
    each = [plan["estimate"]["seconds"] for plan in plans(*BERT, "--device", "A100")]
    shown = bench(*BERT, "--device", "A100").stdout
    assert (
        len(each) == 10 and f"10 runs to do, about {format_duration(sum(each))} of train" in shown
    )
    heading, *runs = rows(shown)
    times = [run[heading.index("time/run")] for run in runs]
    assert times == [format_duration(each[0]), format_duration(each[5])]


@pytest.mark.parametrize("device", ["RTX3090", "A100"])
def test_the_chunk_of_the_hint_fits_the_card_and_twice_that_does_not(device: str) -> None:
    command = argv(
        "run --method promcse --backbone roberta-large --setting supervised --dry-run "
        f"--precision fp32 --set batch_size=1024 --device {device}"
    )

    def memory(*more: str) -> int:
        return int(plans(*command, *more)[0]["estimate"]["memory_bytes"])

    room = USABLE * CARDS[device].gib * 2**30
    assert memory() > room
    chunk = re.search(r" --chunk (\d+) ", bench(*command).stdout)
    assert chunk is not None and int(chunk[1]) == plans(*command)[0]["chunk"]
    assert memory("--chunk", chunk[1]) <= room < memory("--chunk", str(2 * int(chunk[1])))
    assert "--chunk" not in bench(*command, "--chunk", chunk[1]).stdout


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
        shown = bench(*command, "A100").stdout
        assert re.search(r"^  device +A100 \(80 GB\), precision bf16$", shown, re.M)


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
    assert "of a GPU: --device H100, A100 or RTX3090" in flat
    assert "download 1.5 GB: roberta-large 1.4 GB, nli 48.0 MB, sts data 6.1 MB disk" in flat
    assert "licence" not in flat.partition("Every value, licence and source: --all.")[0]
    whole = bench(*command, "--all").stdout
    assert "CC BY-NC-SA 3.0" in whole and "accepted by fetching:" in whole
    assert "--device H100" not in bench(*command, "--device", "A100").stdout


def test_a_note_of_one_plan_is_not_repeated_in_another(tiny: str) -> None:
    command = argv(f"run simcse --suite check --corpus builtin --device cpu --backbone {tiny}")
    shown = bench(*command, "--budget", "12steps", "--dry-run").stdout
    assert "(no --setting was given)" in shown and "paper's setting" not in shown
    assert "10,000 rows: 12 steps of 64" in shown and "epochs" not in shown
    assert not any(word in shown for word in ("published", "download", "of a GPU:", "too much"))
    named = bench(*command, "--setting", "unsupervised", "--dry-run").stdout
    assert named.startswith("Plan: 1 run of simcse, unsupervised, on ")
    untrained = bench(*argv("run cls --suite check --device cpu --dry-run")).stdout
    assert "on the built-in backbone" in untrained
    assert not any(word in untrained for word in ("train  ", "time", "disk", "Recipe values"))


@pytest.mark.usefixtures("short_check")
def test_a_disk_that_is_too_full_is_one_line_before_anything_is_trained(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    command = (
        *argv("run simcse --suite check --corpus builtin --budget 2steps --device cpu"),
        *("--backbone", tiny, "--seeds", "1,2", "--runs", runs),
    )
    (first, _) = plans(*command, "--dry-run")
    needed = first["estimate"]["disk_bytes"] * 48 // 44  # a checkpoint of the other run
    assert f"disk      up to {format_bytes(needed)}\n" in bench(*command, "--dry-run").stdout
    free = shutil.disk_usage(tmp_path)._replace(free=needed - 1)
    monkeypatch.setattr("shutil.disk_usage", lambda place: free)
    line = error_line(bench(*command))
    assert str(runs) in line and format_bytes(needed) in line and not runs.exists()
    monkeypatch.setattr("shutil.disk_usage", lambda place: free._replace(free=needed))
    assert bench(*command).exit_code == 0
    monkeypatch.setattr("shutil.disk_usage", lambda place: free._replace(free=0))
    again = bench(*command)
    assert again.exit_code == 0 and "nothing repeated" in again.stderr, "what is done needs none"


def test_a_switch_is_true_or_false() -> None:
    line = error_line(bench(*BERT, "--set", "compile=maybe"))
    assert line.endswith("--set compile=maybe: expected true or false")
