"""A row of the board on generated vectors: every suite's own scoring, on sets of the sizes that the manifests give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.data.sets import data_set
from bench.data.sets.clustering import CLUSTERING_TASKS, ClassedTexts
from bench.data.sets.cxc import RatedCaptions
from bench.data.sets.sts import STS_TASKS, SentencePairs
from bench.data.sets.transfer import CLASSES, TRANSFER_TASKS, LabelledTexts

CLUSTERS = {
    "AgNews": 4,
    "SearchSnippets": 8,
    "StackOverflow": 20,
    "Biomedical": 20,
    "Tweet": 89,
}  # GoogleNews: 152
APART = (
    4.0  # standard deviations between two classes: a linear classifier is right nine times in ten
)
Work = Iterator[tuple[str, Callable[[], object]]]


class Vectors:
    """Numbered "sentences" and their vectors: what a suite asks for after encoding."""

    def __init__(self, vectors_ND: np.ndarray) -> None:
        self.vectors_ND = vectors_ND

    def __call__(self, texts: Any) -> np.ndarray:
        return self.vectors_ND[
            np.fromiter((int(text.split()[0]) for text in texts), dtype=np.int64, count=len(texts))
        ]


def clouds(labels: np.ndarray, dim: int) -> np.ndarray:
    """(N, D) float32: round clouds, one a class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(int(labels.max()) + 1, dim)) * APART / np.sqrt(2 * dim)
    return (centres[labels] + rng.normal(size=(len(labels), dim))).astype(np.float32)


def named(count: int, first: int = 0) -> list[str]:
    """Texts that are their own row's number and have words to take away."""
    return [f"{i} the a of word{i % 97}" for i in range(first, first + count)]


def scoring_of(
    suite: str, dim: int, scale: float, device: str, note: Callable[[str], None]
) -> Work:
    """(task, its scoring, data and vectors being there) of every task of a suite; sizes times ``scale``."""
    return {
        "sts": _sts,
        "transfer": _transfer,
        "fewshot": _fewshot,
        "clustering": _clustering,
        "cxc": _cxc,
        "geometry": _geometry,
    }[suite](dim, scale, device, note)


def _size(count: int, scale: float, least: int) -> int:
    return max(least, int(count * scale))


def _pairs(name: str, count: int, dim: int) -> tuple[SentencePairs, Vectors]:
    rng = np.random.default_rng(1)
    gold = rng.random(count) * 5
    first = rng.normal(size=(count, dim))
    second = first * (gold / 5)[:, None] + rng.normal(size=(count, dim))
    pairs = SentencePairs(
        name=name,
        sentences1=named(count),
        sentences2=named(count, count),
        gold=gold,
        subset=[name] * count,
        split="test",
        form="tokenised",
        sha256="",
    )
    return pairs, Vectors(np.concatenate([first, second]).astype(np.float32))


def _sts(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.suites.sts import SUITE, LoadedPairs

    for name in STS_TASKS:
        pairs, vectors = _pairs(name, _size(data_set(name).items["test"], scale, 20), dim)
        task = LoadedPairs(SUITE.task(name), pairs)
        yield name, lambda t=task, v=vectors: t.score(v)


def _geometry(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.suites.geometry import SUITE, LoadedGeometry

    pairs, vectors = _pairs("STS-B", _size(1379, scale, 60), dim)

    def asked(texts: Any) -> np.ndarray:  # sentences that lost words are sentences of their own
        return vectors([text if text[:1].isdigit() else "0" for text in texts])

    for task in SUITE.tasks:
        yield task.name, lambda t=task: LoadedGeometry(t, pairs).score(asked)


def _labelled(name: str, dim: int, scale: float) -> tuple[LabelledTexts, Vectors]:
    items = {split: _size(count, scale, 200) for split, count in data_set(name).items.items()}
    split = np.concatenate([np.full(count, kind) for kind, count in items.items()])
    labels = np.random.default_rng(2).integers(len(CLASSES[name]), size=len(split))
    columns = 2 if name == "MRPC" else 1
    sides = [clouds(labels, dim) * (1 + side) for side in range(columns)]
    texts = LabelledTexts(
        name=name,
        texts=tuple(named(len(split), side * len(split)) for side in range(columns)),
        labels=labels,
        split=split,
        form=None,
        sha256="",
        classes=CLASSES[name],
    )
    return texts, Vectors(np.concatenate(sides))


def _transfer(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.suites.transfer import SUITE, LoadedTransfer, classify

    for name in TRANSFER_TASKS:
        texts, vectors = _labelled(name, dim, scale)
        task = LoadedTransfer(SUITE.task(name), texts, classify).on(device)
        yield name, lambda t=task, v=vectors: t.score(v)


def _fewshot(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.suites.fewshot import SUITE, LoadedFewShot

    for name in TRANSFER_TASKS:
        texts, vectors = _labelled(name, dim, scale)

        def work(t: LabelledTexts = texts, v: Vectors = vectors) -> None:
            try:
                LoadedFewShot(SUITE.task(f"{t.name}-16"), t).score(v)
            except ModuleNotFoundError as error:
                note(f"not scored: {error.name} is not here")

        yield name, work


def _clustering(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.metrics.kmeans import kmeans
    from bench.score.suites.clustering import SEEDS, STARTS, SUITE, LoadedTexts

    for name in CLUSTERING_TASKS:
        count, clusters = (
            _size(data_set(name).items["test"], scale, 100),
            min(CLUSTERS.get(name, 152), 152 if scale == 1 else 8),
        )
        labels = np.random.default_rng(3).integers(clusters, size=count)
        labels[:clusters] = np.arange(clusters)
        vectors = Vectors(clouds(labels, dim))
        texts = ClassedTexts(name=name, texts=named(count), labels=labels, form="sccl", sha256="")

        def work(t: ClassedTexts = texts, v: Vectors = vectors, k: int = clusters) -> None:
            try:
                LoadedTexts(SUITE.task(t.name), t).score(v)
            except ModuleNotFoundError as error:  # scikit-learn's agreement scores, a small part
                note(f"k-means alone: {error.name} is not here")
                kmeans(v(t.texts), k, SEEDS, starts=STARTS)

        yield name, work


def _cxc(dim: int, scale: float, device: str, note: Callable[[str], None]) -> Work:
    from bench.score.suites.cxc import SUITE
    from bench.score.suites.sts import LoadedPairs

    captions = 5 * _size(5000, scale, 20)
    count = _size(data_set("CxC-STS").items["test"], scale, captions)
    rng = np.random.default_rng(4)
    first = np.sort(
        np.concatenate([np.arange(captions), rng.integers(captions, size=max(0, count - captions))])
    )
    second = rng.integers(captions, size=len(first))
    names = named(captions)
    data = RatedCaptions(
        sentences1=[names[i] for i in first],
        sentences2=[names[i] for i in second],
        gold=rng.random(len(first)) * 5,
        name="CxC-STS",
        subset=["c2c_isim"] * len(first),
        split="test",
        caption1=first,
        caption2=second,
        image=first // 5,
        form="tokenised",
        sha256="",
    )
    vectors = Vectors(rng.normal(size=(captions, dim)).astype(np.float32))
    for task in SUITE.tasks:
        yield task.protocol, lambda t=task: LoadedPairs(t, data).score(vectors)
