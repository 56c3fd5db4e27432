"""The token cache: the tokenizer's ids to the last one, built once, whole or not at all, within its
memory.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from bench.data.corpora import open_corpus_file
from bench.data.corpora.token_cache import MAX_TOKENS, tokenise


def letters(texts):
    """A tokenizer: one id a letter."""
    return [[ord(c) % 500 for c in text if not c.isspace()] for text in texts]


@pytest.fixture
def triplets(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"a{'b' * (i % 7)},c{i},{'d' * (i % 3)}" for i in range(25)]
    path.write_text("sent0,sent1,hard_neg\n" + "\n".join(lines) + "\n" + "long " * 300 + ",x,y\n")
    return open_corpus_file(path, cache=tmp_path / "cache")


def build(corpus, tmp_path, encode=letters, key="letters", vocab=500, **more):
    return tokenise(corpus, encode, key, vocab, cache=tmp_path / "cache", **more)


def everything(ready):
    return [
        [row.tolist() for row in ready.column(i).ids(np.arange(len(ready)))]
        for i in range(len(ready.columns))
    ]


@pytest.mark.parametrize("vocab, dtype", [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_are_the_tokenizers(triplets, tmp_path, monkeypatch, vocab, dtype):
    monkeypatch.setattr("bench.data.corpora.token_cache.CHUNK", 7)
    said = []
    ready = build(triplets, tmp_path, vocab=vocab, progress=lambda *a: said.append(a))
    wanted = [
        [ids[:MAX_TOKENS] for ids in letters(column)]
        for column in zip(*triplets.rows(), strict=True)
    ]
    assert everything(ready) == wanted and len(ready) == 26 and said[-1] == (26, 26)
    assert ready.columns == ("sent0", "sent1", "hard_neg") and ready.sha256 == triplets.sha256
    assert ready.name == "t.csv"
    some = ready.column(1).ids(np.array([25, 0, 0, 3]))
    assert [row.tolist() for row in some] == [wanted[1][i] for i in (25, 0, 0, 3)]
    assert all(row.dtype == dtype and not row.flags.writeable for row in some)
    lengths = [len(ids) for ids in ready.column(0).ids(range(len(ready)))]
    assert lengths == [len(ids) for ids in wanted[0]] and max(lengths) == MAX_TOKENS
    for wrong in ([26], [-1]):
        with pytest.raises(IndexError):
            ready.column(0).ids(np.array(wrong))


def test_another_tokenizer_format_or_text_is_another_cache(triplets, tmp_path):
    build(triplets, tmp_path)
    other = build(triplets, tmp_path, encode=lambda texts: [[1]] * len(texts), key="ones")
    assert everything(other)[0] == [[1]] * 26
    (tmp_path / "t.txt").write_bytes((tmp_path / "t.csv").read_bytes())
    as_text = build(open_corpus_file(tmp_path / "t.txt", cache=tmp_path / "cache"), tmp_path)
    assert (
        len(as_text) == 27 and as_text.sha256 == triplets.sha256
    )  # with the header as a line of text


def test_a_damaged_cache_is_built_again(triplets, tmp_path):
    ready = build(triplets, tmp_path)
    wanted = everything(ready)

    def cut(path):
        path.write_bytes(path.read_bytes()[:-2])

    def flip(path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def rubbish(path):
        path.write_text("[]")

    for file in sorted(ready.path.iterdir()):
        for damage in (cut, flip, rubbish, type(file).unlink):
            damage(file)
            encode = mock.Mock(side_effect=letters)
            assert everything(build(triplets, tmp_path, encode=encode)) == wanted
            # a flip inside the corpus's name or a blank in meta.json is not damage that matters
            assert encode.called or file.name == "meta.json"


def test_an_interrupted_build_leaves_nothing(triplets, tmp_path):
    def stops(texts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(triplets, tmp_path, encode=stops)
    root = tmp_path / "cache" / "tokenised"
    assert [p.name for p in root.iterdir() if p.is_dir()] == []
    killed = build(triplets, tmp_path).path
    left = killed.with_name(f"{killed.name}.999999.part")
    killed.rename(left)  # the remains of a kill -9
    build(triplets, tmp_path)
    assert [p.name for p in root.iterdir() if p.is_dir()] == [killed.name]


def _slow_build(path, cache, counter, queue):
    def encode(texts):
        import time

        with counter.get_lock():
            counter.value += 1
        time.sleep(0.5)
        return letters(texts)

    ready = tokenise(open_corpus_file(path, cache=cache), encode, "slow", 500, cache=cache)
    queue.put([row.tolist() for row in ready.column(1).ids(np.arange(len(ready)))])


@pytest.mark.nightly
def test_two_builders_do_the_work_once(triplets, tmp_path):
    fork = multiprocessing.get_context("fork")
    counter, queue = fork.Value("i", 0), fork.Queue()
    arguments = (triplets.path, tmp_path / "cache", counter, queue)
    workers = [fork.Process(target=_slow_build, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    results = [queue.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join(30)
    assert results[0] == results[1] == results[2] == letters([row[1] for row in triplets.rows()])
    assert counter.value == 3  # one chunk for each of the three columns
    assert len([p for p in (tmp_path / "cache" / "tokenised").iterdir() if p.is_dir()]) == 1


MEASURE = """
import json, sys, time
from pathlib import Path
from bench.data.corpora import open_corpus_file
from bench.data.corpora.token_cache import tokenise
def encode(texts): return [[len(w) for w in t.split()] for t in texts]
began = time.perf_counter()
cache = Path(sys.argv[2])
ready = tokenise(open_corpus_file(sys.argv[1], cache=cache), encode, "widths", 1000, cache=cache)
seconds = time.perf_counter() - began
# not ru_maxrss: a child starts with the peak of the process that made it
status = Path("/proc/self/status")
peak = 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0]) if status.exists() else 0
print(json.dumps({"rows": len(ready), "seconds": seconds, "peak": peak}))
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    path = tmp_path / "big.txt"
    with path.open("w") as file:
        for i in range(300_000):
            file.write(
                f"sentence number {i} of a corpus that has a few hundred thousand of them, and "
                "some more words\n"
            )
    run = [sys.executable, "-c", MEASURE, str(path), str(tmp_path / "cache")]
    first = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    second = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert first["rows"] == second["rows"] == 300_000
    assert first["peak"] < 300e6
    assert second["seconds"] < 0.5
