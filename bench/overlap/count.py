"""Counts per task: how many of its sentences stand in a corpus, and in how many rows of the corpus they stand."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.corpora import Corpus, default_cache
from bench.files import write_whole
from bench.overlap.near import NearIndex, words_of

RULE = "overlap/1"  # of the way sentences are compared: two counts compare only under one
AT_ONCE = 10_000  # rows of the corpus that are looked up together


@dataclass(frozen=True)
class Wanted:
    """The sentences of one task in one text form, as they are scored; repetitions allowed."""

    suite: str
    task: str
    text: str | None
    sentences: Sequence[str] = field(repr=False)


@dataclass(frozen=True)
class Overlap:
    """Of the ``sentences`` distinct ones of a task, ``exact`` stand in the corpus and ``near`` others nearly; ``rows`` of the
    corpus have at least one of either."""

    suite: str
    task: str
    text: str | None
    sentences: int
    exact: int
    near: int
    rows: int


@dataclass(frozen=True)
class Match:
    """A sentence of the corpus beside one of a task. ``similarity``: shared words over all words of the two."""

    suite: str
    task: str
    text: str | None
    kind: str  # "exact" or "near"
    similarity: float
    row: int  # of the corpus, from 1
    corpus: str
    sentence: str


def scored_sentences(task: Any) -> Sequence[str]:
    """The data's own sentences of a loaded task: of pairs the scored split, without sentences that a task makes of them."""
    pairs = getattr(task, "data", None)
    if pairs is not None and hasattr(pairs, "sentences1"):
        return [*pairs.sentences1, *pairs.sentences2]
    return list(getattr(task, "original", task.sentences))


def overlaps(
    corpus: Corpus,
    wanted: Sequence[Wanted],
    *,
    cache: Path | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    found: Callable[[Match], None] | None = None,
) -> list[Overlap]:
    """The overlap of every task with a corpus, in the order of ``wanted``; each cell of the corpus counts as a sentence.

    Counts are remembered in the cache by the corpus's content and the task's sentences; with ``found`` the corpus is always
    read, and every match is handed over. ``progress(rows)`` counts rows of the corpus. Raises CorpusError.
    """
    cache = (cache if cache is not None else default_cache()) / "overlap"
    sets = [_distinct(one.sentences) for one in wanted]
    files = [cache / f"{_name(corpus, keys)}.json" for keys in sets]
    known = [None if found else _remembered(file) for file in files]
    todo = [i for i, one in enumerate(known) if one is None]
    if todo:
        for i, counts in zip(
            todo, _counted(corpus, [wanted[i] for i in todo], [sets[i] for i in todo], progress, found), strict=True
        ):
            known[i] = counts
            with contextlib.suppress(OSError):  # only a memory
                write_whole(files[i], json.dumps(counts).encode())
    return [Overlap(one.suite, one.task, one.text, len(keys), **(counts or {}))
            for one, keys, counts in zip(wanted, sets, known, strict=True)]  # fmt: skip


def recorded(found: Sequence[Overlap], before: Any = None) -> dict[str, Any]:
    """What a run's record keeps below ``provenance.corpus.overlap``: these, and of an earlier record what these do not replace."""
    cells = {(one.suite, one.task, one.text): asdict(one) for one in found}
    if isinstance(before, dict) and before.get("rule") == RULE:
        old = {(one["suite"], one["task"], one["text"]): one for one in before["tasks"]}
        cells = {**old, **cells}
    return {"rule": RULE, "tasks": list(cells.values())}


def _distinct(sentences: Sequence[str]) -> dict[str, tuple[list[str], str]]:
    """Key -> (words, the sentence as it first stood); a sentence without a letter or digit is left out."""
    distinct: dict[str, tuple[list[str], str]] = {}
    for sentence in dict.fromkeys(sentences):
        words = words_of(sentence)
        if words:
            distinct.setdefault("".join(words), (words, sentence))
    return distinct


def _counted(
    corpus: Corpus, wanted: Sequence[Wanted], sets: Sequence[dict[str, tuple[list[str], str]]], progress: Callable[[int], None],
    found: Callable[[Match], None] | None,
) -> list[dict[str, int]]:  # fmt: skip
    """``exact``, ``near`` and ``rows`` of each set, in one pass over the corpus."""
    keys = list(dict.fromkeys(key for one in sets for key in one))
    number_of = {key: i for i, key in enumerate(keys)}
    tasks_of: list[list[int]] = [[] for _ in keys]
    for t, one in enumerate(sets):
        for key in one:
            tasks_of[number_of[key]].append(t)
    index = NearIndex([next(one[key][0] for one in sets if key in one) for key in keys])
    exact, near = bytearray(len(keys)), bytearray(len(keys))
    rows = [0] * len(wanted)
    columns = [i for i, name in enumerate(corpus.columns) if name != "label"]
    numbered = enumerate(corpus.rows(), start=1)
    while batch := list(itertools.islice(numbered, AT_ONCE)):
        cells = [(number, row[i], words_of(row[i])) for number, row in batch for i in columns]
        hits: set[tuple[int, int]] = set()  # (row, task)
        own = [number_of.get("".join(words), -1) for _, _, words in cells]
        same = [(place, i, 1.0) for place, i in enumerate(own) if i >= 0]
        alike = [one for one in index.near([words for _, _, words in cells]) if own[one[0]] != one[1]]
        for kind, flags, pairs in (("exact", exact, same), ("near", near, alike)):
            for place, i, similarity in pairs:
                flags[i] = 1
                number, text, _ = cells[place]
                for t in tasks_of[i]:
                    hits.add((number, t))
                    if found is not None:
                        task = wanted[t]
                        found(Match(task.suite, task.task, task.text, kind, similarity, number, text, sets[t][keys[i]][1]))
        for _, t in hits:
            rows[t] += 1
        progress(batch[-1][0])
    counts = []
    for t, one in enumerate(sets):
        own_numbers = [number_of[key] for key in one]
        nearly = sum(near[i] and not exact[i] for i in own_numbers)
        counts.append({"exact": sum(exact[i] for i in own_numbers), "near": nearly, "rows": rows[t]})
    return counts


def _name(corpus: Corpus, keys: dict[str, Any]) -> str:
    """Of the file that remembers the counts: all that decides them."""
    digest = hashlib.sha256(json.dumps([RULE, corpus.sha256, corpus.format, corpus.column, *corpus.columns]).encode())
    for key, (words, _) in sorted(keys.items()):
        digest.update(f"{key}\0{' '.join(words)}\0".encode())
    return digest.hexdigest()[:32]


def _remembered(file: Path) -> dict[str, int] | None:
    try:
        counts = json.loads(file.read_text(encoding="utf-8"))
        if set(counts) == {"exact", "near", "rows"} and all(isinstance(n, int) for n in counts.values()):
            return dict(counts)
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    return None
