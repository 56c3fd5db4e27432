"""GloVe avg.: the reader of vector files, and the mean."""

from __future__ import annotations

import gzip
import lzma
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bench.base.errors import BenchError
from bench.method import Recipe, Value
from bench.methods.glove_avg import GloveAvg, read_vectors

TEXT = "the 1 2 3\ncat 0.5 -1 1e-2\nThe 9 9 9\nnaïve 4 5 6\n"
TABLE = np.array([[1, 2, 3], [0.5, -1, 0.01], [9, 9, 9], [4, 5, 6]], np.float32)


def write(path: Path, text: str = TEXT) -> Path:
    data = text.encode()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.txt", data)
    else:
        path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)(data))
    return path


def method_with(path: Path) -> GloveAvg:
    method = GloveAvg()
    method.build(None, Recipe({"vectors": Value(str(path), "test")}))
    return method


@pytest.mark.parametrize(("name", "header"), [("v.txt.xz", ""), ("v.zip", "4 3\n")])
def test_every_form_of_the_file_is_read(tmp_path: Path, name: str, header: str) -> None:
    words, table = read_vectors(write(tmp_path / name, header + TEXT))
    assert words == {"the": 0, "cat": 1, "The": 2, "naïve": 3}
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, TABLE)


def test_a_word_that_is_there_twice_keeps_its_first_vector_and_blanks_belong_to_a_word(tmp_path):
    """The public 840B file has words with blanks in them, such as ". . ."."""
    text = "a 1 2\n. . . 3 4\na 5 6\nat name@domain.com 7 8\n"
    words, table = read_vectors(write(tmp_path / "v.txt", text))
    assert words["a"] == 0
    np.testing.assert_array_equal(table[words[". . ."]], [3, 4])
    np.testing.assert_array_equal(table[words["at name@domain.com"]], [7, 8])


RAGGED = {"a 1 2\nb 1 2\nc 1\nd 1 2\n": 3, "a 1 2\nb 1 x\n": 2, "a 1 2\n\nb 1 2\n": 2}


@pytest.mark.parametrize(("text", "line"), RAGGED.items())
def test_a_ragged_line_is_named_with_its_number(tmp_path: Path, text: str, line: int) -> None:
    path = write(tmp_path / "v.txt", text)
    with pytest.raises(BenchError, match=re.escape(f"{path} line {line}: ")):
        read_vectors(path)


@pytest.mark.parametrize("damage", ["missing", "no member", "cut", "latin-1"])
def test_a_damaged_and_a_missing_file_are_one_line(tmp_path, damage):
    path = tmp_path / "v.zip"
    if damage == "no member":
        zipfile.ZipFile(path, "w").close()
    elif damage == "cut":
        write(path, TEXT * 500)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif damage == "latin-1":
        path = tmp_path / "latin.txt"
        path.write_bytes("na\xefve 1 2\n".encode("latin-1"))
    with pytest.raises(BenchError, match=re.escape(str(path))) as caught:
        read_vectors(path)
    assert "\n" not in caught.value.message


def test_a_vector_is_the_mean_of_the_known_words(tmp_path: Path) -> None:
    method = method_with(write(tmp_path / "v.txt"))
    texts = ["the cat", "The cat", "THE unknown", "nothing here", "", "the the naïve\tcat"]
    found = method.encode(texts)
    assert found.dtype == np.float32
    assert found.shape == (6, 3)
    wanted = [
        (TABLE[0] + TABLE[1]) / 2,
        (TABLE[2] + TABLE[1]) / 2,
        TABLE[0],
        np.zeros(3),
        np.zeros(3),
        (2 * TABLE[0] + TABLE[3] + TABLE[1]) / 4,
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert method.encode([]).shape == (0, 3)
