"""Versions: made whole or not at all, the same bytes for the same runs, never changed afterwards,
verified from the folder alone.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from commands import bench
from made_runs import damaged_run, failed_run, made_run
from msgspec.structs import replace
from published import Publish
from recomputed import packed_arrays

from bench.base.errors import BenchError, DataDamaged
from bench.base.hashes import values_sha256
from bench.publish import build
from bench.publish.versions import check_versions, versions
from bench.records import RunsFolder
from bench.records.arrays import read_arrays
from bench.records.packed import MANIFEST, NAME, Packed, narrow, read_packed
from bench.verify import runs_below, verify_run


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def policy_of(page: Path) -> str:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page.read_text("utf-8"))
    assert found is not None, page
    return found[1]


# --- what a version is ---


def test_every_page_has_the_same_policy(quick: Publish, out: Path) -> None:
    quick()
    pages = sorted(out.rglob("*.html"))
    assert out / "index.html" in pages and len(pages) > 4
    policies = {policy_of(page) for page in pages}
    assert len(policies) == 1 and policies.pop().startswith("default-src 'none'")


def test_a_version_has_everything_and_verifies_by_itself(
    quick: Publish, runs: Path, out: Path
) -> None:
    made = quick(title="A board", note="Only a test.")
    assert made.name == "v1" and made.folder == out / "v1" and made.board.changes is None
    shutil.rmtree(runs)
    found = set(contents(out / "v1"))
    assert {"index.html", "README.md", "tables.json", NAME, MANIFEST, "assets/board.css"} <= found
    ids = [path.name for path in (out / "v1" / "runs").iterdir()]
    names = {"index.html", "run.json", "curve.jsonl"}
    assert len(ids) == 4
    assert {path for path in found if path.startswith("runs/")} == {
        f"runs/{run}/{name}" for run in ids for name in names
    }
    (report,) = check_versions(out)
    assert report.differences == [] and report.count() == len(found) - 1
    reports = [verify_run(folder) for folder in runs_below(out / "v1")]
    assert [(one.differences, one.count("score")) for one in reports] == [([], 1)] * 4


def test_the_same_runs_give_the_same_bytes(
    quick: Publish, runs: Path, out: Path, tmp_path: Path
) -> None:
    quick()
    other = tmp_path / "elsewhere" / "runs"
    shutil.copytree(runs, other)
    (other / next(other.iterdir()).name / "checkpoint").mkdir()
    quick(runs=other, out=tmp_path / "second")
    assert contents(out) == contents(tmp_path / "second")


@pytest.mark.slow
def test_the_next_version_leaves_the_last_one_alone_and_shows_what_changed(
    quick: Publish, runs: Path, out: Path
) -> None:
    quick(note="First.")
    before = contents(out / "v1")
    assert quick().folder is None and quick(note="First.").folder is None
    made_run(runs, "simcse", 3, suites=("check",))
    made_run(runs, "promptbert", 1, suites=("check",))
    made = quick()
    assert made.name == "v2" and contents(out / "v1") == before
    assert made.board.changes is not None
    changed = {row.row: row.differs for row in made.board.changes.rows}
    assert changed == {"promptbert": "new", "simcse": "seeds: 1-2 before, 1-3 now"}
    assert "| simcse | unsupervised, builtin |" in (out / "v2" / "README.md").read_text()
    page = (out / "v2" / "index.html").read_text()
    assert "Changed since v1" in page
    index = (out / "index.html").read_text()
    assert index.index('id="v2"') < index.index('id="v1"')
    # the runs of a version are a runs folder: the next version needs no other
    shutil.rmtree(runs)
    again = quick(runs=out / "v2" / "runs")
    assert again.folder is None
    third = quick(runs=out / "v2" / "runs", note="")
    assert third.name == "v3" and versions(out)[-1].note is None
    assert (out / "v3" / NAME).read_bytes() == (out / "v2" / NAME).read_bytes()


# --- which runs are in it ---


def test_runs_that_cannot_be_published_are_named_without_the_publishers_folders(
    quick: Publish, runs: Path, out: Path
) -> None:
    failed = failed_run(runs)
    damaged_run(runs)
    bare = made_run(runs, "diffcse", 1, suites=("check",), keep_predictions=False)
    lines = quick().board.left_out
    assert f"{failed.run_id}: failed: the loss is not finite at step 12" in lines
    starts = ("broken-builtin-s1-00000000: damaged: ", f"{bare.run_id}: cannot be published: ")
    assert all(any(line.startswith(start) for line in lines) for start in starts)
    assert not any(str(runs) in line for line in lines)
    assert not (out / "v1" / "runs" / bare.run_id).exists()


@pytest.mark.parametrize("what", ["score", "hash", "average"])
def test_a_score_that_does_not_follow_from_its_predictions_is_not_published(
    quick: Publish, tmp_path: Path, what: str
) -> None:
    runs = tmp_path / "mine"
    suites = ("sts",) if what == "average" else ("check",)
    made_run(runs, "simcse", 1, suites=suites)
    run = made_run(runs, "promcse", 1, suites=suites)
    change = {"predictions_sha256": "0" * 64} if what == "hash" else {"value": 99.0}
    scores = [*run.scores]
    scores[-1] = replace(scores[-1], **change)
    RunsFolder(runs).write(replace(run, scores=tuple(scores)))
    (line,) = quick(runs=runs).board.left_out
    assert line.startswith(f"{run.run_id}: cannot be published: ")


# --- nothing is lost, nothing is altered unnoticed ---


FILES = (
    "index.html",
    "README.md",
    "tables.json",
    "tables/*.csv",
    "methods/*.html",
    "runs/*/index.html",
    "runs/*/run.json",
    "runs/*/curve.jsonl",
    "assets/*.css",
    "assets/*.js",
    "plan.md",
    NAME,
    MANIFEST,
)
"""Every kind of file of a version; figures and searches are written like these."""


def test_every_kind_of_file_is_tampered_with_below(quick: Publish, out: Path) -> None:
    (out / "plans").mkdir(parents=True)
    (out / "plans" / "v1.md").write_text("# Plan")
    quick()
    known = {path for kind in FILES for path in (out / "v1").glob(kind)}
    assert {path for path in (out / "v1").rglob("*") if path.is_file()} == known


@pytest.mark.parametrize("change", ["changed", "missing", "link", "not listed"])
@pytest.mark.parametrize("kind", FILES)
def test_what_is_altered_is_named(version: Path, tmp_path: Path, kind: str, change: str) -> None:
    out = tmp_path / "leaderboards"
    shutil.copytree(version.parent, out)
    path = sorted((out / "v1").glob(kind))[0]
    name, why = path.relative_to(out / "v1").as_posix(), change
    if change == "changed":
        path.write_bytes(path.read_bytes() + b" ")
    elif change == "missing":
        path.unlink()
    elif change == "link":
        path.rename(out / "elsewhere")
        path.symlink_to(out / "elsewhere")
        why = "a link or a pipe, not a file"
    else:
        path = path.with_name("more.txt")
        path.write_text("x")
        name = path.relative_to(out / "v1").as_posix()
    done = bench("publish", "--check", "--out", out)
    if (kind, change) == (MANIFEST, "changed"):
        # the same list, which nothing lists; git and signed tags guard it
        assert done.exit_code == 0
        return
    said = " ".join(done.output.split())
    if (kind, change) == (MANIFEST, "link"):  # it is not followed
        assert done.exit_code == 1 and MANIFEST in said, done.output
        return
    assert done.exit_code == 1 and f"v1 files {name} {why}" in said, done.output
    with pytest.raises(BenchError, match="v1 has changed since it was published"):
        build.publish_version(runs=version / "runs", out=out)


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for seed in (1, 2):
        made_run(folder / "runs", "simcse", seed, suites=("check",))
    (folder / "leaderboards" / "plans").mkdir(parents=True)
    (folder / "leaderboards" / "plans" / "v1.md").write_text("# Plan")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "board_figures", lambda *_: ())
        made = build.publish_version(runs=folder / "runs", out=folder / "leaderboards")
    assert made.folder is not None
    return made.folder


def test_an_error_on_the_way_leaves_nothing_and_leftovers_of_a_kill_are_removed(
    quick: Publish, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick()
    before = contents(out)
    (out / ".publishing-dead" / "version").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(build, "version_files", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quick(note="Another.")
    assert contents(out) == before and not list(out.glob(".publishing-*"))
    (out / "index.html").unlink()  # as if a process was killed before it wrote the index
    quick()
    assert contents(out) == before


def test_mistakes_are_one_line(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, error in [
        (("--runs", empty), "no finished run in"),
        (("--runs", runs, "--out", tmp_path / "file"), "file"),
        (("--runs", runs, "--baseline", "nobody"), "nobody"),
        (("--runs", runs, "--submissions", tmp_path / "none"), "does not exist"),
        (("--runs", runs, "--predictions-url", "file:///etc/passwd"), "expected https://"),
        (("--check",), "no version in"),
    ]:
        out = () if "--out" in words else ("--out", tmp_path / "boards")
        done = bench("publish", *words, *out)
        assert done.exit_code == 2 and error in done.stderr and "Traceback" not in done.stderr


# --- one file of predictions ---


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.arange(5), "int8"),
        (np.array([-40_000, 7]), "int32"),
        (np.array([0.5, np.nan, -0.0, np.inf]), "float16"),
        (np.array([0.1]), "float64"),
        (np.array([np.float32(0.1)]), "float32"),
        (np.array([True, False]), "bool"),
        (np.array([["a", "ü\n"], ["", "c"]]), "<U2"),
        (np.array(3), "int8"),
        (np.asfortranarray(np.arange(6).reshape(2, 3)), "int8"),
        (np.zeros((0, 4)), "float16"),
    ],
)
def test_arrays_are_the_same_when_read_again(
    tmp_path: Path, values: np.ndarray, dtype: str
) -> None:
    assert narrow(values).dtype == dtype
    packed = Packed()
    packed.add("runs/a/predictions/T.npz", {"prediction": values, "gold": values})
    packed.add("runs/b/predictions/T.npz", {"prediction": values})
    packed.write(tmp_path / NAME)
    for run in "ab":
        arrays = read_arrays(tmp_path / "runs" / run / "predictions" / "T.npz")
        assert values_sha256({"": arrays["prediction"]}) == values_sha256({"": values})
    only = read_packed(tmp_path / "runs/a/predictions/T.npz", ("gold",))
    assert only is not None and list(only) == ["gold"]


def test_ranks_that_are_stored_as_differences_are_the_same_when_read_again(tmp_path: Path) -> None:
    """Also where a difference needs all 16 bits, where two runs agree, and of the first run of a
    method.
    """
    draw = np.random.default_rng(1)
    near = np.arange(400, dtype=np.int16)
    ranks = {
        "simcse-builtin-s1-0a": near,
        "simcse-builtin-s2-0b": near[::-1].copy(),
        "tsdae-builtin-s1-0c": draw.integers(-(2**15), 2**15, 400).astype(np.int16),
        "tsdae-builtin-s2-0d": near,
        "tsdae-builtin-s3-0e": draw.integers(-(2**15), 2**15, 400).astype(np.int16),
        "tsdae-builtin-s4-0f": np.arange(401, dtype=np.int16),
    }
    ranks["tsdae-builtin-s5-10"] = ranks["tsdae-builtin-s3-0e"]
    packed = Packed()
    for run, values in ranks.items():
        packed.add(f"runs/{run}/predictions/T.npz", {"prediction": values})
    packed.write(tmp_path / NAME)
    assert [row[2] for row in packed.rows] == ["i2", "d2", "d2", "i2", "d2", "i2", "i2"]
    for run, values in ranks.items():
        path = f"runs/{run}/predictions/T.npz"
        found = read_arrays(tmp_path / path)["prediction"]
        assert found.dtype == np.int16 and np.array_equal(found, values)
        assert np.array_equal(packed_arrays(tmp_path / NAME)[path]["prediction"], values)


def test_a_file_that_is_not_one_of_ours_costs_one_line(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "runs" / "a" / "predictions" / "T.npz"
    row = {"file": "runs/a/predictions/T.npz", "array": "gold", "same": None}
    hostile = [
        {**row, "dtype": "i8", "shape": [1 << 30], "data": b"x"},
        {**row, "dtype": "O", "shape": [1], "data": b"x" * 8},
        {**row, "dtype": "U", "shape": [1], "data": b"[[[["},
        {**row, "dtype": "i1", "shape": [-1], "data": b"x"},
        {**row, "dtype": "i1", "shape": [1], "data": None, "same": 99},
        {**row, "dtype": "i1", "shape": [1], "data": b"x", "same": 0},
        {**row, "dtype": "d2", "shape": [1], "data": b"x"},
        {**row, "dtype": "d2", "shape": [1], "data": b"xx", "same": 0},
    ]
    for content in hostile:
        parquet.write_table(pa.Table.from_pylist([content]), tmp_path / NAME)
        with pytest.raises(DataDamaged, match="not a predictions file"):
            read_arrays(path)
    whole = (tmp_path / NAME).read_bytes()
    for data in (b"", b"PAR1", whole[: len(whole) // 2], whole[:40] + b"\xff" * 40 + whole[80:]):
        (tmp_path / NAME).write_bytes(data)
        with pytest.raises(DataDamaged):
            read_arrays(path)


# --- predictions that lie elsewhere ---


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/p.parquet", folder / "p.parquet"
        server.shutdown()


def test_predictions_elsewhere_are_fetched_by_hash(
    runs: Path, out: Path, server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, served = server
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    words = ("publish", "--runs", runs, "--out", out)
    done = bench(*words, "--predictions-url", url)
    assert done.exit_code == 0, done.output
    assert not (out / "v1" / NAME).exists()
    (out / f"v1.{NAME}").rename(served)
    known = json.loads((out / "v1" / MANIFEST).read_bytes())["predictions_url"]
    assert known["url"] == url and known["bytes"] == served.stat().st_size
    whole = served.read_bytes()

    missing = bench("verify", out / "v1", "--offline")
    assert missing.exit_code == 1 and "0 scores computed again" in missing.output
    assert url in "".join(missing.output.split())
    served.write_bytes(whole[:-1] + b"x")
    other = bench("verify", out / "v1")
    assert other.exit_code == 1 and "has the wrong checksum" in " ".join(other.output.split())
    served.unlink()
    gone = bench("verify", out / "v1")
    assert gone.exit_code == 1 and "no score was computed again" in " ".join(gone.output.split())
    served.write_bytes(whole)
    good = bench("verify", out / "v1")
    assert good.exit_code == 0 and "4 scores computed again: nothing differs" in good.output
    served.unlink()  # it is in the cache now
    assert bench("verify", out / "v1", "--offline").exit_code == 0
    assert bench("publish", "--check", "--out", out).exit_code == 0
