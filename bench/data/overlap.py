"""Which sentences of the evaluation sets occur in a training corpus, exactly or nearly
(docs/data.md).

Counts per task: how many of its sentences occur in a corpus, and in how many rows of the corpus
they do.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.base.cache import CacheEntry
from bench.data.corpora import Corpus
from bench.data.corpora.columns import NUMBERS
from bench.data.near import NearIndex, words_of

RULE = "overlap/1"  # of the way sentences are compared: two counts compare only under one
# a row is marked if it trained on this share of a task's sentences, or more
MUCH = 0.1
AT_ONCE = 10_000  # rows of the corpus that are looked up together


@dataclass(frozen=True)
class OfTask:
    """A fact about one task of a suite.

    ``text``: the protocol's word for its texts: "raw", the hash of a user's file, or "".
    """

    suite: str
    task: str
    text: str


@dataclass(frozen=True)
class ScoredSentences(OfTask):
    """The sentences of a task, as scored; repetitions allowed."""

    sentences: Sequence[str] = field(repr=False)


@dataclass(frozen=True)
class Overlap(OfTask):
    """The number of a task's sentences that occur in a corpus.

    The task has ``sentences`` distinct ones; ``exact`` occur in the corpus, ``near`` others nearly.
    ``rows`` of the corpus have at least one of either.
    """

    sentences: int
    exact: int
    near: int
    rows: int


def scored_sentences(task: Any) -> Sequence[str]:
    """Return the sentences of a loaded task that its data has.

    For pairs they are the scored split. Sentences that a task makes of others are left out.
    """
    pairs: Any = getattr(task, "data", None)
    if hasattr(pairs, "sentences1"):
        return [*pairs.sentences1, *pairs.sentences2]
    return list(getattr(task, "original", task.sentences))


def count_overlaps(
    corpus: Corpus,
    wanted: Sequence[ScoredSentences],
    *,
    cache: Path | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> list[Overlap]:
    """Return the overlap of every task with a corpus, in the order of ``wanted``; each cell of the
    corpus counts as a sentence.

    Counts are remembered in the cache by the corpus's content and the task's sentences.
    ``progress(rows)`` counts rows of the corpus. Raises CorpusError.
    """
    sets = [_distinct(sentences.sentences) for sentences in wanted]
    entries = [CacheEntry("overlap", _name(corpus, keys), root=cache) for keys in sets]
    known = [entry.read() for entry in entries]
    todo = [i for i, counts in enumerate(known) if counts is None]
    if todo:
        new = _counted(corpus, [sets[i] for i in todo], progress)
        for i, counts in zip(todo, new, strict=True):
            known[i] = counts
            entries[i].write(counts)
    return [
        Overlap(sentences.suite, sentences.task, sentences.text, len(distinct), **(counts or {}))
        for sentences, distinct, counts in zip(wanted, sets, known, strict=True)
    ]


def _distinct(sentences: Sequence[str]) -> dict[str, list[str]]:
    """Return key -> words; a sentence without a letter or digit is left out."""
    distinct: dict[str, list[str]] = {}
    for sentence in dict.fromkeys(sentences):
        words = words_of(sentence)
        if words:
            distinct.setdefault("".join(words), words)
    return distinct


def _counted(
    corpus: Corpus, sets: Sequence[dict[str, list[str]]], progress: Callable[[int], None]
) -> list[dict[str, int]]:
    """Return ``exact``, ``near`` and ``rows`` of each set, in one pass over the corpus."""
    words_by_key: dict[str, list[str]] = {}
    tasks_by_key: dict[str, list[int]] = {}
    for t, task_sentences in enumerate(sets):
        for key, words in task_sentences.items():
            words_by_key.setdefault(key, words)
            tasks_by_key.setdefault(key, []).append(t)
    keys = list(words_by_key)
    number_of = {key: i for i, key in enumerate(keys)}
    index = NearIndex(list(words_by_key.values()))
    matched: dict[str, set[int]] = {"exact": set(), "near": set()}
    rows = Counter[int]()
    columns = [i for i, name in enumerate(corpus.columns) if name not in NUMBERS]
    numbered = enumerate(corpus.rows(), start=1)
    while batch := list(itertools.islice(numbered, AT_ONCE)):
        cells = [(number, words_of(row[i])) for number, row in batch for i in columns]
        hits: set[tuple[int, int]] = set()  # (row, task)
        own = [number_of.get("".join(words), -1) for _, words in cells]
        matches = [("exact", place, i) for place, i in enumerate(own) if i >= 0]
        for place, i in index.near([words for _, words in cells]):
            if own[place] != i:
                matches.append(("near", place, i))
        for kind, place, i in matches:
            matched[kind].add(i)
            number, _ = cells[place]
            hits.update((number, t) for t in tasks_by_key[keys[i]])
        rows.update(t for _, t in hits)
        progress(batch[-1][0])
    counts = []
    for t, task_sentences in enumerate(sets):
        numbers = {number_of[key] for key in task_sentences}
        exact, nearly = numbers & matched["exact"], numbers & matched["near"]
        counts.append({"exact": len(exact), "near": len(nearly - exact), "rows": rows[t]})
    return counts


def _name(corpus: Corpus, keys: dict[str, list[str]]) -> str:
    """Return the name of the cache entry: a hash of all that decides the counts."""
    digest = hashlib.sha256(
        json.dumps([RULE, corpus.sha256, corpus.format, corpus.column, *corpus.columns]).encode()
    )
    for key, words in sorted(keys.items()):
        digest.update(f"{key}\0{' '.join(words)}\0".encode())
    return digest.hexdigest()[:32]


def overlaps_of(stored: Any) -> list[Overlap]:
    """Read the counts of a record, which may be anything.

    [] if nothing was recorded, or if it has the form of another version.
    """
    try:
        return msgspec.convert(stored["tasks"], list[Overlap])
    except (TypeError, KeyError, msgspec.ValidationError):
        return []


def seen_tasks(stored: Any, suite: str) -> list[str]:
    """Return the tasks with at least 10 % of their sentences in the training corpus."""
    seen = []
    for overlap in overlaps_of(stored):
        shared = overlap.exact + overlap.near
        if overlap.suite == suite and shared >= MUCH * overlap.sentences > 0:
            seen.append(overlap.task)
    return seen


def merge_overlaps(found: Sequence[Overlap], before: Any = None) -> dict[str, Any]:
    """Return ``provenance.corpus.overlap`` of a record.

    It has these counts, and for other tasks the counts of an earlier record (``before``).
    """
    cells = {(overlap.suite, overlap.task, overlap.text): asdict(overlap) for overlap in found}
    if isinstance(before, dict) and before.get("rule") == RULE:
        cells = {(old["suite"], old["task"], old["text"]): old for old in before["tasks"]} | cells
    return {"rule": RULE, "tasks": list(cells.values())}
