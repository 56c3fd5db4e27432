"""Reader of Crisscrossed Captions STS (Parekh et al. 2021), test split: 44,045 rated pairs of
25,000 COCO captions.

Two layouts in ``DIR/cxc``: a table with the captions written in (``sts_test.tsv``, tokenised), or
the file as published, which has caption ids only (``sts_test.csv``), with COCO's captions
(``captions_val2014.json``). The first has tokenised captions, the second raw ones. Captions
are split on white space and joined by single spaces, nothing else is changed.

Which captions describe one image follows from the pairs: every image's five captions are rated in a
ring.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.data.sets import (
    RAW,
    TOKENISED,
    DataFolder,
    DataSet,
    cells,
    data_set,
    single_spaced,
)
from bench.data.sets.sts import SentencePairs

CXC = "CxC-STS"
OFFICIAL = "CxC-STS-official"
SAME_IMAGE = "c2c_cocaption"
"""Sampling method of the pairs that describe one image; the others were chosen for their images'
likeness."""

PER_IMAGE = 5


@dataclass(frozen=True)
class RatedCaptions(SentencePairs):
    """Rated pairs of captions; ``subset`` is how a pair was chosen: "c2c_cocaption" (one image) or
    "c2c_isim" (two)."""

    caption1: np.ndarray
    """(N,) int64, COCO's number of the first caption; ``caption2`` of the second."""
    caption2: np.ndarray
    image: np.ndarray
    """(N,) int64, the image of the first caption: 0..4999, numbered by first appearance."""


def read_cxc(folder: DataFolder, *, text: str = TOKENISED) -> RatedCaptions:
    """Read the test pairs, checked against the known checksums.

    ``text``: "tokenised" (the table) or "raw" (the published file and COCO's captions). Raises
    DataMissing, DataDamaged.
    """
    if text == RAW:
        return _official(folder, data_set(OFFICIAL))
    return _table(folder, data_set(CXC))


def _table(folder: DataFolder, wanted: DataSet) -> RatedCaptions:
    copy = folder.open(wanted)
    rows = cells(copy.files[0].text, copy.files[0].file)
    return _pairs(
        [row[:4] for row in rows],
        {row[side]: single_spaced(row[4 + side]) for row in rows for side in (0, 1)},
        copy.sha256,
    )


def _official(folder: DataFolder, wanted: DataSet) -> RatedCaptions:
    ids, captions = folder.open(wanted).files
    rows = [row[0].split(",") for row in cells(ids.text, ids.file)]
    known = {note["id"]: note["caption"] for note in json.loads(captions.text)["annotations"]}
    texts = {key: single_spaced(known[_number(key)]) for row in rows for key in row[:2]}
    of_ids = hashlib.sha256(ids.sha256.encode()).hexdigest()
    return _pairs(rows, texts, hashlib.sha256(f"{of_ids}\n{captions.sha256}".encode()).hexdigest())


def _pairs(rows: Sequence[Sequence[str]], texts: Mapping[str, str], sha256: str) -> RatedCaptions:
    first, second, gold, method = (list(column) for column in zip(*rows, strict=True))
    return RatedCaptions(
        name=CXC,
        sentences1=[texts[key] for key in first],
        sentences2=[texts[key] for key in second],
        gold=np.array(gold, dtype=np.float64),
        subset=method,
        split="test",
        caption1=np.array([_number(key) for key in first], dtype=np.int64),
        caption2=np.array([_number(key) for key in second], dtype=np.int64),
        image=images(first, [(row[0], row[1]) for row in rows if row[3] == SAME_IMAGE]),
        sha256=sha256,
    )


def images(captions: Sequence[str], rings: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return the image of every caption, from pairs that describe one image, numbered in order of
    appearance.
    """
    together = defaultdict[str, set[str]](set)
    for a, b in rings:
        together[a].add(b)
        together[b].add(a)
    image: dict[str, int] = {}
    for caption in captions:
        if caption not in image:
            ring = {caption}
            for _ in range(PER_IMAGE):
                ring |= {other for key in ring for other in together[key]}
            image.update(dict.fromkeys(ring, len(image) // PER_IMAGE))
    return np.array([image[caption] for caption in captions], dtype=np.int64)


def _number(caption: str) -> int:
    """Return 411553 of "COCO_val2014:sentid:411553"."""
    return int(caption.rsplit(":", 1)[1])
