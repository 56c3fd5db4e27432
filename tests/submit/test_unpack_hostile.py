"""Files that a stranger made: a clear refusal each, nothing outside the folder, nothing left, no memory taken."""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.base.errors import BenchError, DataDamaged
from bench.verify.submit import unpack, unpacking

RUN = "simcse-builtin-s1-0123abcd"
RECORD = f"runs/{RUN}/run.json"
FILES = {
    RECORD: b"{}",
    f"runs/{RUN}/predictions/STS12.npz": b"some",
    f"runs/{RUN}/curve.jsonl": b'{"step": 1}\n',
}
Change = Callable[[zipfile.ZipInfo], None]


def header(packed: dict[str, bytes], /, **changes: object) -> bytes:
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in packed.items()}
    return json.dumps(
        {"schema": unpacking.SCHEMA, "submitted_by": "Eve", "bench_version": "1", "files": hashes}
        | changes
    ).encode()


def made(
    path: Path, files: dict[str, bytes], first: bytes | None = None, change: Change | None = None
) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("submission.json", header(files) if first is None else first)
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if change is not None:
                change(info)
            archive.writestr(info, data)
    return path


def refused(path: Path, tmp_path: Path) -> str:
    """The one line; and nothing but the file is there afterwards."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataDamaged) as error:
        unpack(path, tmp_path / "in" / "out")
    assert [one for one in sorted(tmp_path.rglob("*")) if one != tmp_path / "in"] == [
        one for one in before if one != tmp_path / "in"
    ]
    line = str(error.value.message)
    assert (
        line.startswith(f"{path.name} is refused: ")
        and "\n" not in line
        and len(line) < 300
        and error.value.hint
    )
    return line.removeprefix(f"{path.name} is refused: ")


def test_what_is_as_it_should_be_is_taken(tmp_path: Path) -> None:
    found = unpack(made(tmp_path / "a.zip", FILES), tmp_path / "out")
    assert found.by == "Eve" and found.runs == (RUN,)
    assert {
        f"runs/{one.relative_to(tmp_path / 'out')}": one.read_bytes()
        for one in (tmp_path / "out").rglob("*")
        if one.is_file()
    } == FILES


@pytest.mark.parametrize(
    "name",
    [
        "../run.json",
        "/etc/passwd",
        f"runs/{RUN}/../../../run.json",
        f"runs/../{RUN}/run.json",
        "runs/../run.json",
        "runs/./run.json",
        f"runs\\{RUN}\\run.json",
        "C:/run.json",
        f"runs/{RUN}/predictions/../../x.npz",
        f"runs/{RUN}/predictions/a/b.npz",
        f"runs/{RUN}/predictions/.npz",
        f"runs/{RUN}/run.json/x",
        f"runs/{RUN}/",
        f"runs/{RUN}/checkpoint/model.pt",
        f"runs/{RUN}/checkpoint/model.pkl",
        f"runs/{RUN}/checkpoint/model.bin",
        f"runs/{RUN}/checkpoint/code.py",
        f"runs/{RUN}/checkpoint/../x.json",
        f"runs/{RUN}/checkpoint/a/b/c/d/e.json",
        f"runs/{RUN}/verified.json",
        f"runs/{RUN}/.lock",
        f"runs/{RUN}/state/optimizer.safetensors",
        "index.html",
        "runs/-x/run.json",
        f"runs/{RUN}\n/run.json",
        f"runs/{'x' * 300}/run.json",
        f"runs/{RUN}/predictions/‮.npz",
        "",
    ],
)
def test_a_name_that_has_no_place(tmp_path: Path, name: str) -> None:
    line = refused(made(tmp_path / "a.zip", FILES | {name: b"x"}), tmp_path)
    assert (
        "has no place in a submission" in line
        or "not in it" in line
        or "cannot be unpacked" in line
    )


def test_a_name_that_python_would_cut(tmp_path: Path) -> None:
    name = f"runs/{RUN}/curve.jsonl"
    path = made(
        tmp_path / "a.zip",
        {RECORD: b"{}", name + "X.txt": b"x"},
        header({RECORD: b"{}", name: b"x"}),
    )
    path.write_bytes(path.read_bytes().replace(b"lX.txt", b"l\0.txt"))
    assert "has no place" in refused(path, tmp_path)


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_links_devices_and_folders(tmp_path: Path, mode: int) -> None:
    def change(info: zipfile.ZipInfo) -> None:
        info.external_attr = (mode | 0o777) << 16

    assert "is a link or a device" in refused(
        made(tmp_path / "a.zip", FILES, change=change), tmp_path
    )


def test_modes_do_not_come_along(tmp_path: Path) -> None:
    def change(info: zipfile.ZipInfo) -> None:
        info.external_attr = (stat.S_IFREG | 0o6777) << 16

    unpack(made(tmp_path / "a.zip", FILES, change=change), tmp_path / "out")
    assert all(
        one.stat().st_mode & 0o7111 == 0 for one in (tmp_path / "out").rglob("*") if one.is_file()
    )


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path: Path, kind: int) -> None:
    def change(info: zipfile.ZipInfo) -> None:
        info.compress_type = kind

    assert "compressed in a way" in refused(
        made(tmp_path / "a.zip", FILES, change=change), tmp_path
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", [RECORD, RECORD.replace("simcse", "SIMCSE")])
def test_one_file_twice(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / "a.zip", FILES, header(FILES | {name: b"{}"}))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"{}")
    assert "is in it twice" in refused(path, tmp_path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = FILES | {f"runs/{RUN}/curve.jsonl": b"\0" * (unpacking.Member("curve").most_bytes + 1)}
    path = made(tmp_path / "a.zip", bomb)
    assert path.stat().st_size < 20_000 and "bytes; at most" in refused(path, tmp_path)


def test_many_files_that_are_large_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "a.zip", FILES)
    monkeypatch.setattr("bench.verify.submit.unpacking.MOST_BYTES", path.stat().st_size - 1)
    assert "bytes; at most" in refused(path, tmp_path)
    large = made(tmp_path / "b.zip", FILES | {f"runs/{RUN}/curve.jsonl": b"\n" * 100_000})
    monkeypatch.setattr("bench.verify.submit.unpacking.MOST_BYTES", 50_000)
    assert "when unpacked" in refused(large, tmp_path)


def test_a_size_that_is_a_lie(tmp_path: Path) -> None:
    """The list says 10 bytes, the stream holds a million."""
    data = b"x" * 1_000_000
    path = made(tmp_path / "a.zip", {**FILES, f"runs/{RUN}/curve.jsonl": data})
    raw = bytearray(path.read_bytes())
    size = struct.pack("<L", len(data))
    while (at := raw.find(size)) >= 0:
        raw[at : at + 4] = struct.pack("<L", 10)
    path.write_bytes(raw)
    refused(path, tmp_path)


def test_a_list_of_a_million_members_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "a.zip", FILES)
    raw = path.read_bytes()
    entry = raw[raw.find(b"PK\1\2") : raw.find(b"PK\5\6")]
    many = raw[: raw.find(b"PK\1\2")] + entry * 20_000
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, 4000, 4000, len(entry) * 20_000, raw.find(b"PK\1\2"), 0
    )
    path.write_bytes(many + end)

    def never(*_: object) -> None:
        raise AssertionError("the list was read")

    monkeypatch.setattr(zipfile, "ZipFile", never)
    assert "its list of files" in refused(path, tmp_path)


@pytest.mark.parametrize("how", ["zip64", "comment", "before", "count"])
def test_ends_of_a_file_that_python_reads_otherwise(tmp_path: Path, how: str) -> None:
    path = made(tmp_path / "a.zip", FILES)
    raw = path.read_bytes()
    end = len(raw) - 22
    path.write_bytes(
        {
            "zip64": raw[: end - 20] + b"PK\6\7" + raw[end - 16 :],
            "comment": raw[:-2] + b"\x05\x00hello",
            "before": b"#!/bin/sh\n" + raw,
            "count": raw[: end + 8] + struct.pack("<HH", 9999, 9999) + raw[end + 12 :],
        }[how]
    )
    assert "zip file" in (line := refused(path, tmp_path)) or "list of files" in line


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\3\4" * 40, b"\0" * 100, b"not a zip" * 50], ids=len
)
def test_no_zip_at_all(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    assert "no zip file" in refused(path, tmp_path)


def test_every_cut_and_many_a_flipped_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    raw = made(tmp_path / "a.zip", FILES).read_bytes()
    spoiled = [raw[:n] for n in range(0, len(raw), 7)]
    spoiled += [raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :] for at in range(0, len(raw), 3)]
    for i, data in enumerate(spoiled):
        (tmp_path / "a.zip").write_bytes(data)
        try:
            unpack(tmp_path / "a.zip", tmp_path / str(i))
        except DataDamaged:
            assert not (tmp_path / str(i)).exists()
        else:
            for name, content in FILES.items():
                assert (tmp_path / str(i) / name.removeprefix("runs/")).read_bytes() == content


def test_a_file_that_is_not_what_the_list_says(tmp_path: Path) -> None:
    assert "another sha256" in refused(
        made(tmp_path / "a.zip", FILES, header(FILES | {RECORD: b"[]"})), tmp_path
    )
    fewer = {name: data for name, data in FILES.items() if name == RECORD}
    assert "is not in its list" in refused(made(tmp_path / "a.zip", FILES, header(fewer)), tmp_path)
    assert "in its list and not in it" in refused(
        made(tmp_path / "a.zip", fewer, header(FILES)), tmp_path
    )


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "not bench.submission/1"),
        (b'{"schema": "bench.submission/9"}', "/9"),
        (header(FILES, files=[]), "no list of files"),
        (header(FILES, files={RECORD: "x"}), "no list of files"),
        (header(FILES, submitted_by=7), "is no name"),
        (header(FILES, submitted_by="x" * 1000), "1000 characters"),
        (header(FILES, submitted_by="\u001b[2Jgone"), "printable"),
        (header(FILES, submitted_by="a\u202eb"), "printable"),
    ],
)
def test_a_list_that_is_none(tmp_path: Path, first: bytes, why: str) -> None:
    line = refused(made(tmp_path / "a.zip", FILES, first), tmp_path)
    assert why in line and "\x1b" not in line and "\u202e" not in line


def test_what_a_submission_must_have(tmp_path: Path) -> None:
    assert "it holds no runs" in refused(made(tmp_path / "a.zip", {}), tmp_path)
    assert "has no record" in refused(
        made(tmp_path / "a.zip", {f"runs/{RUN}/curve.jsonl": b""}), tmp_path
    )
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr(RECORD, b"{}")
    assert "has no submission.json" in refused(tmp_path / "b.zip", tmp_path)


def test_too_many_runs_and_checkpoints_that_are_large_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {f"runs/run-{i}/run.json": b"{}" for i in range(unpacking.MOST_RUNS + 1)}
    assert "201 runs" in refused(made(tmp_path / "a.zip", runs), tmp_path)
    monkeypatch.setattr("bench.verify.submit.unpacking.CHECKPOINT_BYTES", 150)
    parts = {f"runs/{RUN}/checkpoint/part-{i}.json": b"x" * 100 for i in range(2)}
    assert "the checkpoint of" in refused(made(tmp_path / "b.zip", FILES | parts), tmp_path)


def test_an_encrypted_file(tmp_path: Path) -> None:
    path = made(tmp_path / "a.zip", FILES)
    raw = bytearray(path.read_bytes())
    at = -1
    while (at := raw.find(b"PK\1\2", at + 1)) >= 0:
        raw[at + 8] |= 1
    path.write_bytes(raw)
    assert "is encrypted" in refused(path, tmp_path)


def test_no_file_and_a_pipe(tmp_path: Path) -> None:
    import os

    with pytest.raises(BenchError, match="cannot be unpacked"):
        unpack(tmp_path / "none.zip", tmp_path / "out")
    (tmp_path / "folder.zip").mkdir()
    with pytest.raises(BenchError, match="is no file"):
        unpack(tmp_path / "folder.zip", tmp_path / "out")
    os.mkfifo(tmp_path / "pipe.zip")
    with pytest.raises(BenchError, match="is no file"):
        unpack(tmp_path / "pipe.zip", tmp_path / "out")


def test_a_folder_that_is_there_already_is_not_touched(tmp_path: Path) -> None:
    path = made(tmp_path / "a.zip", FILES)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(BenchError):
        unpack(path, tmp_path / "out")
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["mine"]


def test_the_names_of_runs_agree_with_those_of_records() -> None:
    from bench.runs.record import RUN_ID

    assert RUN_ID.removeprefix("^").removesuffix(r"$(?!\n)") in unpacking._RUN
