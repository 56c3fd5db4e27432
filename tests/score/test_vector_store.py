"""The vectors of a checkpoint on disk: each sentence once over all suites and sessions, whatever
was killed in between.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.base.errors import RunFailed
from bench.score.encoding import VectorStore


class Encoder:
    """An encoder with the vector (length, number of a's, 1) for a sentence. Counts its calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.asked += sentences
        return np.array([[len(s), s.count("a"), 1.0] for s in sentences], dtype=np.float32)


WORDS = st.lists(st.text("ab \u00e9\U0001f600", max_size=6), max_size=12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=4), st.integers(1, 5))
def test_a_sentence_is_encoded_once_over_all_sessions(tmp_path_factory, suites, chunk):
    folder, encoder = tmp_path_factory.mktemp("store"), Encoder()
    for sentences in suites:
        store = VectorStore(folder, "k")  # a new session each time
        store.add(sentences, encoder, chunk=chunk)
        if sentences:
            np.testing.assert_array_equal(store(sentences), Encoder()(sentences))
    assert sorted(encoder.asked) == sorted({s for sentences in suites for s in sentences})
    every = [s for sentences in suites for s in sentences]
    if every:
        np.testing.assert_array_equal(VectorStore(folder, "k")(every), Encoder()(every))


@pytest.mark.parametrize(
    ("file", "lost"),
    [("f32", 5), ("keys", 1)],
)
def test_a_half_written_end_of_a_killed_process_is_cut_off(tmp_path, file, lost):
    sentences = ["a" * i + "b" for i in range(5)]
    VectorStore(tmp_path, "k").add(sentences, Encoder())
    (path,) = tmp_path.glob(f"*.{file}")
    path.write_bytes(path.read_bytes()[:-lost])
    store, encoder = VectorStore(tmp_path, "k"), Encoder()
    kept = len(store)
    assert kept == 5 - -(-lost // {"f32": 12, "keys": 16}[file])
    store.add(sentences, encoder)
    assert len(encoder.asked) == 5 - kept
    np.testing.assert_array_equal(store(sentences), Encoder()(sentences))
    np.testing.assert_array_equal(VectorStore(tmp_path, "k")(sentences), Encoder()(sentences))


@pytest.mark.parametrize(("gone", "left"), [("keys", 24), ("f32", 80)])
def test_one_file_that_was_never_written_leaves_nothing_of_the_other(tmp_path, gone, left):
    """Killed, or the disk was full, between the vectors and their keys: what follows is not
    appended to vectors of nobody.
    """
    sentences = ["a" * i + "b" for i in range(5)]
    VectorStore(tmp_path, "k").add(sentences, Encoder())
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        path.unlink() if path.name.endswith(gone) else path.write_bytes(path.read_bytes()[:left])
    store = VectorStore(tmp_path, "k")
    assert len(store) == 0 and store.add(sentences, Encoder()) == 5
    np.testing.assert_array_equal(store(sentences), Encoder()(sentences))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole


def test_an_encoder_that_fails_in_the_middle_loses_only_its_chunk(tmp_path: Path) -> None:
    store, encoder = VectorStore(tmp_path, "k"), Encoder()

    def fails(sentences: list[str]) -> np.ndarray:
        if "b" in sentences:
            raise KeyboardInterrupt
        return encoder(sentences)

    with pytest.raises(KeyboardInterrupt):
        store.add(["ccc", "aa", "b"], fails, chunk=1)
    again = Encoder()
    VectorStore(tmp_path, "k").add(["ccc", "aa", "b"], again)
    assert again.asked == ["b"]


def test_two_processes_may_add_to_one_store(tmp_path: Path) -> None:
    one, other, encoder = VectorStore(tmp_path, "k"), VectorStore(tmp_path, "k"), Encoder()
    one.add(["a", "bb"], encoder)
    other.add(["ccc", "bb", "dddd"], encoder)
    one.add(["eeeee"], encoder)
    every = ["a", "bb", "ccc", "dddd", "eeeee"]
    for store in (one, VectorStore(tmp_path, "k")):
        np.testing.assert_array_equal(store(every), Encoder()(every))
    np.testing.assert_array_equal(other(every[1:4]), Encoder()(every[1:4]))


def test_rows_that_a_full_disk_left_without_keys_are_nobodys(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, "k")
    (tmp_path / "k-3.keys").mkdir()
    with pytest.raises(RunFailed, match="cannot be written"):
        store.add(["a", "bb"], Encoder())
    (tmp_path / "k-3.keys").rmdir()
    store.add(["ccc"], Encoder())  # the next task of the same process
    np.testing.assert_array_equal(store(["ccc"]), Encoder()(["ccc"]))


def test_rows_that_are_removed_while_they_are_used_are_missed(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, "k")
    store.add(["a", "bb"], Encoder())
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(RunFailed, match="were removed"):
        store.add(["ccc"], Encoder())
