"""Readers of rated sentence pairs in other languages: the tracks of SemEval-2017 Task 1, and STS-B
with its ten translations.

No step depends on a language. Sentences are split on white space and joined by single spaces, as in
the English sets; a language that writes no spaces keeps its sentences as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import numpy as np

from bench.data.sets import DataFolder, Found, data_set, single_spaced
from bench.data.sets.sts import SentencePairs, parse_gold, parse_pairs

# task -> data set; a task is named by its pair of languages, as the organisers name the tracks
TRACKS: Mapping[str, str] = {
    "ar-ar": "STS17-ar-ar",
    "ar-en": "STS17-ar-en",
    "es-es": "STS17-es-es",
    "es-en": "STS17-es-en",
    "es-en-WMT": "STS17-es-en-WMT",
    "en-en": "STS17-en-en",
    "tr-en": "STS17-tr-en",
}
# task -> data set of STS-B; "en" is the original
TRANSLATIONS: Mapping[str, str] = {
    "en": "STS-B-en",
    "de": "STS-B-de",
    "es": "STS-B-es",
    "fr": "STS-B-fr",
    "it": "STS-B-it",
    "ja": "STS-B-ja",
    "nl": "STS-B-nl",
    "pl": "STS-B-pl",
    "pt": "STS-B-pt",
    "ru": "STS-B-ru",
    "zh": "STS-B-zh",
}
MULTI_TASKS: Mapping[str, str] = {**TRACKS, **TRANSLATIONS}

Rows = list[tuple[str, str, float]]
"""First sentence, second sentence, rating."""


def read_sts_multi(folder: DataFolder, task: str, *, split: str = "test") -> SentencePairs:
    """Read the pairs of a task, with ratings from 0 to 5, checked against the known checksums.

    ``split``: "test"; the tasks of STS-B also have "dev". Raises DataMissing, DataDamaged.
    """
    wanted = data_set(MULTI_TASKS[task])
    copy = folder.open(wanted, wanted.split(split))
    if task in TRACKS:
        pairs, gold = copy.files
        rows = _track_rows(pairs, gold)
    else:
        rows = _table_rows(copy.files[0])
    return SentencePairs(
        name=task,
        sentences1=[first for first, _, _ in rows],
        sentences2=[second for _, second, _ in rows],
        gold=np.array([rating for _, _, rating in rows], dtype=np.float64),
        subset=[task] * len(rows),
        split=split,
        sha256=copy.sha256,
    )


def _track_rows(pairs: Found, gold: Found) -> Rows:
    """Return the rated pairs of a track: one for each line of the gold file.

    Track 6 has 500 pairs and 250 ratings, which belong to its first 250 pairs.
    """
    sentences = parse_pairs(pairs.text, pairs.file)
    ratings = parse_gold(gold.text, gold.file)
    return [
        (first, second, rating)
        for (first, second), rating in zip(sentences, ratings, strict=False)
        if rating is not None  # every line has one
    ]


def _table_rows(table: Found) -> Rows:
    """Return the rows of a CSV file without a header: two sentences and a rating."""
    return [
        (single_spaced(first), single_spaced(second), float(rating))
        for first, second, rating in csv.reader(io.StringIO(table.text, newline=""))
    ]
