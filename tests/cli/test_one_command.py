"""The user's one command on a machine where nothing was prepared: backbone, corpus and evaluation data come from the hub."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import argv, bench, the_run
from hub import StandInHub
from models import sentences

from bench.backbones.hub import PINNED
from bench.data.sets import data_set, data_sets, sources

ROWS = 600


@pytest.fixture
def new_machine(
    hub: StandInHub,
    shared: Path,
    tiny_roberta: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StandInHub:
    """An empty cache, and a hub with a tiny model under the name of a real one, SimCSE's archive, and few of its triplets."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bench.data.fetching.LONGEST_WAIT", 1.0)
    name = "FacebookAI/roberta-large"
    model = {
        path.name: path.read_bytes() for path in Path(tiny_roberta).iterdir() if path.is_file()
    }
    hub.add("model", name, model, revision=PINNED[name])
    moses, out = shared / "data/senteval-moses/downstream", io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(moses.rglob("*")):
            if path.is_file():
                archive.add(path, arcname=str(path.relative_to(moses)))
    text = sentences(3 * ROWS, seed=4)
    triplets = "sent0,sent1,hard_neg\r\n" + "".join(
        f'"{a}","{b}","{c}"\r\n' for a, b, c in zip(*[iter(text)] * 3, strict=True)
    )
    hub.add(
        "dataset",
        "princeton-nlp/datasets-for-simcse",
        {"senteval.tar": out.getvalue(), "nli_for_simcse.csv": triplets.encode()},
    )
    short = replace(data_set("nli"), files=(replace(data_set("nli").files[0], rows=ROWS),))
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: {**data_sets(), "nli": short})
    return hub


@pytest.mark.slow
def test_nothing_is_prepared_and_the_table_comes_out(
    new_machine: StandInHub, tmp_path: Path, no_network: list[object]
) -> None:
    new_machine.fault("senteval.tar", cut_after=2_000_000)
    new_machine.fault("nli_for_simcse.csv", status=429, headers={"Retry-After": "1"})
    done = bench(
        "run", "--method", "promcse", "--backbone", "roberta-large", "--setting", "supervised"
    )
    assert done.exit_code == 0, done.stderr
    rows = [line.split("  ")[1:] for line in done.stderr.splitlines()]
    table = {row[0].strip(): " ".join(" ".join(row[1:]).split()) for row in rows if len(row) > 2}
    assert table["STS12"].startswith("0.4 research, MS terms hub data set")
    assert table["nli"].startswith("48.0 CC BY-SA; MNLI mixed") and table[
        "roberta-large"
    ].startswith("1,425.9 MIT hub model")
    assert "STS12" in done.stdout and "next: bench show" in done.stdout
    record = json.loads((the_run(tmp_path / "runs") / "run.json").read_text())
    assert record["status"] == "finished" and record["setting"] == "supervised"
    assert record["provenance"]["backbone"]["revision"] == PINNED["FacebookAI/roberta-large"]
    assert record["provenance"]["corpus"]["name"] == "nli_for_simcse.csv"
    assert {score["task"] for score in record["scores"]} >= {"STS12", "STS-B", "SICK-R", "Avg."}
    asked = len(new_machine.requests)
    again = bench(
        *argv("run --method promcse --backbone roberta-large --setting supervised --offline")
    )
    assert (
        again.exit_code == 0
        and "nothing repeated" in again.stderr
        and len(new_machine.requests) == asked
    )
    assert no_network == []


def test_offline_the_same_command_says_what_is_missing(
    new_machine: StandInHub, tmp_path: Path
) -> None:
    done = bench(
        *argv("run --method promcse --backbone roberta-large --setting supervised --offline")
    )
    assert done.exit_code == 2 and new_machine.requests == [] and not (tmp_path / "runs").exists()
    assert "error: " in done.stderr and "try: " in done.stderr


@pytest.fixture
def bert_and_labelled_nli(
    new_machine: StandInHub, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> StandInHub:
    """On that hub a tiny BERT, too, and few pairs of SNLI and MultiNLI at their authors' addresses."""
    name = "google-bert/bert-base-uncased"
    model = {path.name: path.read_bytes() for path in Path(tiny).iterdir() if path.is_file()}
    new_machine.add("model", name, model, revision=PINNED[name])
    source = sources()["nli_labelled.csv"]
    (part,) = source.files.values()
    labels = ("entailment", "neutral", "contradiction", "-")
    checksums = []
    for seed, path in enumerate(part.paths, 5):
        text, out = sentences(2 * ROWS, seed=seed), io.BytesIO()
        pairs = [
            {"sentence1": text[2 * i], "sentence2": text[2 * i + 1], "gold_label": labels[i % 4]}
            for i in range(ROWS)
        ]
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("x/x_train.jsonl", "".join(json.dumps(pair) + "\n" for pair in pairs))
        new_machine.serve(path.partition("://")[2], out.getvalue())
        checksums.append(hashlib.sha256(out.getvalue()).hexdigest())
    known = {
        **sources(),
        source.name: replace(
            source, files={"nli_labelled.csv": replace(part, sha256=tuple(checksums))}
        ),
    }
    monkeypatch.setattr(
        importlib.import_module("bench.data.sets.sources"), "sources", lambda: known
    )
    known_sets = importlib.import_module("bench.data.sets.folder").data_sets()
    few = replace(
        data_set("nli-labelled"),
        files=(replace(data_set("nli-labelled").files[0], rows=2 * ROWS * 3 // 4),),
    )
    monkeypatch.setattr(
        "bench.data.sets.folder.data_sets", lambda: {**known_sets, "nli-labelled": few}
    )
    return new_machine


@pytest.mark.slow
def test_a_table_is_run_again_where_nothing_is_prepared(
    bert_and_labelled_nli: StandInHub, tmp_path: Path, no_network: list[object]
) -> None:
    """Of PromCSE's table 1: SBERT, whose labelled NLI is built, whitening on SBERT, and SimCSE on triplets; one table of all, first."""
    command = (
        "reproduce",
        "promcse:1",
        "--rows",
        "sbert-base-whitening,simcse-bert-base (reproduce)",
        *argv("--max-steps 2 --set batch_size=4 --set select_on=last --set components=16"),
        *argv("--device cpu"),
    )
    done = bench(*command)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("fetched now") == 1 and "left out" not in done.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/run.json")]
    ran = {record["method"]: record for record in records}
    assert set(ran) >= {"sbert", "whitening", "simcse"} and all(
        record["status"] == "finished" for record in records
    )
    assert ran["sbert"]["provenance"]["corpus"]["name"] == "nli_labelled.csv"
    assert (
        ran["simcse"]["provenance"]["backbone"]["revision"]
        == PINNED["google-bert/bert-base-uncased"]
    )
    assert {score["task"] for score in ran["whitening"]["scores"]} >= {"STS12", "SICK-R", "Avg."}
    assert "SBERT-base-whitening" in done.stdout
    asked = len(bert_and_labelled_nli.requests)
    again = bench(*command, "--offline")
    assert (
        again.exit_code == 0
        and "fetched now" not in again.stderr
        and len(bert_and_labelled_nli.requests) == asked
    )
    assert no_network == []
