"""A stand-in for a model, and small made-up sets for every suite."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.data.sets import data_set
from bench.data.sets.clustering import ClassedTexts
from bench.data.sets.cxc import RatedCaptions
from bench.data.sets.sts import SentencePairs
from bench.data.sets.transfer import LabelledTexts
from bench.score.suites import suite
from bench.score.suites.clustering import LoadedTexts
from bench.score.suites.fewshot import LoadedFewShot
from bench.score.suites.geometry import LoadedGeometry
from bench.score.suites.sts import LoadedPairs
from bench.score.suites.transfer import LoadedTransfer


def words_in(sentences: Sequence[str], width: int = 64) -> np.ndarray:
    """Hash words into so many dimensions. A sentence without words becomes a zero vector."""
    vectors = np.zeros((len(sentences), width), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.lower().split():
            vectors[row, int(hashlib.md5(word.encode()).hexdigest(), 16) % width] += 1
    return vectors


def pairs(first: list[str], second: list[str], gold: Sequence[float], name: str = "STS12") -> Any:
    values = np.array(gold, float)
    return SentencePairs(name, first, second, values, ["a"] * len(gold), "test", "0" * 64)


def sts_pairs(first: list[str], second: list[str], gold: Sequence[float]) -> LoadedPairs:
    return LoadedPairs(suite("sts").task("STS12"), pairs(first, second, gold))


def geometry(name: str, gold: Sequence[float]) -> LoadedGeometry:
    texts = [[f"{side}{i} x" for i in range(len(gold))] for side in "ab"]
    return LoadedGeometry(suite("geometry").task(name), pairs(*texts, gold, "STS-B"))


def clustering(texts: list[str], labels: Sequence[int]) -> LoadedTexts:
    data = ClassedTexts("Tweet", texts, np.array(labels), "0" * 64)
    return LoadedTexts(suite("clustering").task("Tweet"), data)


def captions(n: int = 200) -> LoadedPairs:
    texts = [f"caption {i}" for i in range(n)], [f"other {i % 7}" for i in range(n)]
    gold, numbers = np.arange(n) % 50 / 10, np.arange(n)
    about = ["c2c_isim"] * n, "test", "0" * 64
    data = RatedCaptions("CxC-STS", *texts, gold, *about, numbers, numbers, numbers // 4)
    return LoadedPairs(suite("cxc").tasks[0], data)


def labelled(
    splits: dict[str, int], *, name: str = "CR", classes: int = 2, sides: int = 1
) -> LabelledTexts:
    """Make sentences of one to six words; a word that most of them hold tells the class."""
    rng = np.random.default_rng(0)
    names = np.repeat(list(splits), list(splits.values()))
    labels, texts = rng.integers(classes, size=len(names)), []
    for _ in range(sides):
        rows = zip(
            rng.integers(30, size=(len(names), 6)),
            rng.integers(1, 6, len(names)),
            labels,
            strict=True,
        )
        side = []
        for words, cut, label in rows:
            hint = f" class{label}" if rng.random() < 0.7 else ""
            side.append(f"{' '.join(map(str, words[:cut]))}{hint}")
        texts.append(side)
    return LabelledTexts(
        name, tuple(texts), labels, names, "0" * 64, tuple(data_set(name).classes.values())
    )


def probed(texts: LabelledTexts) -> LoadedTransfer:
    return LoadedTransfer(suite("transfer").task(texts.name), texts)


def fewshot(texts: LabelledTexts) -> LoadedFewShot:
    return LoadedFewShot(suite("fewshot").task(f"{texts.name}-16"), texts)


def every_suite() -> dict[str, Any]:
    """Return one small loaded task of each suite, by the name that its errors give."""
    return {
        "STS12": sts_pairs(["a", "b", "c"], ["d", "e", "f"], [1, 2, 3]),
        "alignment": geometry("alignment", [5, 4, 3]),
        "uniformity": geometry("uniformity", [5, 4, 3]),
        "Tweet": clustering(["a", "b", "c", "d"], [1, 1, 5, 5]),
        "CxC-STS": captions(),
        "CR": probed(labelled({"test": 40})),
        "CR-16": fewshot(labelled({"test": 60})),
    }
