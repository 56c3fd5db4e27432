"""Which pairs of the seven STS sets share a sentence: a number for each sentence, the same wherever it stands.

Stored predictions hold no sentences, so the numbers are kept here, by task and by the gold scores in their order
(``shared_sentences.npz``; no text is in it). Sentences with the same letters and digits are one; so both text forms have the same
numbers. Made anew from the data:

    python -m bench.data.sets.shared_sentences DIR
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.data.sets.folder import DataFolder
from bench.data.sets.sts import STS_TASKS, read_sts

STORED = Path(__file__).with_name("shared_sentences.npz")
Numbers = NDArray[np.int64]


def sentence_numbers(task: str, gold_N: NDArray[np.generic]) -> Numbers | None:
    """(N, 2) the numbers of both sentences of every pair; None where these are not the scores of a known set."""
    found = _stored().get(task)
    return found[1] if found is not None and found[0] == gold_hash(gold_N) else None


def known_tasks() -> tuple[str, ...]:
    """Tasks whose sentences have numbers."""
    return STS_TASKS


def gold_hash(gold_N: NDArray[np.generic]) -> str:
    """Of the scores as 32-bit floats, in which some files store them."""
    return hashlib.sha256(np.ascontiguousarray(gold_N, dtype="<f4").tobytes()).hexdigest()


def number_sentences(folder: DataFolder, text: str = "any") -> dict[str, tuple[str, Numbers]]:
    """Of each task: the hash of its gold scores, and its numbers, by first appearance over all tasks."""
    known: dict[str, int] = {}
    found = {}
    for task in STS_TASKS:
        pairs = read_sts(folder, task, text=text)
        both = zip(pairs.sentences1, pairs.sentences2, strict=True)
        numbers_N2 = np.array([[known.setdefault(_letters(one), len(known)) for one in pair] for pair in both])
        found[task] = gold_hash(pairs.gold), numbers_N2
    return found


def _letters(sentence: str) -> str:
    return re.sub(r"[\W_]+", "", sentence.lower()) or sentence


@cache
def _stored() -> dict[str, tuple[str, Numbers]]:
    with np.load(STORED, allow_pickle=False) as stored:
        numbers, hashes = _appearing(stored["back"].astype(np.int64)), stored["gold"]
        parts = np.split(numbers, np.cumsum(stored["items"])[:-1] * 2)
    return {task: (str(hashes[i]), parts[i].reshape(-1, 2)) for i, task in enumerate(STS_TASKS)}


def _appearing(back: Numbers) -> Numbers:
    """Numbers by first appearance, from how many sentences ago each was met last (0: never), which takes less room."""
    found = np.zeros(len(back), dtype=np.int64)
    new = 0
    for i, ago in enumerate(back.tolist()):
        found[i] = found[i - ago] if ago else new
        new += not ago
    return found


def store(numbered: dict[str, tuple[str, Numbers]], path: Path = STORED) -> None:
    """Write what ``number_sentences`` found."""
    flat = np.concatenate([numbered[task][1].reshape(-1) for task in STS_TASKS]).tolist()
    met: dict[int, int] = {}
    back = np.zeros(len(flat), dtype=np.uint16 if len(flat) < 1 << 16 else np.int64)
    for i, number in enumerate(flat):
        back[i] = i - met[number] if number in met else 0
        met[number] = i
    np.savez_compressed(path, back=back, gold=np.array([numbered[task][0] for task in STS_TASKS]),
                        items=np.array([len(numbered[task][1]) for task in STS_TASKS]))  # fmt: skip


if __name__ == "__main__":
    store(number_sentences(DataFolder(Path(sys.argv[1]))))
