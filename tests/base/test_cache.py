"""The cache gives back exactly what was put into it, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.base.cache import CacheEntry

ENTRY = {"kind": "counts", "name": "a corpus", "about": [1, "b", 2.5]}
VALUE = {"exact": 3, "near": 0.1, "words": ["é", None]}


def entry(root: Path, **changes: object) -> CacheEntry:
    return CacheEntry(**(ENTRY | changes), root=root)  # type: ignore[arg-type]


def test_a_value_comes_back_to_who_asks_about_the_same(tmp_path: Path) -> None:
    assert entry(tmp_path).read() is None
    entry(tmp_path).write(VALUE)
    assert entry(tmp_path).read() == VALUE
    assert entry(tmp_path, about=[1, "b", 2]).read() is None
    assert entry(tmp_path, name="another").read() is None


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"about": [1, "b", 2.5]}'])
def test_a_file_that_is_none_of_ours_is_none(tmp_path: Path, content: bytes) -> None:
    entry(tmp_path).write(VALUE)
    entry(tmp_path).file.write_bytes(content)
    assert entry(tmp_path).read() is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    entry(tmp_path / "file").write(VALUE)
    assert entry(tmp_path / "file").read() is None
