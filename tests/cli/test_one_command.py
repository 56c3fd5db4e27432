"""The user's one command on a machine without anything prepared: backbone, corpus and evaluation
data come from the hub.
"""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import argv, bench, the_run
from hub import StandInHub
from models import sentences

from bench.backbones.known_models import PINNED
from bench.data.sets import data_set, data_sets

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
