"""``bench run --dry-run``: the plan's numbers, and that they are true of the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, tree

from bench.base.text import format_duration


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


@pytest.mark.usefixtures("short_check")
def test_finished_runs_are_counted_and_those_that_lack_scores_of_a_suite_are_not(
    tiny: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    command = (*argv(f"run cls --backbone {tiny} --device cpu --runs"), runs)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,score\na,b,1\na,a,2\nb,c d,0\n")
    assert bench(*command, "--suite", "check").exit_code == 0
    before = tree(runs)
    assert [plan["finished"] for plan in plans(*command, "--suite", "check", "--dry-run")] == [True]
    assert "; 1 of 1 finished\n" in bench(*command, "--suite", "check", "--dry-run").stdout
    shown = bench(*command, "--suite", "check", "--suite", pairs, "--dry-run").stdout
    assert "; 1 trained, to be scored\n" in shown and "finished" not in shown
    (plan,) = plans(*command, "--suite", pairs, "--dry-run")
    assert plan["finished"] is False and tree(runs) == before


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
        assert last.endswith(f"{cost['train_seconds'] / 2:.3g} s per step, without evaluations")
