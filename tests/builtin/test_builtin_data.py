"""The data that the package carries: counts, hashes, where it is from, and made again from its sources to the byte."""

from __future__ import annotations

import hashlib
import lzma
import re
from itertools import pairwise
from pathlib import Path

import make_data
import pytest
from make_data import DATA, make, parts

from bench.data.corpora import open_corpus
from bench.data.sets import DataFolder
from bench.data.sets.cxc import letters
from bench.score.suites.check import TASK, check_dev_task

CONTENT = {
    "check-dev.tsv": (1126, "6c5c0bfb4c3b29f7bbb542afc00fad6412bd11bd8a6429918504437711fac238"),
    "check-test.tsv": (4743, "d9ba5d12b2679a4ccb3d699e432bc27f1496cbbe1c53e44d98c1d0d978b7e8c7"),
    "sentences.txt": (10_000, "2f2b4661cb5751455c1537112d786d290db5d951b13564768195408f1824506c"),
}


def stored() -> dict[str, bytes]:
    return {path.stem: lzma.decompress(path.read_bytes()) for path in DATA.iterdir()}


def test_what_is_carried():
    found = {
        name: (len(content.splitlines()), hashlib.sha256(content).hexdigest())
        for name, content in stored().items()
    }
    assert found == CONTENT
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 500_000


@pytest.mark.slow
def test_made_again_it_is_the_same(shared: Path):
    again = make(
        shared / "data" / "cxc" / "sts_val.tsv", shared / "data" / "train" / "wiki_sentences.txt.xz"
    )
    assert again == stored()


def test_a_pair_is_as_its_source_has_it(shared: Path):
    rows = (shared / "data" / "cxc" / "sts_val.tsv").read_text(encoding="utf-8").splitlines()[1:]
    source = {
        tuple(int(one.rsplit(":", 1)[1]) for one in row.split("\t")[:2]): row.split("\t")[2:]
        for row in rows
    }
    assert len(source) == 5867
    found = {}
    for part in (check_dev_task(), TASK.load(DataFolder(None))):
        for i in range(part.n):
            data = part.data
            texts = data.subset[i], data.sentences1[i], data.sentences2[i]
            found[int(data.caption1[i]), int(data.caption2[i])] = (float(data.gold[i]), *texts)
    assert found == {ids: (float(score), *texts) for ids, (score, *texts) in source.items()}


def test_sentences_are_distinct_whole_and_none_is_scored():
    corpus = open_corpus("builtin")
    lines = [row[0] for row in corpus.rows()]
    assert len(lines) == len({letters([one]) for one in lines}) == 10_000
    assert all(
        6 <= len(one.split()) <= 20 and re.search(r'[.!?]"?$', one) and one[0].isupper()
        for one in lines
    )
    captions = {
        letters([one])
        for part in (check_dev_task(), TASK.load(DataFolder(None)))
        for one in part.sentences
    }
    assert not captions & {letters([one]) for one in lines}
    hashes = [hashlib.sha256(one.encode()).digest() for one in lines]
    assert all(a < b for a, b in pairwise(hashes)), (
        "in the order of their hashes, so that the first n are a sample, too"
    )


WHOLE = "The river is one of the longest in the country."


def _hash(line: str) -> bytes:
    return hashlib.sha256(line.encode()).digest()


def rings(
    images: int, ties: list[tuple[int, int]], text: dict[int, str] | None = None
) -> list[list[str]]:
    """Pairs of so many images of five captions each, and pairs between the first captions of two images."""

    def pair(a: int, b: int, kind: str) -> list[str]:
        texts = [(text or {}).get(one, f"caption {one}") for one in (a, b)]
        return [f"x:{a}", f"x:{b}", "1", kind, *texts]

    ring = [(5 * image + i, 5 * image + (i + 1) % 5) for image in range(images) for i in range(5)]
    within = [pair(a, b, "c2c_cocaption") for a, b in ring]
    return within + [pair(5 * a, 5 * b, "c2c_isim") for a, b in ties]


def test_what_is_tied_stays_in_one_part(monkeypatch):
    monkeypatch.setattr(make_data, "DEV_IMAGES", 10)
    chain = [(i, i + 1) for i in range(0, 28, 2)]
    alike = {7: "A dog runs.", 202: "a dog runs"}  # captions of the images 1 and 40
    found = parts(rings(60, chain, alike))
    images = {
        name: {int(one.split(":")[1]) // 5 for pair in pairs for one in pair[:2]}
        for name, pairs in found.items()
    }
    assert len(images["dev"]) == 10 and not images["dev"] & images["test"]
    assert images["dev"] | images["test"] == set(range(60))
    assert all({a, b} <= images["dev"] or {a, b} <= images["test"] for a, b in [*chain, (1, 40)])
    assert parts(list(reversed(rings(60, chain, alike))))["dev"][::-1] == found["dev"], (
        "whatever the order of the rows"
    )


# --- the notice ---
