"""``bench reproduce``: the plan without running anything, and small tables run for real on a tiny
model.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from commands import bench, error_line, tree
from hub import send_requests_to
from models import sentences
from syrupy.assertion import SnapshotAssertion

from bench.method.plugins import discover
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
    options = (
        "--backbone",
        tiny,
        "--corpus",
        text,
        "--set",
        "max_steps=2",
        "--set",
        "select_on=last",
    )
    options += ("--set", "batch_size=4", "--device", "cpu", "--data", shared / "data")
    return (*options, "--runs", tmp_path / "runs")


def test_the_plan_of_a_table(
    nothing_here: None,
    no_network: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """Rows, runs, what is fetched first, what is not run: nothing is written or fetched."""
    monkeypatch.chdir(tmp_path)
    words = "reproduce promcse:1 --rows sbert-base-flow,universal,mirror --device cpu --dry-run"
    # of every machine
    monkeypatch.setattr("bench.cli.plan_facts.device_name", lambda device: "cpu: a processor")
    monkeypatch.setattr("bench.cli.plan_rows.usable_memory", lambda device: 20 * 2**30)
    done = bench(*words.split(), "--runs", "runs", COLUMNS="100", HF_HUB_OFFLINE="0")
    assert done.exit_code == 0 and not Path("runs").exists() and no_network == []
    assert done.stdout == snapshot


MISTAKES = """promcse
promcse:1 --rows bertt
promcse:3 --set batchsize=3 --dry-run
promcse:3 --set temperature=0.05,0.1 --dry-run
promcse:3 --seeds x
promcse:figure2 --rows own --dry-run
conpvp:figure4 --backbone bert-base-uncased --dry-run
conpvp:figure1
focal-infonce:2 --backbone builtin --released"""


def test_mistakes_are_one_line(snapshot: SnapshotAssertion) -> None:
    lines = {
        words: error_line(bench("reproduce", *words.split())) for words in MISTAKES.split("\n")
    }
    assert lines == snapshot


def test_every_table_and_figure_is_listed_with_yes_or_no() -> None:
    lines = [json.loads(line) for line in bench("reproduce", "--json").stdout.splitlines()]
    assert len(lines) == 89
    assert all(bool(one["command"]) is one["again"] is not bool(one["why"]) for one in lines)
    assert re.search(r"^promcse:figure2 +yes +STS averages", bench("reproduce").stdout, re.M)


def test_a_figure_of_a_formula_is_drawn_at_once(tmp_path: Path) -> None:
    done = bench("reproduce", "focal-infonce:figure1", "--runs", tmp_path)
    assert done.exit_code == 0, done.output
    (page,) = tmp_path.iterdir()
    assert page.name == "reproduced-focal-infonce-figure1.html"
    assert "data:image/svg+xml" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_table_run_for_real_and_again(trial: Trial, tmp_path: Path) -> None:
    command = ("reproduce", "promcse:5", "--rows", "first-last,unsup-simcse", *trial)
    done = bench(*command, "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert "stands in for bert-base-uncased" in (tmp_path / "page.html").read_text()
    before = tree(tmp_path / "runs")
    again = bench(*command, "--json")
    cells = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(one["printed"]["task"], one["verdict"]) for one in cells] == [
        ("alignment", "not tested"),
        ("uniformity", "not tested"),
    ] * 2
    for one in cells:
        assert one["difference"] == round(round(one["mean"], 3) - one["printed"]["value"], 3)
    assert tree(tmp_path / "runs") == before and again.stderr.count("nothing repeated") == 2


@pytest.mark.nightly
def test_a_folder_of_the_printed_name_is_compared_and_agrees_with_bench_compare(
    trial: Trial, tiny: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "bert-base-uncased"))
    words = ("--rows", "bert-base (first-last avg.)", "--backbone", folder, "--device", "cpu")
    done = bench("reproduce", "promcse:1", *words, *trial[-4:], "--json")
    assert done.exit_code == 0, done.output
    cells = {one["printed"]["task"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert len(cells) == 8 and {one["verdict"] for one in cells.values()} == {"differs"}
    compared = bench("compare", "--with-paper", "--format", "json", *trial[-2:])
    (row,) = json.loads(compared.stdout)["tables"][0]["rows"]
    for task, cell in row["cells"].items():
        printed = cell["printed"]
        assert (printed["inside"], printed["half"]) == (False, cells[task]["half"]) == (False, 0.0)
        assert printed["difference"] == cells[task]["difference"]


@pytest.mark.nightly
def test_a_figure_is_drawn_from_its_runs(trial: Trial, tmp_path: Path) -> None:
    done = bench("reproduce", "conpvp:figure5", *trial)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "runs" / "reproduced-conpvp-figure5.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page and "Not drawn" not in page
    assert bench("reproduce", "conpvp:figure5", *trial).stderr.count("nothing repeated") >= 2


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
def test_released_checkpoints_are_scored_and_nothing_is_trained(
    shared: Path, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made PromCSE checkpoint in the place of the authors': its row is scored behind its prefix;
    the other two are not here.
    """
    from released import promcse_checkpoint

    hub = "YuxinJiang/unsup-promcse-bert-base-uncased"
    folder, _ = promcse_checkpoint(tiny, tmp_path / "released", length=16)
    in_hub_cache(tmp_path / "hub", hub, folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    places = ("--data", shared / "data", "--runs", tmp_path / "runs", "--device", "cpu")
    command = ("reproduce", "promcse:1", "--released", "--rows", "promcse", "--offline", *places)
    refused = bench(*command)
    assert refused.exit_code == 2 and "is not on this machine" in refused.stderr, refused.output
    done = bench(*command, "--allow-pickle", "--json")
    assert done.exit_code == 1 and "left out: stored-prefix pooling=mlp" in done.stderr, done.output
    cells = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [cell for cell in cells if cell["mean"] is not None]
    assert [cell["printed"]["printed"] for cell in ours][-1] == "78.49" and len(ours) == 8
    (record,) = RunsFolder(tmp_path / "runs").records()[0]
    assert (record.method, record.setting, record.training) == ("stored-prefix", "none", None)
    scored = bench("evaluate", hub, "--suite", "sts", "--offline", *places)
    assert scored.exit_code == 0 and "nothing repeated" in scored.stderr, "it is the same run"
    compared = bench("compare", "--with-paper", "--runs", tmp_path / "runs")
    assert "78.49" in compared.stdout, compared.output


PROMPTEOL = '''
from bench.methods.simcse import SimCSE


class PromptEOL(SimCSE):
    """A stand-in that has the name and the setting of the printed rows."""

    name = "prompteol"
    settings = ("supervised",)
'''


def test_a_row_of_a_decoder_is_planned_if_its_method_is_here(
    shared: Path, tiny: str, tmp_path: Path
) -> None:
    """All rows of the table get one line if the method is missing; with it, each is a run."""
    options: tuple[str | Path, ...] = ("--dry-run", "--offline", "--runs", tmp_path / "runs")
    options += ("--data", shared / "data", "--device", "cpu")
    model = tmp_path / "opt-1.3b"
    shutil.copytree(tiny, model)
    if "prompteol" not in discover().plugins:
        done = bench("reproduce", "prompteol:2", *options, COLUMNS="100")
        assert done.exit_code == 0, done.stderr
        assert "no runs" in done.stdout and "royokong/prompteol-llama-30b" in done.stdout
        assert " ".join(done.stdout.split()).count("no method prompteol is installed here") == 1
        plugin = tmp_path / "prompteol.py"
        plugin.write_text(PROMPTEOL, encoding="utf-8")
        options += ("--plugin", plugin)
    text = tmp_path / "nli.csv"
    rows = [f"{one},{one} too,no {one}" for one in sentences(30, seed=3)]
    text.write_text("\n".join(["sent0,sent1,hard_neg", *rows]) + "\n", encoding="utf-8")
    done = bench("reproduce", "prompteol:2", "--backbone", model, "--corpus", text, *options)
    assert done.exit_code == 0, done.stderr
    assert "prompteol:2: 1 run" in done.stdout
    (line,) = [one for one in done.stdout.splitlines() if "royokong/prompteol-opt-1.3b" in one]
    assert "84.79" in line and f"prompteol, supervised, {model}" in line


def test_finished_models_of_mteb_are_not_trained(tmp_path: Path) -> None:
    done = bench("reproduce", "mteb:rerun", "--dry-run", "--runs", tmp_path / "runs")
    assert done.exit_code == 0, done.stderr
    assert "mteb:rerun: no runs" in done.stdout
    assert "bench evaluate NAME --suite mteb:" in " ".join(done.stdout.split())
