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

from bench.base.errors import DataDamaged, FetchFailed
from bench.data.fetching import unpack

GOOD = {"./STS/a.txt": b"first\n" * 100, "STS/b.txt": b"second\n", "README": b"read me"}


def member(name: str, data: bytes = b"x", **attributes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in attributes.items():
        setattr(info, key, value)
    if info.type != tarfile.REGTYPE:
        info.size = 0
    return info, data


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for info, data in members:
            out.addfile(info, io.BytesIO(data))
    return path


def good(path: Path, mode: str) -> Path:
    if mode == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in GOOD.items():
                out.writestr(name, data)
        return path
    return tar(
        path, *(member(name, data, mode=0o4777, uid=0) for name, data in GOOD.items()), mode=mode
    )


def into(folder: Path) -> Callable[[str], Path | None]:
    return lambda name: folder / name if name.startswith("STS/") else None


def everything(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not path.is_dir() or path.is_symlink()
    )


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "zip"])
def test_what_is_wanted_comes_out_and_nothing_else(tmp_path: Path, mode: str) -> None:
    archive = good(tmp_path / "archive", mode)
    written = unpack(archive, into(tmp_path / "out"))
    assert {name: path.read_bytes() for name, path in written.items()} == {
        "STS/a.txt": b"first\n" * 100,
        "STS/b.txt": b"second\n",
    }
    assert everything(tmp_path / "out") == ["STS/a.txt", "STS/b.txt"]
    assert (tmp_path / "out/STS/a.txt").stat().st_mode & 0o7111 == 0  # no mode of the archive's


@pytest.mark.parametrize(
    "name",
    [
        "/STS/a.txt",
        "../STS/a.txt",
        "STS/../../a.txt",
        "STS\\..\\a.txt",
        "C:/STS/a.txt",
        "other/../../x",
    ],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_path_that_leads_elsewhere_refuses_the_archive(
    tmp_path: Path, name: str, kind: str
) -> None:
    if kind == "tar":
        archive = tar(tmp_path / "a.tar", member("STS/b.txt"), member(name))
    else:
        archive = tmp_path / "a.zip"
        with zipfile.ZipFile(archive, "w") as out:
            out.writestr("STS/b.txt", b"x")
            out.writestr(name, b"x")
    before = everything(tmp_path)
    with pytest.raises(DataDamaged, match="a path that leads elsewhere"):
        unpack(archive, lambda one: tmp_path / "out" / Path(one).name)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_what_is_no_regular_file_is_never_made(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    link = member("STS/a.txt", type=kind, linkname=str(secret))
    with pytest.raises(DataDamaged, match="no regular file"):
        unpack(tar(tmp_path / "a.tar", link), into(tmp_path / "out"))
    elsewhere = member("other", type=kind, linkname=str(secret))
    archive = tar(tmp_path / "b.tar", elsewhere, member("STS/b.txt"))
    assert list(unpack(archive, into(tmp_path / "out"))) == ["STS/b.txt"]
    assert everything(tmp_path / "out") == ["STS/b.txt"] and secret.read_text() == "secret"


def test_a_file_behind_a_link_of_the_archive_stays_inside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    link = member("STS", type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside"))
    unpack(tar(tmp_path / "a.tar", link, member("STS/a.txt", b"inside")), into(tmp_path / "out"))
    assert (tmp_path / "out/STS/a.txt").read_bytes() == b"inside" and everything(
        tmp_path / "outside"
    ) == []


def test_a_link_in_a_zip_is_no_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        info = zipfile.ZipInfo("STS/a.txt")
        info.external_attr = 0o120777 << 16
        out.writestr(info, "/etc/passwd")
    with pytest.raises(DataDamaged, match="no regular file"):
        unpack(tmp_path / "a.zip", into(tmp_path / "out"))


def test_a_link_that_lies_where_a_file_goes_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out/STS").mkdir(parents=True)
    (tmp_path / "target").write_text("untouched")
    os.symlink(tmp_path / "target", tmp_path / "out/STS/a.txt")
    unpack(tar(tmp_path / "a.tar", member("STS/a.txt", b"new")), into(tmp_path / "out"))
    assert (tmp_path / "target").read_text() == "untouched" and not (
        tmp_path / "out/STS/a.txt"
    ).is_symlink()


def test_one_file_twice_refuses_the_archive_and_leaves_nothing(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", member("STS/a.txt", b"one"), member("./STS/a.txt", b"two"))
    with pytest.raises(DataDamaged, match="in it twice"):
        unpack(archive, into(tmp_path / "out"))
    assert everything(tmp_path / "out") == []


@pytest.mark.parametrize("mode", ["w:xz", "zip"])
def test_a_bomb_is_stopped(tmp_path: Path, mode: str) -> None:
    zeros = bytes(5_000_000)
    if mode == "zip":
        with zipfile.ZipFile(tmp_path / "a", "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("STS/a.txt", zeros)
    else:
        tar(tmp_path / "a", member("STS/a.txt", zeros), mode=mode)
    assert (tmp_path / "a").stat().st_size < 20_000
    with pytest.raises(DataDamaged, match="larger than 1,000,000 bytes"):
        unpack(tmp_path / "a", into(tmp_path / "out"), most_bytes=1_000_000)
    assert everything(tmp_path / "out") == []


def test_too_many_members(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", *(member(f"STS/{i}.txt") for i in range(30)))
    with pytest.raises(DataDamaged, match="more than 20 members"):
        unpack(archive, into(tmp_path / "out"), most_members=20)
    assert everything(tmp_path / "out") == []


def test_a_zip_that_lies_about_a_size(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("STS/a.txt", bytes(4_000_000))
    raw = (tmp_path / "a.zip").read_bytes()
    lying = raw.replace(struct.pack("<L", 4_000_000), struct.pack("<L", 10))
    (tmp_path / "a.zip").write_bytes(lying)
    with pytest.raises(DataDamaged):
        unpack(tmp_path / "a.zip", into(tmp_path / "out"))
    assert everything(tmp_path / "out") == []


@pytest.mark.parametrize("mode", ["w", "w:gz", "zip"])
def test_a_cut_archive_is_damaged(tmp_path: Path, mode: str) -> None:
    whole = good(tmp_path / "whole", mode).read_bytes()
    (tmp_path / "cut").write_bytes(whole[: 900 if mode == "w" else len(whole) // 2])
    with pytest.raises(DataDamaged, match="cannot be unpacked|are missing"):
        unpack(tmp_path / "cut", into(tmp_path / "out"))
    assert everything(tmp_path / "out") == []


def test_what_is_no_archive_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"<html>not found</html>" * 100)
    with pytest.raises(DataDamaged, match="cannot be unpacked"):
        unpack(tmp_path / "a.tar", into(tmp_path / "out"))


def test_a_disk_without_room(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="needs 0 MB"):
        unpack(good(tmp_path / "a.tar", "w"), into(tmp_path / "out"), free=lambda _: 10)
    assert everything(tmp_path / "out") == []
