"""The word that a run was encoded again: written where it was, and worth nothing once the run is another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from scored_run import finished_run, predictions

from bench.runs import RunRecord, RunsFolder
from bench.verify import AGREES, UNCHECKED, Finding, verify_run
from bench.verify.attestation import attestation, entry, write


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def attested(store: RunsFolder, run: RunRecord, outcome: str = AGREES) -> bool:
    folder = store.folder(run.run_id)
    report = verify_run(
        folder,
        None,
        lambda *_: [
            Finding("encoding", "check CHECK", outcome, "" if outcome == AGREES else "why")
        ],
    )
    found = entry(report, folder, date="2026-11-21", device="cpu")
    if found is not None:
        write(folder / "verified.json", {run.run_id: found})
    return found is not None


def test_what_was_encoded_again_is_believed(store: RunsFolder) -> None:
    run = finished_run(store)
    assert attestation(store.folder(run.run_id)) is None
    assert attested(store, run)
    found = attestation(store.folder(run.run_id))
    assert found is not None and (found.date, found.device, found.tasks) == ("2026-11-21", "cpu", 1)
    assert found.words().startswith(
        "encoded again from its checkpoint on 2026-11-21 (cpu, bench "
    ) and found.words().endswith("on 1 task")


def test_what_was_not_is_not(store: RunsFolder) -> None:
    run = finished_run(store)
    assert not attested(store, run, UNCHECKED), "a task whose data was missing"
    store.write(replace(run, scores=(replace(run.scores[0], value=1.0),)))
    assert not attested(store, run), "a score that does not follow from its predictions"
    assert attestation(store.folder(run.run_id)) is None


@pytest.mark.parametrize("what", ["record", "cut", "schema", "another run", "large"])
def test_another_record_has_lost_it(
    store: RunsFolder, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = finished_run(store), store.path
    assert attested(store, run)
    folder = store.folder(run.run_id)
    content = json.loads((folder / "verified.json").read_text())
    if what == "record":
        store.write(replace(run, cost=replace(run.cost, train_seconds=1.0)))
    elif what == "cut":
        (folder / "verified.json").write_text((folder / "verified.json").read_text()[:50])
    elif what == "schema":
        (folder / "verified.json").write_text(json.dumps(content | {"schema": "bench.verified/9"}))
    elif what == "another run":
        (folder / "verified.json").write_text(
            json.dumps(content | {"runs": {"other": content["runs"][run.run_id]}})
        )
    else:
        monkeypatch.setattr("bench.verify.attestation.LARGEST", 10)
    assert attestation(folder) is None


def test_predictions_whose_hash_the_record_does_not_keep(store: RunsFolder) -> None:
    run = finished_run(store)
    run = replace(run, scores=(replace(run.scores[0], predictions_sha256=None),))
    store.write(run)
    assert attested(store, run) and attestation(store.folder(run.run_id)) is not None
    predictions(store, run).write_bytes(predictions(store, run).read_bytes() + b"more")
    assert attestation(store.folder(run.run_id)) is None
