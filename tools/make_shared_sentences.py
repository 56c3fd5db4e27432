"""Makes ``shared_sentences.npz`` and ``shared_in_tracks.npz`` in ``bench/data/sets`` from the data:
which pairs of the seven STS sets, and of STS 2017's seven tracks, share a sentence.

python tools/make_shared_sentences.py DIR
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.data.sets import DataFolder
from bench.data.sets.shared_sentences import STORED, STORED_TRACKS, gold_hash
from bench.data.sets.sts import STS_TASKS, read_sts
from bench.data.sets.sts_multi import TRACKS, read_sts_multi

if TYPE_CHECKING:
    from bench.data.sets.sts import Numbers, SentencePairs


def number_sentences(folder: DataFolder, text: str = "any") -> dict[str, tuple[str, Numbers]]:
    """Return for each task the hash of its gold scores, and its sentences' numbers.

    Numbers are given by first appearance over all tasks.
    """
    return _number(read_sts(folder, task, text=text) for task in STS_TASKS)


def number_tracks(folder: DataFolder) -> dict[str, tuple[str, Numbers]]:
    """Do the same for the tracks of STS 2017."""
    return _number(read_sts_multi(folder, task) for task in TRACKS)


def _number(sets: Iterable[SentencePairs]) -> dict[str, tuple[str, Numbers]]:
    known: dict[str, int] = {}
    found = {}
    for pairs in sets:
        both = zip(pairs.sentences1, pairs.sentences2, strict=True)
        numbers_N2 = np.array(
            [[known.setdefault(_letters(one), len(known)) for one in pair] for pair in both]
        )
        found[pairs.name] = gold_hash(pairs.gold), numbers_N2
    return found


def _letters(sentence: str) -> str:
    return re.sub(r"[\W_]+", "", sentence.lower()) or sentence


def store(numbered: dict[str, tuple[str, Numbers]], path: Path = STORED) -> None:
    """Write the result of ``number_sentences`` or ``number_tracks``."""
    np.savez_compressed(
        path,
        numbers=np.concatenate([numbers for _, numbers in numbered.values()]).astype(np.int32),
        gold=np.array([gold for gold, _ in numbered.values()]),
        items=np.array([len(numbers) for _, numbers in numbered.values()]),
    )


if __name__ == "__main__":
    data = DataFolder(Path(sys.argv[1]))
    store(number_sentences(data))
    store(number_tracks(data), STORED_TRACKS)
