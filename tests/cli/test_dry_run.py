"""``bench run --dry-run``: what a plan says, by its numbers and by what is then true."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import argv, bench, error_line, tree

from bench.run.estimates import CARDS, USABLE

BERT = argv("run --method simcse,promcse --backbone bert-base-uncased --seeds 1-5 --dry-run")


@pytest.fixture(autouse=True)
def a_machine_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, no data, no backbone, no card: only what the package knows."""
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
    start = next(i for i, line in enumerate(lines) if line.startswith("method "))
    return [line.split() for line in lines[start : lines.index("", start)]]


def test_ten_runs_are_two_rows_on_one_screen() -> None:
    for width, most in (("100", 40), ("80", 50)):
        done = bench(*BERT, "--device", "cuda", COLUMNS=width)
        assert done.exit_code == 0 and done.stderr == ""
        assert len(done.stdout.splitlines()) <= most and max(
            map(len, done.stdout.splitlines())
        ) <= int(width)
        heading, *runs = rows(done.stdout)
        assert [dict(zip(heading, run, strict=True))["seeds"] for run in runs] == ["1-5", "1-5"]
        assert [(run[0], run[-1]) for run in runs] == [("simcse", "76.25"), ("promcse", "78.49")], (
            "as printed"
        )
    notes = {note for plan in plans(*BERT, "--device", "cuda") for note in plan["notes"]}
    assert notes and all(" ".join(done.stdout.split()).count(note) == 1 for note in notes), (
        "each once, for five runs"
    )


def test_the_total_is_the_sum_of_what_is_to_do() -> None:
    each = [plan["estimate"]["seconds"] / 3600 for plan in plans(*BERT, "--device", "A100")]
    shown = bench(*BERT, "--device", "A100").stdout
    total = re.search(r"^total: (\d+) runs .*?about ([\d.,]+) hours", shown, re.M)
    assert total is not None and int(total[1]) == len(each) == 10
    assert float(total[2]) == pytest.approx(sum(each), rel=0.05)
    at = rows(shown)[0].index("h/run")
    assert [float(row[at]) for row in rows(shown)[1:]] == pytest.approx(
        [each[0], each[5]], abs=0.005
    )


@pytest.mark.parametrize("device", ["RTX3090", "A100"])
def test_the_chunk_of_the_hint_fits_the_card_and_twice_that_does_not(device: str) -> None:
    command = (
        *argv("run --method promcse --backbone roberta-large --setting supervised --dry-run"),
        *argv("--device"),
        device,
        *argv("--precision fp32 --set batch_size=1024"),
    )
    (plan,) = plans(*command)
    room = USABLE * CARDS[device].gib * 2**30
    assert plan["estimate"]["memory_bytes"] > room
    chunk = re.search(r"^memory: .*--chunk (\d+) ", bench(*command).stdout, re.M)
    assert chunk is not None and int(chunk[1]) == plan["chunk"]
    small, large = ((*command, "--chunk", str(times * int(chunk[1]))) for times in (1, 2))
    assert (
        plans(*small)[0]["estimate"]["memory_bytes"]
        <= room
        < plans(*large)[0]["estimate"]["memory_bytes"]
    )
    assert "memory: " not in bench(*small).stdout
    assert plans(*small)[0]["estimate"]["seconds"] > plan["estimate"]["seconds"]


def test_a_card_is_planned_for_by_its_name_and_cuda_is_one() -> None:
    def hours(device: str, *more: str) -> float:
        (plan,) = plans(
            *argv("run --method simcse --backbone roberta-large --dry-run --device"),
            device,
            *more,
        )
        assert plan["precision"] == ("bf16" if not more else more[1])
        return float(plan["estimate"]["seconds"]) / 3600

    assert hours("cuda") == hours("cuda:0") == hours("a100") == hours("cuda:A100")
    assert hours("RTX 3090") == hours("3090") == pytest.approx(hours("A100") * 312 / 71, rel=1e-6)
    assert hours("3090", "--precision", "fp32") == pytest.approx(
        hours("3090") * 71 / 35.6, rel=1e-6
    )
    assert error_line(bench("run", "--method", "simcse", "--suite", "check", "--device", "H100"))
    assert (
        "H100"
        in bench(
            "run", "--method", "simcse", "--suite", "check", "--device", "B7", "--dry-run"
        ).stderr
    )


def test_finished_runs_are_counted_and_not_summed(tiny: str, tmp_path: Path) -> None:
    command = (
        *argv("run --method cls --backbone"),
        tiny,
        *argv("--suite check --device cpu --runs"),
        tmp_path / "runs",
    )
    assert (
        "total: 1 run " in bench(*command, "--dry-run").stdout and not (tmp_path / "runs").exists()
    )
    assert bench(*command).exit_code == 0
    before = tree(tmp_path / "runs")
    assert [plan["finished"] for plan in plans(*command, "--dry-run")] == [True]
    shown = bench(*command, "--dry-run").stdout
    assert (
        "total: 0 runs " in shown
        and "1 of 1 finished" in shown
        and tree(tmp_path / "runs") == before
    )
