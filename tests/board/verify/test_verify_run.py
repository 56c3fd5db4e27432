"""Whatever is changed in a run's folder after the fact is found out, and named; what was not
changed agrees.
"""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scored_run import finished_run, predictions

from bench.base.findings import AGREES, DIFFERS, UNCHECKED
from bench.base.hashes import values_sha256
from bench.board.verify import verify_run
from bench.records import RunRecord, RunsFolder
from bench.records.fingerprint import fingerprint_of, record_fingerprint
from bench.records.selection import known_sets


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def differing(store: RunsFolder, run: RunRecord) -> set[str]:
    return {one.kind for one in verify_run(store.folder(run.run_id)).differences}


def test_an_untouched_run_agrees_in_everything(store: RunsFolder) -> None:
    run = finished_run(store)
    report = verify_run(store.folder(run.run_id))
    assert [one for one in report.findings if one.outcome != AGREES] == []
    assert {one.kind for one in report.findings} == {
        "score",
        "predictions",
        "gold",
        "data",
        "checkpoint",
        "fingerprint",
    }


def change_score(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: replace(run, scores=(replace(run.scores[0], **changes),))


def set_fields(**fields: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: replace(run, **fields)


def set_data(data: dict[str, str]) -> Callable[[RunRecord], RunRecord]:
    return lambda run: replace(run, provenance=replace(run.provenance, data=data))


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (change_score(n=999), {"score"}),
        (change_score(predictions_sha256="0" * 64), {"predictions"}),
        (set_fields(seed=43), {"fingerprint"}),
        (set_fields(backbone="bert-base-uncased"), set()),  # its revision counts, not its name
        (set_data({}), {"data"}),
        (set_fields(checkpoint={}), {"checkpoint"}),
    ],
)
def test_a_record_that_was_changed_is_found_out(
    store: RunsFolder, change: Callable[[RunRecord], RunRecord], kinds: set[str]
) -> None:
    run = finished_run(store)
    store.write(change(run))
    assert differing(store, run) == kinds


@pytest.mark.parametrize("content", [None, b"PK\x03\x04 nonsense"])
def test_predictions_that_are_missing_or_damaged(store: RunsFolder, content: bytes | None) -> None:
    run = finished_run(store)
    path = predictions(store, run)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert differing(store, run) == {"score"}


@pytest.mark.parametrize("change", ["more", "less"])
def test_a_checkpoint_that_was_changed_is_found_out(store: RunsFolder, change: str) -> None:
    run = finished_run(store)
    file = store.folder(run.run_id) / "checkpoint" / "method.json"
    if change == "less":
        file.unlink()
    else:
        file.with_name("more.json").write_text('{"method": "SimCSE"}\n')
    (found,) = verify_run(store.folder(run.run_id)).differences
    assert (
        found.kind == "checkpoint"
        and ("more.json" if change == "more" else "method.json") in found.why
    )


def test_a_record_without_hashes_is_verified_as_far_as_it_goes(store: RunsFolder) -> None:
    run = finished_run(store)
    file = store.folder(run.run_id) / "run.json"
    old = json.loads(file.read_text())
    del old["checkpoint"], old["provenance"]["determines"], old["scores"][0]["predictions_sha256"]
    file.write_text(json.dumps(old))
    report = verify_run(file.parent)
    assert report.differences == []
    assert {one.kind for one in report.unchecked} == {"predictions", "checkpoint", "fingerprint"}


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema": "bench.run/99"}',
        b'{"a": "\x1b[2J"}',
    ],
)
def test_a_damaged_record_is_one_difference(store: RunsFolder, content: bytes) -> None:
    run = finished_run(store)
    (store.folder(run.run_id) / "run.json").write_bytes(content)
    report = verify_run(store.folder(run.run_id))
    assert [one.kind for one in report.findings] == ["record"] and len(report.differences) == 1
    assert report.findings[0].why.isprintable()


