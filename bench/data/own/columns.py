"""Find the columns of a user's file: texts, an answer, a split, a subset."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError
from bench.base.text import list_names
from bench.data.own.naming import (
    CLASSIFICATION,
    CLUSTERING,
    EXAMPLE,
    PAIRS,
    RETRIEVAL,
    OwnFile,
)
from bench.data.reading.naming import plain_name

FIRST = ("sentence1", "sent0", "text1", "texta", "anchor", "premise", "question1", "query")
SECOND = ("sentence2", "sent1", "text2", "textb", "positive", "hypothesis", "question2", "answer")
TEXT = ("text", "sentence", "content", "review", "title", "utterance", "question")
RATING = (
    "score",
    "rating",
    "similarity",
    "similarityscore",
    "relatedness",
    "relatednessscore",
    "gold",
)
LABEL = ("label", "class", "category", "intent", "topic", "labeltext")
QUERY = ("query", "question")
DOCUMENT = ("document", "passage", "answer", "text")
RELEVANCE = ("relevance", *RATING)
SPLIT, SUBSET = ("split",), ("subset",)
"""Known names, as ``plain_name`` gives them; of several the first is taken."""
LIKE_A_TEXT = re.compile(
    r"(sent|sentence|text|content|review|title|utterance|question|answer|query|anchor|positive"
    r"|premise|hypothesis)s?[\da-z]?"
)
LIKE_AN_ANSWER = re.compile(
    r"\w*(score|rating|similarity|relatedness|gold|label|labeltext|class|category|intent|topic)"
    r"s?\d*"
)
"""Names that can only mean a text or an answer: such a column is never left out unasked."""
NEEDED = {
    PAIRS: "first sentence, second sentence, rating",
    CLASSIFICATION: "text, label (of pairs: first text, second text, label)",
    CLUSTERING: "text, label",
    RETRIEVAL: "query, document, relevance",
}


@dataclass(frozen=True)
class FileColumns:
    """The file's own names of the columns that are read."""

    texts: tuple[str, ...]
    """One column of texts, or the two sides of pairs."""
    answer: str
    """The column of ratings or labels."""
    split: str | None = None
    subset: str | None = None


def find_kind(own: OwnFile, there: Sequence[str]) -> str:
    """Return the kind of a file with the columns ``there``.

    Raises BenchError if no column says it, or labels may mean two things.
    """
    if own.kind:
        return own.kind
    named = own.columns or there
    if first_of(RATING, named) or (len(own.columns) == 3 and not first_of(LABEL, named)):
        return PAIRS
    if not own.columns and all(first_of(one, there) for one in (QUERY, DOCUMENT, RELEVANCE)):
        raise BenchError(
            f"{own.path} has queries, documents and their relevance",
            _option(own, RETRIEVAL),
        )
    if not own.columns and not first_of(LABEL, there):
        raise BenchError(
            f"{own.path}: its first line names the columns "
            f"{', '.join(name[:30] for name in there)}; "
            "none is known",
            "write a first line with names (sentence1, sentence2, score), or name the columns: "
            f"{EXAMPLE}",
        )
    if own.columns and len(own.columns) not in (2, 3):
        raise BenchError(
            f"{own.path}: {', '.join(own.columns)}: expected two texts and a rating or a label, or "
            "a text and a label",
            EXAMPLE,
        )
    if len(own.columns) == 3 or (first_of(FIRST, named) and first_of(SECOND, named)):
        raise BenchError(
            f"{own.path} has labels: they may be ratings of pairs, or classes to predict",
            f"{_option(own, PAIRS)}, or {_option(own, CLASSIFICATION)}",
        )
    raise BenchError(
        f"{own.path} has labels: they may be classes to predict, or to find by clustering",
        f"{_option(own, CLASSIFICATION)}, or {_option(own, CLUSTERING)}",
    )


