"""The reader that plugin suites get."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder
from bench.data.sets.tables import TextTable, read_table


def table(folder: Path, content: str | bytes, columns: int = 3) -> TextTable:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "own.tsv").write_bytes(data)
    return read_table(DataFolder(folder), "own.tsv", columns)


PLAIN = "a b\tc\t4.8\nd\te\t1\n"


@pytest.mark.parametrize(
    "content",
    ["\ufeff" + PLAIN.replace("\n", "\r\n"), PLAIN.replace("a b", "a\u2028b")],
)
def test_the_same_rows_whatever_else_the_file_holds(tmp_path: Path, content: str) -> None:
    read = table(tmp_path, content)
    assert (read.texts(0), read.texts(1), read.numbers(2).tolist()) == (
        ["a b", "d"],
        ["c", "e"],
        [4.8, 1.0],
    )
    assert len(read) == 2 and read.sha256 == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PLAIN + "x\ty\n", "line 3 has 2 cells, expected 3"),
        (PLAIN.replace("4.8", "nan"), "line 1: 'nan' in column 3, expected a number"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(DataDamaged) as caught:
        table(tmp_path, content).numbers(2)
    assert says in caught.value.message and "\n" not in caught.value.message
