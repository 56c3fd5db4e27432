"""``bench run --paper`` and ``bench compare --paper``: the plan without running anything, and small
tables run for real on a tiny model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import bench, error_line
from hub import send_requests_to
from models import sentences
from syrupy.assertion import SnapshotAssertion

from bench.records import RunsFolder

Trial = tuple[str | Path, ...]


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and servers that nobody answers for."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    send_requests_to("http://127.0.0.1:9", monkeypatch)


@pytest.fixture
def trial(shared: Path, tiny: str, tmp_path: Path) -> Trial:
    """Options of a small run on a tiny model."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sentences(40, seed=3)) + "\n", encoding="utf-8")
    options: Trial = ("--backbone", tiny, "--corpus", text, "--set", "select_on=last")
    options += ("--set", "max_steps=2", "--set", "batch_size=4", "--device", "cpu")
    return (*options, "--data", shared / "data", "--runs", tmp_path / "runs")


def test_the_plan_of_a_table(
    nothing_here: None,
    no_network: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """The printed values of that table, the paper's hyperparameters beside ours, what is fetched
    first, what is not run and why: nothing is written or fetched.
    """
    monkeypatch.chdir(tmp_path)
    words = "run --paper promcse:3 promcse,simcse --device cpu --dry-run"
    # of every machine
    monkeypatch.setattr("bench.cli.plan_facts.device_name", lambda device: "cpu: a processor")
    monkeypatch.setattr("bench.cli.plan_rows.usable_memory", lambda device: 20 * 2**30)
    done = bench(*words.split(), "--runs", "runs", COLUMNS="100", HF_HUB_OFFLINE="0")
    assert not Path("runs").exists() and no_network == []
    assert done.stdout == snapshot


def planned(*words: str | Path) -> list[dict[str, object]]:
    done = bench("run", "--paper", *words, "--dry-run", "--json")
    assert done.exit_code == 0, done.output
    return [*map(json.loads, done.stdout.splitlines())]


def test_methods_settings_and_backbones_choose_runs(shared: Path) -> None:
    data = ("--data", shared / "data")
    bert = planned("promcse:1", "promcse", "--backbone", "bert-base-uncased", *data)
    assert [(one["setting"], one["variant"]) for one in bert] == [
        ("supervised", ""),
        ("supervised", "eh"),
        ("unsupervised", ""),
    ]
    (one,) = planned("promcse:1", "promcse+eh", "--backbone", "roberta-large", *data)
    (average,) = [cell for cell in one["paper"]["printed"] if cell["task"] == "Avg."]  # type: ignore[index]
    assert average["value"] == 85.10


def test_one_backbone_stands_in_for_all(shared: Path) -> None:
    """Runs of the same method become one; a released checkpoint has no stand-in; GloVe stays."""
    rows = planned("promcse:2", "--backbone", "builtin", "--offline", "--data", shared / "data")
    assert [(one["method"], one["variant"], one["backbone"]) for one in rows] == [
        ("glove-avg", "", "glove"),
        ("simcse", "eh", "builtin"),
        ("promcse", "", "builtin"),
        ("promcse", "eh", "builtin"),
    ]


MISTAKES = {
    "--paper promcse:6": "promcse:6 cannot be run: it shows hyperparameters",
    "--paper conpvp:figure1": "conpvp:figure1 cannot be run: a drawing",
    "--paper promcse:1 conpvp --dry-run": "promcse:1: no run of it fits",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_that_names_it(words: str) -> None:
    assert MISTAKES[words] in error_line(bench("run", *words.split()))


@pytest.mark.nightly
def test_a_folder_of_the_printed_name_is_compared_and_agrees_with_another_table(
    trial: Trial, tiny: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "bert-base-uncased"))
    words = ("embedding-last-avg", "--backbone", folder, "--device", "cpu")
    done = bench("run", "--paper", "promcse:1", *words, *trial[-4:])
    assert done.exit_code == 0, done.output
    beside = bench("compare", "--paper", "promcse:1", *trial[-2:], "--json")
    cells = {
        one["printed"]["task"]: one for one in json.loads(beside.stdout) if one["mean"] is not None
    }
    assert len(cells) == 8 and {one["verdict"] for one in cells.values()} <= {"below", "above"}
    compared = bench("compare", "--with-paper", "--format", "json", *trial[-2:])
    (row,) = json.loads(compared.stdout)["tables"][0]["rows"]
    for task, cell in row["cells"].items():
        printed = cell["printed"]
        for name in ("verdict", "half", "difference"):
            assert printed[name] == cells[task][name]


def in_hub_cache(cache: Path, hub: str, folder: str | Path) -> None:
    """A model folder as the hub's client would have fetched it, its weights a pickle, as authors
    released theirs.
    """
    import torch
    from safetensors.torch import load_file

    root = cache / f"models--{hub.replace('/', '--')}"
    snapshot = root / "snapshots" / ("c" * 40)
    shutil.copytree(folder, snapshot, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save(load_file(Path(folder) / "model.safetensors"), snapshot / "pytorch_model.bin")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("c" * 40)


@pytest.mark.nightly
def test_a_released_checkpoint_is_scored_and_nothing_is_trained(
    shared: Path, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made PromCSE checkpoint in the place of the authors': its row is scored behind its
    prefix.
    """
    from released import promcse_checkpoint

    hub = "YuxinJiang/unsup-promcse-bert-base-uncased"
    folder, _ = promcse_checkpoint(tiny, tmp_path / "released", length=16)
    in_hub_cache(tmp_path / "hub", hub, folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    places = ("--data", shared / "data", "--runs", tmp_path / "runs", "--device", "cpu")
    command = ("run", "--paper", "promcse:README", "--backbone", hub, "--offline", *places)
    refused = bench(*command)
    assert refused.exit_code == 2 and "is not on this machine" in refused.stderr, refused.output
    done = bench(*command, "--allow-pickle")
    assert done.exit_code == 0, done.output
    (record,) = RunsFolder(tmp_path / "runs").records()[0]
    assert (record.method, record.setting, record.training) == ("stored-prefix", "none", None)
    scored = bench("evaluate", hub, "--suite", "sts", "--offline", *places)
    assert scored.exit_code == 0 and "nothing repeated" in scored.stderr, "it is the same run"
    for part in ("promcse:README", "promcse:1"):
        compared = bench("compare", "--paper", part, "--runs", tmp_path / "runs")
        assert "78.49" in compared.stdout, compared.output
        assert "below by" in compared.stdout, compared.output


def test_a_reason_is_said_once_and_rows_of_two_settings_are_told_apart() -> None:
    runs = Path(__file__).parents[2] / "leaderboards" / "v6" / "runs"
    done = bench("compare", "--runs", runs, "--method", "promcse", "--paper", "promcse:1")
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.count("builtin stands in for bert-base-uncased: all rows") == 1
    for setting, average in (("unsupervised", "78.49"), ("supervised", "81.81")):
        assert f"PromCSE-BERT-base ({setting}) Avg. {average}" in said
