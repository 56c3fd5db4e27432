"""What an older version holds is left there: nothing is copied, everything is found, and whatever is altered is told."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from commands import bench
from made_runs import made_run, made_runs

from bench.base.errors import DataDamaged, DataMissing
from bench.base.files import values_sha256
from bench.publish import build
from bench.publish.build import PublishOptions, publish
from bench.publish.check import check
from bench.publish.versions import versions
from bench.runs import RunsFolder
from bench.runs.arrays import GIVEN_SHA256, read_arrays, read_own
from bench.runs.record import older_below, place_of
from bench.verify import check_manifest, runs_below, verify_run


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """v1 of four runs, v2 of these and one more."""
    monkeypatch.setattr(build, "_figures", lambda *_: ())
    made_runs(tmp_path / "runs", {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("check",))
    make(tmp_path)
    made_run(tmp_path / "runs", "simcse", 3, suites=("check",))
    assert make(tmp_path) == "v2"
    return tmp_path / "board"


def make(tmp_path: Path, **asked: object) -> str:
    return publish(
        PublishOptions(
            **{"runs": tmp_path / "runs", "out": tmp_path / "board", "statistics": "no", **asked}
        )
    ).name  # type: ignore[arg-type]


def manifest(version: Path) -> dict[str, dict[str, object]]:
    return dict(json.loads((version / "MANIFEST.json").read_text()))


def test_what_the_older_version_holds_is_not_copied(out: Path) -> None:
    shutil.rmtree(out.parent / "runs")
    here = {
        path.relative_to(out / "v2").as_posix()
        for path in (out / "v2").rglob("*")
        if path.is_file()
    }
    (new,) = {path.split("/")[1] for path in here if path.endswith("run.json")}
    assert "-s3-" in new and {
        path.split("/")[1] for path in here if path.endswith(".npz") and path.startswith("runs/")
    } == {new}
    older = manifest(out / "v2")["older"]["v1"]
    assert isinstance(older, dict) and sum(name.endswith("run.json") for name in older) == 4
    assert sum(name.endswith(".npz") and name.startswith("runs/") for name in older) == 4
    assert any(name.startswith("tables/printed-") for name in older) and not here & set(older)
    assert [one.differences for one in check(out)] == [[], [], []]


@pytest.mark.slow
def test_a_version_verifies_from_the_repository_alone(out: Path) -> None:
    shutil.rmtree(out.parent / "runs")
    done = bench("verify", out / "v2")
    assert (
        done.exit_code == 0 and "5 runs, 5 scores computed again: nothing differs" in done.stdout
    ), done.stdout
    assert len(runs_below(out / "v2")) == 5 and len(runs_below(out)) == 5
    store = RunsFolder(out / "v2" / "runs")
    assert len(store.ids()) == 5 and [len(store.read(one).scores) for one in store.ids()] == [1] * 5
    assert [one.folder.parts[-3] for one in versions(out)[1].published()] == [
        "v1",
        "v1",
        "v1",
        "v1",
        "v2",
    ]
    shown = bench(
        "compare", "--runs", out / "v2" / "runs", "--statistics", "no", "--format", "json"
    )
    assert (
        shown.exit_code == 0
        and sum(len(row["runs"]) for row in json.loads(shown.stdout)["tables"][0]["rows"]) == 5
    )
    assert bench("runs", out / "v2" / "runs" / store.ids()[0]).exit_code == 0


def test_every_link_of_the_pages_leads_somewhere(out: Path) -> None:
    seen = 0
    for page in (out / "v2").rglob("*.html"):
        for href in re.findall(r'href="([^"#:]+)["#]', page.read_text(encoding="utf-8")):
            assert (page.parent / unquote(href)).exists(), (page, href)
            seen += "../v1/runs/" in href
    assert seen >= 4 * 3
    for name in re.findall(r"\]\(([^)#]+)\)", (out / "v2" / "README.md").read_text()):
        assert (out / "v2" / unquote(name)).exists() or name.startswith("http"), name
    data = json.loads((out / "v2" / "tables.json").read_text())
    assert all((out / "v2" / run["record"]).is_file() for run in data["runs"])
    panel = (out / "v2" / "index.html").read_text()
    assert panel.count("../v1/runs/") >= 4, "the panel's files lie there, too"


def test_what_is_altered_in_the_older_version_is_told_of_the_newer_one(out: Path) -> None:
    file = next((out / "v1" / "runs").rglob("CHECK.npz"))
    file.write_bytes(file.read_bytes() + b" ")
    found = check_manifest(out / "v2")
    assert found is not None and [one.why for one in found.differences] == [
        "changed since it was published"
    ]
    assert found.differences[0].what == f"v1/{file.relative_to(out / 'v1').as_posix()}"
    assert bench("verify", out / "v2").exit_code == 1


def test_a_version_without_the_older_one_says_what_it_lacks(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out / "v2", tmp_path / "alone" / "v2")
    found = check_manifest(tmp_path / "alone" / "v2")
    assert found is not None and {one.why for one in found.differences} == {
        "missing: v1 is not beside v2"
    }
    assert (
        RunsFolder(tmp_path / "alone" / "v2" / "runs").ids() != []
        and runs_below(tmp_path / "alone" / "v2") != []
    )


def test_a_third_version_names_the_one_that_holds_the_file(out: Path) -> None:
    shutil.rmtree(out.parent / "runs")
    assert make(out.parent, keep=True, anyway=True) == "v3"
    older = manifest(out / "v3")["older"]
    assert (
        set(older) == {"v1", "v2"} and sum(name.endswith("run.json") for name in older["v1"]) == 4
    )
    assert not list((out / "v3").rglob("*.npz")) and bench("verify", out / "v3").exit_code == 0
    assert [one.differences for one in check(out)] == [[]] * 4


@pytest.mark.slow
def test_a_preview_leaves_there_what_a_version_would(out: Path) -> None:
    make(out.parent, preview=True)
    assert not list((out / "preview").rglob("*.npz"))
    for href in re.findall(
        r'href="([^"#:]+)["#]', next((out / "preview" / "runs").glob("*/index.html")).read_text()
    ):
        assert (
            next((out / "preview" / "runs").glob("*/index.html")).parent / unquote(href)
        ).exists(), href


@pytest.mark.slow
def test_a_run_that_was_scored_again_is_stored_again(out: Path) -> None:
    store = RunsFolder(out.parent / "runs")
    first = store.read(store.ids()[0])
    (store.folder(first.run_id) / "run.json").write_text(
        json.dumps(first.to_json())
    )  # other bytes, the same content
    make(out.parent, anyway=True)
    assert (out / "v3" / "runs" / first.run_id / "run.json").is_file()
    assert len(list((out / "v3" / "runs" / first.run_id / "predictions").iterdir())) == 1
    assert not (out / "v3" / "given").exists(), "gold values of these sets are in v1"
    assert verify_run(out / "v3" / "runs" / first.run_id).differences == []


# --- what all runs share ---


@pytest.mark.slow
def test_gold_values_are_stored_once_and_nothing_is_lost(out: Path) -> None:
    assert len(list((out / "v1" / "given").iterdir())) == 1, (
        "one for each set, not for each of four runs"
    )
    store = RunsFolder(out.parent / "runs")
    for run_id in store.ids():
        for score in store.read(run_id).scores:
            kept = RunsFolder(out / "v2" / "runs").predictions_path(
                run_id, score.task, score.text, score.suite
            )
            own, given = read_own(kept)
            assert set(own) == {"prediction"} and given is not None
            assert values_sha256(read_arrays(kept)) == values_sha256(
                read_arrays(store.predictions_path(run_id, score.task, score.text))
            )
            assert set(read_arrays(kept, ("gold",))) == {"gold"}


def test_gold_values_that_are_missing_or_of_others_are_told(out: Path) -> None:
    run = next((out / "v1" / "runs").iterdir())
    _, given = read_own(run / "predictions" / "CHECK.npz")
    place = out / "v1" / "given" / f"{given}.npz"
    whole = place.read_bytes()
    place.unlink()
    with pytest.raises(
        DataMissing, match=f"its gold values are in given/{given}.npz, which is not there"
    ):
        read_arrays(run / "predictions" / "CHECK.npz")
    with np.load(io.BytesIO(whole)) as arrays:
        np.savez(place, **{name: arrays[name][::-1] for name in arrays.files})
    assert verify_run(run).differences, "the record's hash is over gold values, too"
    place.write_bytes(whole)
    assert verify_run(run).differences == []


@pytest.mark.parametrize("given", ["../../etc/passwd", "x" * 64, "A" * 64, ""])
def test_a_predictions_file_names_no_place_of_its_own(tmp_path: Path, given: str) -> None:
    np.savez(tmp_path / "a.npz", prediction=np.zeros(3), **{GIVEN_SHA256: np.array(given)})
    with pytest.raises(DataDamaged, match="is no hash"):
        read_arrays(tmp_path / "a.npz")


def test_a_manifest_leads_nowhere_else(tmp_path: Path) -> None:
    version = tmp_path / "board" / "v2"
    version.mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    older = {
        "..": {"secret": "0"},
        "v1": {"../../secret": "0", "/etc/passwd": "0"},
        "v01": {"a": "0"},
    }
    (version / "MANIFEST.json").write_text(json.dumps({"files": {}, "older": older}))
    assert older_below(version) == {} and place_of(version / "secret") == version / "secret"
    found = check_manifest(version)
    assert found is not None and {one.why for one in found.differences} == {
        "leads out of the folder"
    }