HOLDER = """
import sys
from bench.records import RunsFolder
with RunsFolder({runs!r}).lock({run_id!r}):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_run_that_another_process_works_on_is_left_alone(store: RunsFolder) -> None:
    run = finished_run(store)
    code = HOLDER.format(runs=str(store.path), run_id=run.run_id)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"held\n"
        report = verify_run(store.folder(run.run_id))
        child.kill()
    assert (
        report.differences == []
        and f":{child.pid}" in report.unchecked[0].why
        and report.status == "in work"
    )
    assert (store.folder(run.run_id) / ".lock").read_text(), (
        "the name of the process that was killed is still there"
    )
    assert verify_run(store.folder(run.run_id)).status == "finished"
    with store.lock(run.run_id):
        pass  # asking did not take the lock


def test_the_known_hashes_are_those_of_the_data(shared: Path) -> None:
    """The hashes in the package equal the hashes of the data folder, for sets that are quick to
    read.
    """
    from bench.data.sets import DataFolder
    from bench.data.sets.clustering import read_clustering
    from bench.data.sets.sts import read_sts
    from bench.data.sets.transfer import read_transfer

    data = DataFolder(shared / "data", offline=True)
    for name in ("STS13", "STS-B"):
        pairs = read_sts(data, name)
        assert known_sets()["given"][f"sts/{name}"] == {
            "gold": values_sha256({"gold": pairs.gold}),
            "subset": values_sha256({"subset": np.array(pairs.subset)}),
        }
        known = known_sets()["data"]
        assert known[f"sts/{name}"] == pairs.sha256 != known[f"sts/{name}@raw"]
    trec = read_transfer(data, "TREC")
    assert known_sets()["given"]["transfer/TREC"]["gold"] == values_sha256(
        {"gold": trec.labels[trec.split == "test"]}
    )
    texts = read_clustering(data, "SearchSnippets")
    assert known_sets()["given"]["clustering/SearchSnippets"]["gold"] == values_sha256(
        {"gold": texts.labels}
    )


def test_the_hash_is_computed_as_documented() -> None:
    arrays = {
        "b": np.array([[1, -2]], dtype=np.int16),
        "a": np.array([0.5], dtype=np.float32),
        "c": np.array(["é", "x"]),
    }
    by_hand = (
        b'["a", "floats", [1]]\n'
        + struct.pack("<d", 0.5)
        + b'["b", "integers", [1, 2]]\n'
        + struct.pack("<qq", 1, -2)
    )
    by_hand += b'["c", "text", [2]]\n' + b'["\\u00e9", "x"]'
    assert values_sha256(arrays) == hashlib.sha256(by_hand).hexdigest()
    with pytest.raises(ValueError, match="neither numbers nor text"):
        values_sha256({"a": np.array([None])})


def test_the_fingerprint_of_a_plan_is_found_again_in_its_record(store: RunsFolder) -> None:
    """The content counts for a recipe key that names a place: the file may be elsewhere."""
    run = finished_run(store)
    values = {key: one.value for key, one in run.recipe.items() if key != "teacher"}
    beyond = {"precision": "bf16", "dev": None, "something new": [1, 2]}
    determines = {
        **{
            "method": run.method,
            "plugin": run.provenance.plugin.identity,
            "variant": "",
            "setting": run.setting,
        },
        **{"seed": run.seed, "backbone": "e" * 40, "corpus": "c" * 64, "recipe": values},
        **{"places": {"words": "1" * 64}, **beyond},
    }
    stored = beyond | {"places": {"teacher": None, "words": "1" * 64}}
    origin = replace(run.provenance, determines=stored)
    for path in ("/here/words.txt", "/there/words.txt"):
        recipe = {**run.recipe, "words": replace(run.recipe["epochs"], value=path)}
        made = replace(run, recipe=recipe, provenance=origin)
        assert record_fingerprint(made) == fingerprint_of(determines)
    other = record_fingerprint(replace(made, seed=1))
    assert other != fingerprint_of(determines)
    unknown = replace(made, provenance=replace(origin, determines=None))
    assert record_fingerprint(unknown) is None


def test_the_data_of_a_score_is_told_by_its_hash(store: RunsFolder) -> None:
    """A known set; and a set in a text form that nobody knows."""
    run = finished_run(store)

    def outcomes(protocol: str, data: dict[str, str]) -> list[str]:
        sts = {"suite": "sts", "task": "STS13", "protocol": protocol}
        origin = replace(run.provenance, data=data)
        store.write(replace(run, scores=(replace(run.scores[0], **sts),), provenance=origin))
        findings = verify_run(store.folder(run.run_id)).findings
        return [one.outcome for one in findings if one.kind == "data"]

    known = known_sets()["data"]["sts/STS13"]
    assert outcomes("senteval-all/1", {"STS13": known}) == [AGREES]
    assert outcomes("senteval-all/1", {"STS13": "0" * 64}) == [DIFFERS]
    assert outcomes("senteval-all-12345678/1", {"STS13@12345678": "0" * 64}) == [UNCHECKED]
