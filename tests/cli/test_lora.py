"""LoRA from the command line: planned, exported, continued, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from adapted_models import tiny_qwen3
from commands import bench, error_line, the_run
from models import sentences
from safetensors.torch import load_file

from bench.backbones import load, resolve
from bench.records import RunsFolder
from bench.run.finished import find_run, load_finished_run

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")

TEXTS = ["A man is playing a guitar .", "Yes", *sentences(5, seed=2)]
LORA = "--set adapter=lora --set lora_rank=4 --set dropout=0.1 --set learning_rate=1e-2"
AVERAGE = "--set pooling=avg --set head=false"
SHORT = "--set batch_size=8 --set max_steps=4 --set select_on=last"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny decoder, a text and rated pairs."""
    folder = tmp_path_factory.mktemp("lora")
    tiny_qwen3(folder / "qwen3")
    (folder / "text.txt").write_text("\n".join(sentences(64, seed=6)) + "\n")
    pairs = zip(sentences(40, seed=7), sentences(40, seed=8), strict=True)
    rows = [f"{first}\t{second}\t{number % 6}" for number, (first, second) in enumerate(pairs)]
    (folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return folder


def words(place: Path, method: str = "simcse", backbone: str = "", more: str = LORA) -> list[str]:
    backbone = backbone or str(place / "qwen3")
    where = f"--corpus {place / 'text.txt'} --suite {place / 'pairs.tsv'}"
    options = f"--backbone {backbone} {where} --device cpu"
    return f"run {method} --precision fp32 {options} {SHORT} {more}".split()


def done(place: Path, runs: str, more: str = f"{LORA} {AVERAGE}", backbone: str = "") -> Path:
    said = bench(*words(place, backbone=backbone, more=more), "--runs", place / runs)
    assert said.exit_code == 0, said.stderr
    return the_run(place / runs)


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    return done(place, "runs")


@pytest.fixture(scope="module")
def method(run: Path) -> Any:
    return load_finished_run(find_run(str(run), RunsFolder(run.parent)))


def record_of(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())


def vectors_of(folder: Path) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(TEXTS, show_progress_bar=False))


def test_values_are_in_an_identity_only_if_they_are_set(place: Path):
    def planned(more: str) -> Any:
        said = bench(
            *words(place, more=f"{AVERAGE} --set dropout=0.1 {more}"), "--dry-run", "--json"
        )
        assert said.exit_code == 0, said.stderr
        return json.loads(said.stdout)

    plain = planned("")
    off = "--set adapter=none --set base_dtype=fp32 --set attention=causal"
    assert planned(f"{off} --set gradient_checkpointing=false")["run_id"] == plain["run_id"]
    assert not [key for key in plain["recipe"] if key.startswith("lora")]
    ids = {planned(f"--set adapter=lora {more}")["run_id"] for more in ("", "--set lora_rank=2")}
    assert len({plain["run_id"], *ids}) == 3
    assert planned("--set adapter=lora")["trained_parameters"] < plain["trained_parameters"]


@pytest.mark.nightly
def test_attention_to_both_sides_survives(place: Path):
    both = f"{LORA} --set attention=bidirectional --set pooling=cls --set head=false"
    run = done(place, "both", both)
    method = load_finished_run(find_run(str(run), RunsFolder(run.parent)))
    wanted = method.encode(TEXTS)
    folder = place / "both-sides"
    said = bench("export", run, "--to", folder)
    assert said.exit_code == 0, said.stderr
    np.testing.assert_allclose(vectors_of(folder), wanted, rtol=0, atol=2e-5)
    alone = bench("export", run, "--to", place / "alone", "--unmerged")
    assert alone.exit_code == 2 and "its base is causal" in error_line(alone)
    assert not (place / "alone").exists()
    config = json.loads((folder / "config.json").read_text())
    assert config["is_causal"] is False
    assert resolve(str(run)).config()["is_causal"] is False
    assert "5.2" in (folder / "README.md").read_text()


def test_a_run_goes_on_merged_or_with_its_adapter(place: Path, run: Path, method: Any):
    merged = load(resolve(str(run)))
    features = method.assemble(method.token_ids(TEXTS))
    with torch.no_grad():
        wanted = method.encoder(**features).last_hidden_state
        found = merged.encoder(**features).last_hidden_state
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-5)
    still = f"{AVERAGE} --set dropout=0.1 --set learning_rate=0"
    same = done(place, "same", f"{still} --set adapter=same", str(run))
    before = load_file(run / "checkpoint" / "trained.safetensors")
    after = load_file(same / "checkpoint" / "trained.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert record_of(same)["recipe"]["lora_rank"]["value"] == 4
    # and a third run, on the second one: the adapter once, not twice
    once = load(resolve(str(same)))
    with torch.no_grad():
        found = once.encoder(**features).last_hidden_state
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-5)
    new = done(place, "new", f"{still} --set adapter=lora", str(run))
    begun = load_finished_run(find_run(str(new), RunsFolder(new.parent)))
    np.testing.assert_allclose(begun.encode(TEXTS), method.encode(TEXTS), rtol=0, atol=2e-5)
    twice = load(resolve(str(new)))
    with torch.no_grad():
        found = twice.encoder(**features).last_hidden_state
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("more", "method", "message"),
    [
        (f"--set adapter=lora {AVERAGE}", "simcse", "that of an adapter hardly does"),
        ("--set adapter=dora", "simcse", "adapter=dora is unknown"),
        (LORA, "promcse", "promcse freezes its encoder"),
        ("--set dropout=0.1", "promcse", "a prompt does not work on qwen3, which is causal"),
        ("--set base_dtype=4bit --set adapter=lora --on torchrun:2", "simcse", "4bit on 2"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(place: Path, more: str, method: str, message: str):
    said = bench(*words(place, method, more=more), "--runs", place / "refused")
    lines = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
    assert said.exit_code in (1, 2) and len(lines) == 1 and message in lines[0], said.stderr
    assert "Traceback" not in said.output


def test_a_reads_both_ways_value_is_refused_on_bert(tiny: str, place: Path):
    said = bench(
        *words(place, backbone=tiny, more="--set attention=bidirectional"),
        "--runs",
        place / "refused",
    )
    assert "reads both ways already" in said.stderr and "Traceback" not in said.output
