"""The user's one command on a machine without anything prepared: backbone, corpus and evaluation
data come from the hub.
"""

from __future__ import annotations

import hashlib
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

from bench.backbones.known_models import PINNED
from bench.data.sets import all_sources, data_set, data_sets

ROWS = 600


def sentevals(shared: Path) -> bytes:
    """SimCSE's archive of SentEval's files."""
    moses, out = shared / "data/senteval-moses/downstream", io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in filter(Path.is_file, sorted(moses.rglob("*"))):
            archive.add(path, arcname=str(path.relative_to(moses)))
    return out.getvalue()


def add_model(hub: StandInHub, name: str, folder: str) -> None:
    """A tiny model under the name of a real one, at the revision that is pinned."""
    files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    hub.add("model", name, files, revision=PINNED[name])


@pytest.fixture
def new_machine(
    hub: StandInHub,
    shared: Path,
    tiny_roberta: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StandInHub:
    """An empty cache, and a hub with a tiny model under the name of a real one, SimCSE's archive,
    and few of its triplets.
    """
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    add_model(hub, "FacebookAI/roberta-large", tiny_roberta)
    text = sentences(3 * ROWS, seed=4)
    rows = (f'"{a}","{b}","{c}"\r\n' for a, b, c in zip(*[iter(text)] * 3, strict=True))
    triplets = ("sent0,sent1,hard_neg\r\n" + "".join(rows)).encode()
    files = {"senteval.tar": sentevals(shared), "nli_for_simcse.csv": triplets}
    hub.add("dataset", "princeton-nlp/datasets-for-simcse", files)
    short = replace(data_set("nli"), files=(replace(data_set("nli").files[0], rows=ROWS),))
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: {**data_sets(), "nli": short})
    return hub


COMMAND = argv("run --method promcse --backbone roberta-large --setting supervised")


@pytest.mark.nightly
def test_nothing_is_prepared_and_the_table_comes_out(
    new_machine: StandInHub, tmp_path: Path, no_network: list[object]
) -> None:
    new_machine.fault("senteval.tar", cut_after=2_000_000)
    done = bench(*COMMAND)
    assert done.exit_code == 0 and "STS12" in done.stdout, done.stderr
    told = " ".join(done.stderr.split())
    for row in ("STS12 0.4 research, MS terms", "nli 48.0 CC BY-SA", "roberta-large 1,425.9 MIT"):
        assert row in told
    record = json.loads((the_run(tmp_path / "runs") / "run.json").read_text())
    assert record["status"] == "finished" and record["setting"] == "supervised"
    made_of = record["provenance"]
    assert made_of["backbone"]["revision"] == PINNED["FacebookAI/roberta-large"]
    assert made_of["corpus"]["name"] == "nli_for_simcse.csv"
    assert {score["task"] for score in record["scores"]} >= {"STS12", "STS-B", "SICK-R", "Avg."}
    asked = len(new_machine.requests)
    again = bench(*COMMAND, "--offline")
    assert again.exit_code == 0 and "nothing repeated" in again.stderr
    assert len(new_machine.requests) == asked and no_network == []


@pytest.fixture
def bert_and_labelled_nli(
    new_machine: StandInHub, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> StandInHub:
    """On that hub a tiny BERT, too, and few pairs of SNLI and MultiNLI at their authors'
    addresses.
    """
    add_model(new_machine, "google-bert/bert-base-uncased", tiny)
    name, checksums = "nli_labelled.csv", []
    source, wanted = all_sources()[name], data_set("nli-labelled")
    (part,) = source.files.values()
    labels = ("entailment", "neutral", "contradiction", "-")
    for seed, path in enumerate(part.paths, 5):
        text, out = sentences(2 * ROWS, seed=seed), io.BytesIO()
        pairs = zip(text[::2], text[1::2], labels * (ROWS // 4), strict=True)
        keys = ("sentence1", "sentence2", "gold_label")
        rows = (json.dumps(dict(zip(keys, pair, strict=True))) + "\n" for pair in pairs)
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("x/x_train.jsonl", "".join(rows))
        new_machine.serve(path.partition("://")[2], out.getvalue())
        checksums.append(hashlib.sha256(out.getvalue()).hexdigest())
    source = replace(source, files={name: replace(part, sha256=tuple(checksums))})
    known = {**all_sources(), name: source}
    monkeypatch.setattr("bench.data.sets.sources.all_sources", lambda: known)
    known_sets = data_sets()
    few = replace(wanted, files=(replace(wanted.files[0], rows=2 * ROWS * 3 // 4),))
    every = {**known_sets, "nli-labelled": few}
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: every)
    return new_machine


@pytest.mark.nightly
@pytest.mark.slow
def test_a_table_is_run_again_where_nothing_is_prepared(
    bert_and_labelled_nli: StandInHub, tmp_path: Path, no_network: list[object]
) -> None:
    """Rows of PromCSE's table 1: SBERT, with labelled NLI that is built first, and SimCSE on
    triplets, all in one table; then whitening on SBERT, as the plan of the table says.
    """
    small = "--set max_steps=2 --set batch_size=4 --set select_on=last --device cpu"
    command = ("run", "--paper", "promcse:1", "sbert,simcse", "--setting", "supervised")
    command += ("--backbone", "bert-base-uncased", *argv(small))
    done = bench(*command)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("fetched now") == 1
    (sbert,) = (tmp_path / "runs").glob("sbert-*")
    then = bench("run", "whitening", "--backbone", sbert, "--set", "components=16")
    assert then.exit_code == 0, then.output
    compared = bench("compare", "--paper", "promcse:1")
    assert "SBERT-base" in compared.stdout and "simcse on bert-base-uncased" in compared.stdout
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/run.json")]
    ran = {record["method"]: record for record in records}
    assert set(ran) >= {"sbert", "whitening", "simcse"}
    assert {record["status"] for record in records} == {"finished"}
    assert ran["sbert"]["provenance"]["corpus"]["name"] == "nli_labelled.csv"
    revision = ran["simcse"]["provenance"]["backbone"]["revision"]
    assert revision == PINNED["google-bert/bert-base-uncased"]
    assert {score["task"] for score in ran["whitening"]["scores"]} >= {"STS12", "SICK-R", "Avg."}
    asked = len(bert_and_labelled_nli.requests)
    again = bench(*command, "--offline")
    assert again.exit_code == 0 and "fetched now" not in again.stderr
    assert len(bert_and_labelled_nli.requests) == asked and no_network == []
