"""The user's one command on a machine where nothing was prepared: backbone, corpus and evaluation data come from the hub."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from commands import bench, the_run
from hub import StandInHub
from models import sentences

from bench.backbones.hub import PINNED
from bench.data.sets import data_set, data_sets

ROWS = 600


@pytest.fixture
def new_machine(hub: StandInHub, shared: Path, tiny_roberta: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInHub:
    """An empty cache, and a hub with a tiny model under the name of a real one, SimCSE's archive, and few of its triplets."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bench.data.fetching.http.LONGEST_WAIT", 1.0)
    name = "FacebookAI/roberta-large"
    model = {path.name: path.read_bytes() for path in Path(tiny_roberta).iterdir() if path.is_file()}
    hub.add("model", name, model, revision=PINNED[name])
    moses, out = shared / "data/senteval-moses/downstream", io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(moses.rglob("*")):
            if path.is_file():
                archive.add(path, arcname=str(path.relative_to(moses)))
    text = sentences(3 * ROWS, seed=4)
    triplets = "sent0,sent1,hard_neg\r\n" + "".join(f'"{a}","{b}","{c}"\r\n' for a, b, c in zip(*[iter(text)] * 3, strict=True))
    hub.add("dataset", "princeton-nlp/datasets-for-simcse", {"senteval.tar": out.getvalue(), "nli_for_simcse.csv": triplets.encode()})
    short = replace(data_set("nli"), files=(replace(data_set("nli").files[0], rows=ROWS),))
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: {**data_sets(), "nli": short})
    return hub


@pytest.mark.slow
def test_nothing_is_prepared_and_the_table_comes_out(new_machine: StandInHub, tmp_path: Path, no_network: list[object]) -> None:
    new_machine.fault("senteval.tar", cut_after=2_000_000)
    new_machine.fault("nli_for_simcse.csv", status=429, headers={"Retry-After": "1"})
    done = bench("run", "--method", "promcse", "--backbone", "roberta-large", "--setting", "supervised")
    assert done.exit_code == 0, done.stderr
    rows = [line.split("  ")[1:] for line in done.stderr.splitlines()]
    table = {row[0].strip(): " ".join(" ".join(row[1:]).split()) for row in rows if len(row) > 2}
    assert table["STS12"].startswith("0.4 research, MS terms hub data set")
    assert table["nli"].startswith("48.0 CC BY-SA; MNLI mixed") and table["roberta-large"].startswith("1,425.9 MIT hub model")
    assert "STS12" in done.stdout and "next: bench show" in done.stdout
    record = json.loads((the_run(tmp_path / "runs") / "run.json").read_text())
    assert record["status"] == "finished" and record["setting"] == "supervised"
    assert record["provenance"]["backbone"]["revision"] == PINNED["FacebookAI/roberta-large"]
    assert record["provenance"]["corpus"]["name"] == "nli_for_simcse.csv"
    assert {score["task"] for score in record["scores"]} >= {"STS12", "STS-B", "SICK-R", "Avg."}
    asked = len(new_machine.requests)
    again = bench("run", "--method", "promcse", "--backbone", "roberta-large", "--setting", "supervised", "--offline")
    assert again.exit_code == 0 and "nothing repeated" in again.stderr and len(new_machine.requests) == asked
    assert no_network == []


def test_offline_the_same_command_says_what_is_missing(new_machine: StandInHub, tmp_path: Path) -> None:
    done = bench("run", "--method", "promcse", "--backbone", "roberta-large", "--setting", "supervised", "--offline")
    assert done.exit_code == 2 and new_machine.requests == [] and not (tmp_path / "runs").exists()
    assert "error: " in done.stderr and "try: " in done.stderr