def choose_columns(own: OwnFile, there: Sequence[str]) -> FileColumns:
    """Find the columns of a file that has the columns ``there``. ``own.kind`` must be known.

    Raises BenchError, with the columns that the file has, if one is missing, or if one would be
    left out that may be meant.
    """
    split = first_of(SPLIT, there)
    subset = first_of(SUBSET, there)
    if own.columns:
        _check_named(own, there)
        *texts, answer = own.columns
        return FileColumns(tuple(texts), answer, split, subset)
    chosen = FileColumns(*_find_texts_and_answer(own, there), split, subset)
    _check_left_out(own, there, chosen)
    return chosen


def _find_texts_and_answer(own: OwnFile, there: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the columns of a file by their names, the first known one for each role.

    Raises BenchError if one is missing.
    """
    first = first_of(FIRST, there)
    second = first_of(SECOND, there)
    text = first_of(TEXT, there)
    label = first_of(LABEL, there)
    if own.kind == RETRIEVAL:
        query, document = first_of(QUERY, there), first_of(DOCUMENT, there)
        relevance = first_of(RELEVANCE, there) or label
        if query and document and relevance:
            return (query, document), relevance
        raise _missing(own, there, "columns of queries, documents and relevance")
    if own.kind == PAIRS:
        rating = first_of(RATING, there) or label
        if first and second and rating:
            return (first, second), rating
        raise _missing(own, there, "two columns of sentences and one of ratings")
    if label and text:
        return (text,), label
    if label and first and second and own.kind == CLASSIFICATION:
        return (first, second), label
    raise _missing(own, there, "a column of texts and one of labels")


def _check_left_out(own: OwnFile, there: Sequence[str], chosen: FileColumns) -> None:
    """Raise BenchError if a column would be left out that may mean a text or the answer."""
    read = (*chosen.texts, chosen.answer)
    for name in there:
        if name in (*read, chosen.split, chosen.subset):
            continue
        plain = plain_name(name)
        if LIKE_A_TEXT.fullmatch(plain) or LIKE_AN_ANSWER.fullmatch(plain):
            raise BenchError(
                f"{own.path}: '{name[:30]}' would be left out beside {list_names(read)}, and it "
                "may be meant",
                f"name the columns to read, with it or without it: {_option(own, own.kind, read)}",
            )


def _check_named(own: OwnFile, there: Sequence[str]) -> None:
    absent = [name for name in own.columns if name not in there]
    if absent:
        raise BenchError(
            f"{own.path} has no column '{absent[0]}'; it has {', '.join(there)}",
            _option(own, own.kind, ("COLUMN", "COLUMN")),
        )
    if len(set(own.columns)) < len(own.columns):
        raise BenchError(f"{own.path}: a column is named twice: {', '.join(own.columns)}", EXAMPLE)
    expected = {PAIRS: (3,), CLASSIFICATION: (2, 3), CLUSTERING: (2,), RETRIEVAL: (3,)}[own.kind]
    if len(own.columns) not in expected:
        raise _missing(own, own.columns, NEEDED[own.kind])


def _missing(own: OwnFile, there: Sequence[str], needed: str) -> BenchError:
    """Return the error for a file without the columns of its kind, found by their names."""
    names, _, _ = NEEDED[own.kind].partition(" (")
    columns = names.replace(", ", ",").replace(" ", "_").split(",")
    return BenchError(
        f"{own.path}: expected {needed}; it has the columns "
        f"{', '.join(name[:30] for name in there)}",
        f"name them, in this order: {_option(own, own.kind, columns)}",
    )


def _option(own: OwnFile, kind: str, columns: Sequence[str] = ()) -> str:
    """Return the option that scores the file as a kind, as a shell takes it.

    ``columns``: those to read; () for those that the user named.
    """
    text = f"{kind}:{own.path}"
    named = columns or own.columns
    if named:
        text += f":{','.join(named)}"
    return f"--suite {shlex.quote(text)}"


def first_of(known: Sequence[str], there: Sequence[str]) -> str | None:
    """Return the file's own name of the first of the ``known`` columns that it has."""
    names = {plain_name(name): name for name in there}
    for name in known:
        if name in names:
            return names[name]
    return None
