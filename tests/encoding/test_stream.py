"""A file of vectors grows by blocks: killed anywhere and gone on with, it is the file of an undisturbed process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.base.errors import BenchError, Interrupted, RunLocked
from bench.score.encoding.stream import HEADER, encode_stream, npy_header

SENTENCES = [f"sentence {i} {'x' * (i % 5)}" for i in range(23)]
ABOUT = {"run": "a-run", "fingerprint": "f" * 64}
FORMATS = [".npy", ".parquet"]


def vectors_of(sentences: list[str]) -> np.ndarray:
    """(n, 3): three numbers that tell every sentence from every other."""
    return np.array([[hash_of(s), len(s), i_of(s)] for s in sentences], dtype=np.float32)


def hash_of(sentence: str) -> int:
    return sum(ord(c) * (i + 1) for i, c in enumerate(sentence)) % 9973


def i_of(sentence: str) -> int:
    return int(sentence.split()[1])


def write(out: Path, sentences: list[str] = SENTENCES, about: dict[str, Any] = ABOUT, **options: Any) -> tuple[dict, bool]:
    encode = options.pop("encode", vectors_of)
    return encode_stream(iter(sentences), encode, out, about, block=5, **options)


def read(out: Path) -> np.ndarray:
    if out.suffix == ".npy":
        return np.load(out, mmap_mode="r")
    table = pq.read_table(out)
    assert table.column_names == ["sentence", "vector"]
    assert table["sentence"].to_pylist() == SENTENCES
    return np.array(table["vector"].to_pylist(), dtype=np.float32)


@pytest.mark.parametrize("suffix", FORMATS)
def test_row_i_is_the_vector_of_sentence_i(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"vectors{suffix}"
    facts, worked = write(out)
    assert worked and (facts["rows"], facts["dim"], facts["bytes"]) == (23, 3, out.stat().st_size)
    assert np.array_equal(read(out), vectors_of(SENTENCES)) and read(out).dtype == np.float32
    assert json.loads((tmp_path / f"{out.name}.json").read_text()) == facts
    assert sorted(p.name for p in tmp_path.iterdir()) == [out.name, f"{out.name}.json"]


def test_parquet_says_what_made_it_and_has_a_row_group_a_block(tmp_path: Path) -> None:
    write(tmp_path / "v.parquet")
    file = pq.ParquetFile(tmp_path / "v.parquet")
    assert file.num_row_groups == 5
    assert json.loads(file.schema_arrow.metadata[b"bench"])["run"] == "a-run"
    assert str(file.schema_arrow.field("vector").type) == "fixed_size_list<element: float>[3]"


@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (10**15, 4096)])
def test_the_header_is_numpys_own(rows: int, dim: int, tmp_path: Path) -> None:
    header = npy_header(rows, dim)
    assert len(header) == HEADER
    (tmp_path / "h").write_bytes(header)
    with (tmp_path / "h").open("rb") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        assert np.lib.format.read_array_header_1_0(file) == ((rows, dim), False, np.dtype("<f4"))


def killed_at(k: int, work: Callable[[], object]) -> bool:
    """Run ``work`` in a child that dies, as by SIGKILL, in place of its k-th fsync, rename or removal. Whether it came to that."""
    pid = os.fork()
    if pid == 0:
        calls = iter(range(k))

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if next(calls, None) is None:
                    os._exit(9)
                return real(*arguments, **options)

            return call

        try:
            for name in ("fsync", "replace", "unlink", "rmdir", "truncate"):
                setattr(os, name, dying(getattr(os, name)))
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 9), f"the child failed at call {k}"
    return code == 9


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_killed_at_every_point_it_ends_as_if_undisturbed(suffix: str, tmp_path: Path) -> None:
    some = SENTENCES[:12]  # three blocks
    write(whole := tmp_path / f"whole{suffix}", some)
    points, lost = 0, []
    while True:
        out = tmp_path / f"v{points}{suffix}"
        if not killed_at(points, lambda out=out: write(out, some)):
            break
        encoded: list[str] = []

        def counting(sentences: list[str], encoded: list[str] = encoded) -> np.ndarray:
            encoded += sentences
            return vectors_of(sentences)

        write(out, some, encode=counting)
        assert out.read_bytes() == whole.read_bytes(), f"killed at point {points}"
        assert (tmp_path / f"{out.name}.json").read_bytes() == (tmp_path / f"{whole.name}.json").read_bytes()
        assert not (tmp_path / f"{out.name}.part").exists()
        lost.append(len(encoded))
        points += 1
    assert points > 12
    assert lost[0] == 12 and lost[-1] == 0 and lost == sorted(lost, reverse=True), "the later it dies, the less is done again"


@pytest.mark.parametrize("suffix", FORMATS)
def test_killed_twice(suffix: str, tmp_path: Path) -> None:
    write(whole := tmp_path / f"whole{suffix}")
    out = tmp_path / f"v{suffix}"
    assert killed_at(9, lambda: write(out)) and killed_at(9, lambda: write(out)) and killed_at(2, lambda: write(out))
    write(out)
    assert out.read_bytes() == whole.read_bytes()


def test_asked_to_stop_it_keeps_what_is_done(tmp_path: Path) -> None:
    out, asked = tmp_path / "v.npy", iter([False, False, True])
    with pytest.raises(Interrupted, match="10 vectors are kept"):
        write(out, should_stop=lambda: next(asked))
    assert not out.exists()
    seen: list[int] = []
    write(out, progress=seen.append)
    assert seen == [10, 15, 20, 23]
    assert np.array_equal(np.load(out), vectors_of(SENTENCES))


def interrupted(sentences: list[str]) -> np.ndarray:
    if "sentence 5" in sentences[0]:
        raise Interrupted("in the middle of a block")
    return vectors_of(sentences)


def test_a_method_that_stops_within_a_block(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="5 vectors are kept in .*; the same command goes on"):
        write(tmp_path / "v.npy", encode=interrupted)
    assert write(tmp_path / "v.npy")[0]["rows"] == 23


def begun(out: Path) -> None:
    asked = iter([False, False, True])
    with pytest.raises(Interrupted):
        write(out, should_stop=lambda: next(asked))


@pytest.mark.parametrize(
    ("sentences", "about", "match"),
    [
        (["another", *SENTENCES[1:]], ABOUT, "first 10 vectors"),
        (SENTENCES[:7], ABOUT, "first 10 vectors"),
        (SENTENCES, {**ABOUT, "run": "b-run"}, "beginning of something else: run was a-run, now b-run"),
    ],
)
def test_the_rest_of_something_else_is_not_gone_on_with(sentences: list[str], about: dict[str, Any], match: str, tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    begun(out)
    with pytest.raises(BenchError, match=match) as caught:
        write(out, sentences, about)
    assert "--fresh" in str(caught.value.hint)
    assert write(out)[0]["rows"] == 23, "what was begun is untouched"
    facts, worked = write(out, SENTENCES[:7], about, fresh=True)
    assert worked and facts["rows"] == 7 and len(np.load(out)) == 7


def test_what_is_done_is_not_repeated(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    facts, _ = write(out)
    before = out.stat()

    def never(sentences: list[str]) -> np.ndarray:
        raise AssertionError("encoded again")

    assert write(out, encode=never) == (facts, False)
    assert out.stat() == before and sorted(p.name for p in tmp_path.iterdir()) == ["v.npy", "v.npy.json"]


@pytest.mark.parametrize(
    ("sentences", "about", "match"),
    [
        ([*SENTENCES, "one more"], ABOUT, "made of other sentences .23 of them, now 24."),
        ([*SENTENCES[:-1], "changed"], ABOUT, "made of other sentences"),
        (SENTENCES, {**ABOUT, "fingerprint": "0" * 64}, "another fingerprint"),
    ],
)
def test_a_finished_file_of_something_else_is_not_overwritten(
    sentences: list[str], about: dict[str, Any], match: str, tmp_path: Path
) -> None:
    out = tmp_path / "v.npy"
    write(out)
    before = out.read_bytes()
    with pytest.raises(BenchError, match=match):
        write(out, sentences, about)
    assert out.read_bytes() == before and not (tmp_path / "v.npy.part").exists()


def test_somebody_elses_file_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    out.write_bytes(b"precious")
    with pytest.raises(BenchError, match="is there already, and not known"):
        write(out)
    assert out.read_bytes() == b"precious"


@pytest.mark.parametrize("rest", ["state.json", "about.json", "rows"])
def test_a_damaged_rest_is_no_trap(rest: str, tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    begun(out)
    (tmp_path / "v.npy.part" / rest).write_bytes(b"{")
    if rest == "rows":
        with pytest.raises(BenchError, match="is shorter than the 10 vectors"):
            write(out)
        write(out, fresh=True)
    else:
        write(out)
    assert np.array_equal(np.load(out), vectors_of(SENTENCES))


def test_a_full_disk_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, real, left = tmp_path / "v.npy", os.fsync, iter(range(5))

    def full(handle: int) -> None:
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BenchError, match="cannot write .*: No space left") as caught:
        write(out)
    assert "the same command goes on" in str(caught.value.hint) and not out.exists()
    monkeypatch.setattr(os, "fsync", real)
    assert write(out)[1] and np.array_equal(np.load(out), vectors_of(SENTENCES))


def test_the_second_of_two_writers_is_refused(tmp_path: Path) -> None:
    def second(sentences: list[str]) -> np.ndarray:
        with pytest.raises(RunLocked, match="another process writes v.npy"):
            write(tmp_path / "v.npy")
        return vectors_of(sentences)

    assert write(tmp_path / "v.npy", encode=second)[0]["rows"] == 23


@pytest.mark.parametrize(
    ("name", "match"),
    [("v.csv", "unknown format '.csv'"), ("v", "unknown format"), ("no/v.npy", "no folder"), ("d.npy", "a folder")],
)
def test_a_target_that_cannot_be(name: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(BenchError, match=match):
        write(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["d.npy"]


def test_a_mistake_in_the_first_block_leaves_nothing(tmp_path: Path) -> None:
    def bad(sentences: list[str]) -> np.ndarray:
        return np.zeros(3)

    with pytest.raises(ValueError, match="shape"):
        write(tmp_path / "v.npy", encode=bad)
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """A generator of 200,000 sentences: what is alive at once is a block, seen through how many sentences are still referenced."""
    alive = most = 0

    class Counted(str):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def made() -> Iterator[str]:
        nonlocal alive, most
        for i in range(200_000):
            alive += 1
            most = max(most, alive)
            yield Counted(i)

    encode_stream(made(), lambda s: np.zeros((len(s), 2), np.float32), tmp_path / "v.npy", ABOUT, block=2000)
    assert np.load(tmp_path / "v.npy", mmap_mode="r").shape == (200_000, 2)
    assert most <= 4100
