"""Computes the scores of suites on made-up data, by the code of the tree that Python imports
``bench`` from.

``python tools/suite_numbers.py sts transfer`` prints one JSON object: suite -> its definition, and
the score, detail and predictions of each of its tasks. tools/same_suites.py compares it between two
trees. The readers of data sets are replaced in every module of suites, so that no data set is
needed and each task is scored by the whole code between its vectors and its score.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from bench.data.sets import DataFolder
from bench.data.sets.cxc import RatedCaptions
from bench.data.sets.sts import SentencePairs
from bench.data.sets.transfer import CLASSES, LabelledTexts
from bench.score.suites import rescore, suite, suite_names

try:
    from bench.base.hashes import values_sha256
    from bench.data.sets.clustering import ClassedTexts
except ImportError:
    # trees up to 08bcfab8 have them elsewhere
    from bench.base.hashes import values_sha256
    from bench.data.sets.clustering import ClassedTexts

DIMENSIONS = 24
PAIRS, TEXTS = 60, 120
SPLITS = {
    "TREC": ("train", "test"),
    "MRPC": ("train", "test"),
    "SST-2": ("train", "dev", "test"),
}
"""The splits of made-up transfer sets; the others are all "test", which makes folds."""


def encode(sentences: Sequence[str]) -> np.ndarray:
    """(n, DIMENSIONS) float32 vectors: words hashed into dimensions, and the length of the text."""
    vectors = np.zeros((len(sentences), DIMENSIONS), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in sentence.split():
            digest = hashlib.sha256(word.encode()).digest()
            vectors[row, digest[0] % DIMENSIONS] += 1 + digest[1] / 256
        vectors[row, -1] += len(sentence) / 10
    return vectors


def sentences(rng: np.random.Generator, n: int, vocabulary: int = 40) -> list[str]:
    """n sentences of three to seven words."""
    lengths = rng.integers(3, 8, size=n)
    return [" ".join(f"w{word}" for word in rng.integers(vocabulary, size=k)) for k in lengths]


def seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(list(name.encode()))


def made_pairs(folder: DataFolder, task: str, *, split: str = "test", **_: Any) -> SentencePairs:
    """Rated pairs that share words the more, the higher their rating; of two sub-datasets."""
    rng = seeded(f"{task} {split}")
    first = sentences(rng, PAIRS)
    gold = np.round(rng.uniform(0, 5, size=PAIRS), 1)
    second = []
    for sentence, rating in zip(first, gold, strict=True):
        words = sentence.split()
        kept = words[: round(len(words) * rating / 5)]
        second.append(" ".join([*kept, *sentences(rng, 1)[0].split()[: 7 - len(kept)]]))
    return SentencePairs(
        name=task,
        sentences1=first,
        sentences2=second,
        gold=gold,
        subset=[("one", "two")[i % 3 == 0] for i in range(PAIRS)],
        split=split,
        form="tokenised",
        sha256="0" * 64,
    )


def made_captions(folder: DataFolder, **_: Any) -> RatedCaptions:
    pairs = made_pairs(folder, "CxC-STS")
    number = np.arange(PAIRS)
    return RatedCaptions(
        name=pairs.name,
        sentences1=pairs.sentences1,
        sentences2=pairs.sentences2,
        gold=pairs.gold,
        subset=pairs.subset,
        split="test",
        form="tokenised",
        sha256="0" * 64,
        caption1=number // 2,
        caption2=(number // 2 + 1 + number % 2) % (PAIRS // 2),
        image=number // 6,
    )


def made_labelled(folder: DataFolder, task: str, **_: Any) -> LabelledTexts:
    """Texts, or pairs for MRPC, in which one word often tells the class."""
    rng, classes = seeded(task), CLASSES[task]
    n = max(TEXTS, 40 * len(classes))
    labels = np.arange(n) % len(classes)
    rng.shuffle(labels)
    sides = []
    for _side in range(2 if task == "MRPC" else 1):
        told = rng.random(n) < 0.6
        texts = sentences(rng, n)
        hints = [f" class{label}" if tell else "" for label, tell in zip(labels, told, strict=True)]
        sides.append([text + hint for text, hint in zip(texts, hints, strict=True)])
    names = SPLITS.get(task, ("test",))
    split = np.array([names[i * len(names) // n] for i in range(n)])
    return LabelledTexts(
        name=task,
        texts=tuple(sides),
        labels=labels.astype(np.int64),
        split=split,
        form=None,
        sha256="0" * 64,
        classes=tuple(classes),
    )


def made_classed(folder: DataFolder, task: str, **_: Any) -> ClassedTexts:
    rng = seeded(task)
    labels = rng.integers(1, 5, size=TEXTS)
    texts = sentences(rng, TEXTS)
    return ClassedTexts(
        name=task,
        texts=[f"{text} topic{label}" for text, label in zip(texts, labels, strict=True)],
        labels=labels.astype(np.int64),
        form="sccl",
        sha256="0" * 64,
    )


READERS: dict[str, Callable[..., Any]] = {
    "read_sts": made_pairs,
    "read_sts_multi": made_pairs,
    "read_cxc": made_captions,
    "read_transfer": made_labelled,
    "read_clustering": made_classed,
}
"""Function of ``bench.data.sets`` that a module of suites imports -> what takes its place."""


def replace_readers() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("bench.score.suites."):
            for reader, made in READERS.items():
                if hasattr(module, reader):
                    setattr(module, reader, made)


def own_files(folder: Path) -> str:
    """Write a user's files of each kind; returns the part of each name after "own:"."""
    pairs = made_pairs(DataFolder(None), "mine")
    rows = zip(pairs.sentences1, pairs.sentences2, pairs.gold.tolist(), strict=True)
    lines = ["sentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in rows)]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    labelled = made_labelled(DataFolder(None), "SST-2")
    texts = zip(labelled.texts[0], labelled.labels.tolist(), labelled.split.tolist(), strict=True)
    rows_with_split = [f"{text}\tclass {label}\t{split}" for text, label, split in texts]
    lines = ["text\tlabel\tsplit", *rows_with_split]
    (folder / "splits.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = [line.rpartition("\t")[0] for line in lines]
    (folder / "folds.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    kinds = ("pairs.tsv", "classification:splits.tsv", "classification:folds.tsv")
    return ",".join((*kinds, "clustering:folds.tsv"))


def definition(name: str) -> dict[str, Any]:
    """Return the definition of a suite and its tasks, as far as scores and records depend on it."""
    whole = suite(name)
    parts = {
        protocol: [list(part.tasks), part.holds]
        for protocol, part in getattr(whole, "parts", {}).items()
    }
    return {
        **({"parts": parts} if parts else {}),
        "average": whole.average,
        "earlier": whole.earlier,
        "tasks": [
            {
                "name": task.name,
                "protocol": task.protocol,
                "metric": getattr(task.metric, "name", task.metric),
                "n": task.n,
                "data": task.data,
                "subsets": dict(task.subsets),
                "needs": task.needs,
            }
            for task in whole.tasks
        ],
    }


def numbers(name: str, data: DataFolder, tasks: str = "") -> dict[str, Any]:
    """The definition of a suite, and the score of each of its tasks on made-up data."""
    chosen = suite(f"{name}:{tasks}" if tasks else name)
    replace_readers()
    scores = {}
    for task in chosen.tasks:
        result = task.load(data).score(encode)
        key = (result.suite, result.task, result.protocol, result.text)
        again = None if task.rescore is None else rescore(key, result.predictions, result.metric)
        reduced = task.reduced(result.predictions)
        scores[f"{task.name}, {task.protocol}"] = {
            "metric": result.metric,
            "value": result.value,
            "n": result.n,
            "std": result.std,
            "text": result.text,
            "detail": result.detail,
            "predictions": result.predictions_sha256,
            "reduced": None if reduced is None else values_sha256(reduced),
            "again": None if again is None else [again.value, again.n, again.std, again.detail],
        }
    return {"definition": definition(name), "scores": scores}


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        data = DataFolder(place, offline=True)
        found = {}
        for name in names or suite_names():
            if name == "own":
                found[name] = numbers(name, data, own_files(Path(place)))
            else:
                found[name] = numbers(name, data)
    print(json.dumps(found, default=float, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
