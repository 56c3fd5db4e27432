"""Files of a folder that somebody else made: links, pipes, devices, sizes, forged arrays; each
costs one run, and no verb waits.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_run import finished_run

from bench.base.errors import BenchError, DataDamaged
from bench.base.parquet import TooLarge, read_batches
from bench.base.reading import (
    NotPlainFile,
    is_plain_file,
    list_plain_files,
    open_plain_file,
    read_plain_file,
    refuse_links,
)
from bench.board.verify import check_manifest
from bench.records import RunsFolder
from bench.records.arrays import read_arrays
from bench.records.curve import read_curve
from bench.records.damage import foreign_files
from bench.records.packed import Packed
from bench.records.record import Score


def test_a_regular_file_is_read_and_a_link_above_its_folder_is_followed(tmp_path: Path) -> None:
    run = tmp_path / "disk" / "run"
    (run / "below").mkdir(parents=True)
    (run / "below" / "file").write_bytes(b"abc")
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    linked = tmp_path / "runs" / "run"
    assert read_plain_file(linked / "below" / "file", 3, inside=linked) == b"abc"
    assert list_plain_files(linked) == [linked / "below" / "file"]
    with pytest.raises(FileNotFoundError):
        read_plain_file(run / "other", 3)


def test_a_file_is_read_whole_if_each_read_gives_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(range(100)))
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, count: read(handle, min(count, 7)))
    assert read_plain_file(file, 100) == bytes(range(100))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_of_unknown_size_is_read_up_to_the_limit() -> None:
    """Files of /proc say that they have no bytes."""
    status = Path("/proc/self/status")
    assert b"Name:" in read_plain_file(status, 1 << 20)
    with pytest.raises(NotPlainFile, match="too large: the limit is 10 bytes"):
        read_plain_file(status, 10)


def test_links_pipes_and_folders_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcd")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"x")
    (tmp_path / "below").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    reasons = {
        "link": "a link",
        "below/file": "below is a link",
        "pipe": "a pipe",
        "folder": "a folder",
        "file": "too large: 4 bytes, the limit is 3",
        "../x": "leads out",
    }
    for name, reason in reasons.items():
        with pytest.raises(NotPlainFile) as caught:
            open_plain_file(tmp_path / name, 3, inside=tmp_path)
        assert reason in str(caught.value.strerror), name
    with pytest.raises(NotPlainFile, match="pipe or a device"):
        open_plain_file(Path("/dev/zero"), 3)
    assert is_plain_file(tmp_path / "file") and not is_plain_file(tmp_path / "link")
    with pytest.raises(BenchError, match="nothing is written"):
        refuse_links(tmp_path)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b" " * 16
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


FORGED = {
    "larger than the file": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}"
    ),
    "a product that overflows": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"
    ),
    "negative": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b"0" * 8),
    "objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\nsystem\n"),
    "text without letters": npy(
        "{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000,)}"
    ),
    "fields": npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", b"0" * 8),
    "deep": npy("{'descr': " + "(" * 500 + "}"),
    "not a header": npy("{'descr'"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_headers_of_arrays_are_one_error(kind: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("prediction.npy", FORGED[kind])
    with pytest.raises(DataDamaged) as caught:
        read_arrays(tmp_path / "a.npz")
    assert "\n" not in caught.value.message and str(tmp_path) in caught.value.message


def test_an_archive_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    plain = io.BytesIO()
    np.save(plain, np.zeros(1 << 20))
    for method, reason in (
        (zipfile.ZIP_BZIP2, "neither stored nor deflated"),
        (zipfile.ZIP_DEFLATED, "not a predictions file"),
    ):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
            archive.writestr("prediction.npy", plain.getvalue())
        data = (tmp_path / "a.npz").read_bytes()
        size = len(plain.getvalue()).to_bytes(4, "little")
        (tmp_path / "a.npz").write_bytes(data.replace(size, (200).to_bytes(4, "little")))
        with pytest.raises(DataDamaged, match=reason):
            read_arrays(tmp_path / "a.npz")


def test_a_dictionary_of_one_long_text_is_counted_for_each_row(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    indices = pa.array([0] * 20_000, pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 1_000_000]))
    parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet", compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    with pytest.raises(TooLarge):
        for _ in read_batches(tmp_path / "a.parquet", ["text"], 50_000_000):
            pass
    batches = read_batches(tmp_path / "a.parquet", ["text"], 1 << 40)
    rows = sum(batch.num_rows for batch in batches)
    assert rows == 20_000


def test_short_texts_are_read_in_large_batches_and_repeated_long_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.base.parquet.BATCH_BYTES", 4 << 20)
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def rows_of_batches(texts: list[object], **options: object) -> list[int]:
        parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", **options)
        batches = read_batches(tmp_path / "a.parquet", ["text"], 1 << 40)
        return [batch.num_rows for batch in batches]

    assert max(rows_of_batches([f"a text of some words {i}" for i in range(30_000)])) == 10_000
    long = "x" * 16_000
    assert max(rows_of_batches([None, *[long] * 320])) <= 300
    assert max(rows_of_batches([[long, "y"]] * 160)) <= 150
    delta = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    assert max(rows_of_batches([long] * 320, **delta)) <= 300


def test_the_longest_text_of_an_array_is_counted_for_each_text(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    texts = json.dumps(["x" * 1_000_000, *[""] * 4999]).encode()
    packed = Packed()
    packed.rows.append(("runs/a/predictions/A.npz", "subset", "U", (5000,), texts, None))
    packed.write(tmp_path / "predictions.parquet")
    with pytest.raises(DataDamaged, match="5,000 texts of up to 1,000,000 letters"):
        read_arrays(tmp_path / "runs/a/predictions/A.npz")


def test_a_manifest_of_many_missing_files_names_ten(tmp_path: Path) -> None:
    files = {f"runs/{i}/run.json": "0" * 64 for i in range(1000)}
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"files": files}))
    report = check_manifest(tmp_path)
    assert report is not None and len(report.findings) == 11
    assert report.findings[-1].why == "and 990 more files differ"


def test_a_curve_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"step": 1, "loss": 2.0}\n')
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "curve.jsonl").symlink_to("../secret")
    with pytest.raises(DataDamaged, match="a link, not a file"):
        read_curve(tmp_path / "run")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path / "runs")
    run = finished_run(store, seed=1)
    (tmp_path / "mine").write_text("mine")
    lock = store.folder(run.run_id) / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to("../../mine")
    with pytest.raises(BenchError, match="a link"), store.lock(run.run_id):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["mteb/../../outside/STS16.json", "{outside}/STS16.json"])
def test_a_result_file_of_mteb_outside_of_the_run_is_not_opened(tmp_path: Path, name: str) -> None:
    named = name.format(outside=tmp_path / "outside")
    facts: Any = {"suite": "mteb", "task": "STS16", "protocol": "mteb/1", "metric": "m"}
    score = Score(**facts, value=1.0, n=1, detail={"results": [named]})
    assert foreign_files(score, tmp_path / "run") == []
