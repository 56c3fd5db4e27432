"""The methods of the package."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from made import sentences, tiny_encoder
from started import bench, python, record, run_folders

ROOT = Path(__file__).parents[2]
UNTRAINED = {"cls", "last-avg", "first-last-avg", "embedding-last-avg"}
"""The poolings that one module has together."""


def promised() -> set[str]:
    """Return the names of the methods that the package brings, as pyproject.toml says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {*project["entry-points"]["bench.methods"]} - {"untrained"} | UNTRAINED


@pytest.mark.promise(5)
def test_every_method_is_listed_and_says_what_it_is(tmp_path: Path) -> None:
    listed = bench("methods", "--json", cwd=tmp_path).json
    assert {one["name"] for one in listed} == promised() and len(promised()) >= 49
    settings = {"unsupervised", "supervised", "none"}
    for one in listed:
        assert one["settings"] and set(one["settings"]) <= settings, one["name"]
        assert 10 < len(one["summary"]) <= 60, one["name"]


DECODERS = {"angle-llama", "contrastive-prompting", "cse-sfp", "echo", "embedfilter", "metaeol"}
DECODERS |= {"mntp", "pcc-tuning", "prompteol", "token-prepending"}
NEEDS: dict[str, dict[str, Any]] = {
    "dclr": {"teacher": "tiny"},
    "diffcse": {"generator": "tiny"},
    "flow": {"corpus": "corpus.txt"},
    "glove-avg": {"vectors": "words.txt"},
    "guided-simcse": {"guide": "tiny"},
    "infersent": {"vectors": "words.txt", "lstm_size": 8},
    "pretrained": {"pooling": "cls"},
    "prompteol": {"dropout": 0.1},
    "rankcse": {"teacher_1": "tiny", "teacher_2": "none"},
    "stored-prefix": {"backbone": "released", "pooling": "mlp"},
    "truncated": {"pooling": "cls", "size": 16},
    "whitening": {"corpus": "corpus.txt", "components": 16},
}
"""A teacher, a generator, vectors or a text that is here."""
GRADED = {"angle", "angle-llama", "claif", "cosent", "pcc-tuning"}
LABELLED = {"consert", "infersent", "sbert"}
EVERY = """
import json, sys
import bench

for name, setting, values in json.loads(sys.argv[1]):
    runs = f"runs/{name}-{setting}"
    try:
        bench.train(name, setting=setting, runs=runs, progress=False, suites="pairs.tsv", **values)
    except bench.BenchError as error:
        print(name, setting, error)
"""


def asked_of(name: str, setting: str) -> dict[str, Any]:
    """Return what a training of two steps needs."""
    trained = setting != "none"
    values: dict[str, Any] = {"backbone": "llama" if name in DECODERS else "tiny"}
    if trained:
        values |= {"batch_size": 8, "budget": "2steps", "max_steps": 2, "select_on": "last"}
        values["corpus"] = "corpus.txt" if setting == "unsupervised" else "triplets.csv"
        if setting == "supervised" and name in GRADED | LABELLED:
            values["corpus"] = "graded.csv" if name in GRADED else "labelled.csv"
    needed = NEEDS.get(name, {})
    if name == "prompteol" and not trained:
        needed = {}
    return values | needed


def released(tiny: Path, folder: Path) -> None:
    """Write an encoder with a prefix and a head, as PromCSE's authors released theirs."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny, folder)
    layers, hidden, prompt = 2, 32, 5
    drawn = torch.Generator().manual_seed(0)
    tensors = load_file(folder / "model.safetensors") | {
        "prefix_encoder.embedding.weight": torch.randn(
            prompt, 2 * layers * hidden, generator=drawn
        ),
        "mlp.dense.weight": torch.randn(hidden, hidden, generator=drawn),
        "mlp.dense.bias": torch.randn(hidden, generator=drawn),
    }
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


@pytest.fixture(scope="module")
def encoders(made_once: Any, inputs: Path) -> Path:
    """Return a folder with an encoder, a decoder of 512 positions and texts of every kind."""

    def write(folder: Path) -> None:
        for path in inputs.iterdir():
            if path.is_file():
                (folder / path.name).write_bytes(path.read_bytes())
        tiny_encoder(folder / "tiny")
        released(folder / "tiny", folder / "released")
        tiny_encoder(folder / "llama", kind="llama")
        config = folder / "llama" / "config.json"
        said = json.loads(config.read_text(encoding="utf-8")) | {"max_position_embeddings": 512}
        config.write_text(json.dumps(said), encoding="utf-8")
        texts = sentences(96, seed=41)
        both = list(zip(texts[:48], texts[48:], strict=True))
        labels = ("entailment", "neutral", "contradiction")
        graded = [f"{one},{two},{i % 5 / 4}" for i, (one, two) in enumerate(both)]
        labelled = [f"{one},{two},{labels[i % 3]}" for i, (one, two) in enumerate(both)]
        for name, last, rows in (
            ("graded.csv", "score", graded),
            ("labelled.csv", "label", labelled),
        ):
            lines = [f"sent0,sent1,{last}", *rows]
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = sorted({word for text in texts for word in text.split()})
        vectors = [f"{word} {i % 7} {i % 5} {i % 3 + 0.5}" for i, word in enumerate(words)]
        (folder / "words.txt").write_text("\n".join(vectors) + "\n", encoding="utf-8")

    return made_once("encoders", write)


@pytest.mark.nightly
@pytest.mark.promise(5)
@pytest.mark.parametrize("part", range(7))
def test_every_method_trains_in_every_setting(part: int, copied: Any, encoders: Path) -> None:
    """Seven methods in a process, each on an encoder or decoder of two layers."""
    folder = copied(encoders)
    names = sorted(promised())[part::7]
    listed = {one["name"]: one for one in bench("methods", "--json", cwd=folder).json}
    asked = [
        (name, setting, asked_of(name, setting))
        for name in names
        for setting in listed[name]["settings"]
    ]
    done = python(EVERY, json.dumps(asked), cwd=folder, seconds=1800)
    assert not done.out.strip()
    for name, setting, _ in asked:
        (run,) = run_folders(folder / "runs" / f"{name}-{setting}")
        found = record(run)
        assert (found["method"], found["status"]) == (name, "finished")
        assert -100 <= found["scores"][0]["value"] <= 100
        if setting != "none":
            assert found["training"]["steps"] == 2, name
