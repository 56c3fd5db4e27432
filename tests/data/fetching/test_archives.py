"""Archives from strangers: what is wanted comes out whole, and nothing else happens."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.base.errors import DataDamaged
from bench.data.unpacking import unpack

GOOD = {"./STS/a.txt": b"first\n" * 100, "STS/b.txt": b"second\n", "README": b"read me"}


def member(name: str, data: bytes = b"x", **attributes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in {"size": len(data), **attributes}.items():
        setattr(info, key, value)
    if info.type != tarfile.REGTYPE:
        info.size = 0
    return info, data


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for info, data in members:
            out.addfile(info, io.BytesIO(data))
    return path


def packed(path: Path, files: dict[str, bytes], mode: str) -> Path:
    if mode == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in files.items():
                out.writestr(name, data)
        return path
    return tar(path, *(member(name, data, mode=0o4777) for name, data in files.items()), mode=mode)


def into(folder: Path) -> Callable[[str], Path | None]:
    return lambda name: folder / Path(name).name if "STS" in name else None


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("mode", ["w:gz", "zip"])
def test_only_the_wanted_files_are_unpacked(tmp_path: Path, mode: str) -> None:
    written = unpack(packed(tmp_path / "archive", GOOD, mode), into(tmp_path / "out"))
    assert sorted(path.read_bytes() for path in written.values()) == [b"first\n" * 100, b"second\n"]
    assert everything(tmp_path / "out") == ["a.txt", "b.txt"]
    assert (tmp_path / "out/a.txt").stat().st_mode & 0o7111 == 0, "no mode of the archive's"


@pytest.mark.parametrize("name", ["/STS/a.txt", "../STS/a.txt", "STS/../../a.txt"])
@pytest.mark.parametrize("mode", ["w", "zip"])
def test_a_path_that_leads_elsewhere_writes_nothing_there(
    tmp_path: Path, name: str, mode: str
) -> None:
    (tmp_path / "in").mkdir()
    archive = packed(tmp_path / "in" / "archive", {"STS/b.txt": b"x", name: b"x"}, mode)
    try:
        unpack(archive, into(tmp_path / "in" / "out"))
    except DataDamaged:
        assert everything(tmp_path / "in" / "out") == []
    written = set(everything(tmp_path)) - {"in/archive"}
    assert all(path.startswith("in/out/") for path in written)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_only_regular_files_are_unpacked(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "secret").write_text("secret")
    link = member("STS/a.txt", type=kind, linkname=str(tmp_path / "secret"))
    try:
        written = unpack(tar(tmp_path / "a.tar", link, member("STS/b.txt")), into(tmp_path / "out"))
        assert list(written) == ["STS/b.txt"]
    except DataDamaged:
        assert everything(tmp_path / "out") == []
    assert not (tmp_path / "out/a.txt").exists() and not (tmp_path / "out/a.txt").is_symlink()


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither a link in a zip is followed, nor a link in the place of a file that is written."""
    info = zipfile.ZipInfo("STS/a.txt")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr(info, "/etc/passwd")
    assert unpack(tmp_path / "a.zip", into(tmp_path / "out")) == {}
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "target").write_text("untouched")
    os.symlink(tmp_path / "target", tmp_path / "out/a.txt")
    unpack(tar(tmp_path / "a.tar", member("STS/a.txt", b"new")), into(tmp_path / "out"))
    assert (tmp_path / "target").read_text() == "untouched"
    assert not (tmp_path / "out/a.txt").is_symlink()


def lying(path: Path) -> Path:
    """Make a zip with a directory that says 10 bytes for a file of four million."""
    raw = packed(path, {"STS/a.txt": bytes(4_000_000)}, "zip").read_bytes()
    path.write_bytes(raw.replace(struct.pack("<L", 4_000_000), struct.pack("<L", 10)))
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: packed(path, {"STS/a.txt": bytes(5_000_000)}, "zip"),
        lambda path: packed(path, {"STS/a.txt": bytes(5_000_000)}, "w:xz"),
        lambda path: tar(path, member("STS/a.txt", b"one"), member("STS/x/a.txt", b"two")),
        lying,
        lambda path: path.write_bytes(packed(path, GOOD, "w:gz").read_bytes()[:90]) and path,
    ],
    ids=["zip bomb", "xz bomb", "twice", "lies about a size", "cut"],
)
def test_a_damaged_archive_leaves_nothing(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    archive = make(tmp_path / "archive")
    with pytest.raises(DataDamaged, match="cannot be unpacked"):
        unpack(archive, into(tmp_path / "out"), most_bytes=1_000_000)
    assert everything(tmp_path / "out") == []
