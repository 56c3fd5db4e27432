"""Makes ``bench/data/sets/shared_sentences.npz`` from the data: which pairs of the seven STS sets
share a sentence.

python tools/make_shared_sentences.py DIR
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.data.sets import DataFolder
from bench.data.sets.shared_sentences import STORED, gold_hash
from bench.data.sets.sts import STS_TASKS, read_sts

if TYPE_CHECKING:
    from bench.data.sets.sts import Numbers


def number_sentences(folder: DataFolder, text: str = "any") -> dict[str, tuple[str, Numbers]]:
    """Return for each task the hash of its gold scores, and its sentences' numbers.

    Numbers are given by first appearance over all tasks.
    """
    known: dict[str, int] = {}
    found = {}
    for task in STS_TASKS:
        pairs = read_sts(folder, task, text=text)
        both = zip(pairs.sentences1, pairs.sentences2, strict=True)
        numbers_N2 = np.array(
            [[known.setdefault(_letters(one), len(known)) for one in pair] for pair in both]
        )
        found[task] = gold_hash(pairs.gold), numbers_N2
    return found


def _letters(sentence: str) -> str:
    return re.sub(r"[\W_]+", "", sentence.lower()) or sentence


def store(numbered: dict[str, tuple[str, Numbers]], path: Path = STORED) -> None:
    """Write the result of ``number_sentences``."""
    flat = np.concatenate([numbered[task][1].reshape(-1) for task in STS_TASKS]).tolist()
    met: dict[int, int] = {}
    back = np.zeros(len(flat), dtype=np.uint16 if len(flat) < 1 << 16 else np.int64)
    for i, number in enumerate(flat):
        back[i] = i - met[number] if number in met else 0
        met[number] = i
    np.savez_compressed(
        path,
        back=back,
        gold=np.array([numbered[task][0] for task in STS_TASKS]),
        items=np.array([len(numbered[task][1]) for task in STS_TASKS]),
    )


if __name__ == "__main__":
    store(number_sentences(DataFolder(Path(sys.argv[1]))))
