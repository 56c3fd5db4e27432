"""Terms: everything that decides a result besides the seed and the code of the method."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bench.records.record import RunRecord


# names of differences between rows that are no recipe values
PRECISION = "precision"
PROCESSES = "processes"
DEV_SET = "dev set"
CORPUS = "corpus"

SELECT_ON = "select_on"
"""The recipe value that names the set for choosing checkpoints."""

SHORT = 6  # characters of a hash that are shown
LONGER = 12  # of hashes that have to be told apart


class Term(NamedTuple):
    """One thing that decides a result."""

    exact: str
    """Equal for two runs exactly if the fingerprint takes them to be equal in it."""
    shown: str
    """As it is printed; two exact values may print the same."""
    unlike: str
    """The printed form, because another exact value may print the same."""


def terms_of(record: RunRecord) -> dict[str, Term]:
    """Return everything besides the seed and the code of the method that decides the result, by
    name.
    """
    about = record.provenance
    contents = (about.determines or {}).get("places")
    contents = contents if isinstance(contents, Mapping) else {}
    terms = {}
    for key, value in record.recipe.items():
        shown = _short(value.value)
        content = contents.get(key)
        if isinstance(content, str):  # the content of a file counts, not its name
            terms[key] = Term(content, shown, f"{shown}@{content[:SHORT]}")
        else:
            exact = _exact(value.value)
            terms[key] = Term(exact, shown, exact)
    terms |= determined_terms(record)
    if about.corpus.sha256:
        name = about.corpus.name or "corpus"
        sha256 = about.corpus.sha256
        terms[CORPUS] = Term(sha256, name, f"{name}@{sha256[:LONGER]}")
    if revision := about.backbone.revision:
        terms["backbone revision"] = Term(str(revision), str(revision)[:8], str(revision))
    return terms


def determined_terms(record: RunRecord) -> dict[str, Term]:
    """Return the terms that are no recipe values, no training text and no backbone."""
    terms = {}
    for key, value in (record.provenance.determines or {}).items():
        # the hash of the corpus covers its parts; a row has one code
        if key in ("places", "corpus_parts", "plugin") or value is None:
            continue
        exact = _exact(value)
        if key == "dev":
            short = _short(value)[:SHORT]
            terms[DEV_SET] = Term(exact, short, exact)
        else:
            terms[_TERMS.get(key, key)] = Term(exact, _short(value), exact)
    return terms


_TERMS = {"ranks": PROCESSES}
"""A name in ``provenance.determines`` -> the name that a row uses."""


def corpus_words(record: RunRecord) -> str | None:
    """Return the name of the training text and the beginning of its sha256; None if the record has
    no sha256."""
    corpus = record.provenance.corpus
    return f"{corpus.name or 'corpus'}@{corpus.sha256[:SHORT]}" if corpus.sha256 else None


_JSON = json.JSONEncoder(default=str)

_SORTED_JSON = json.JSONEncoder(sort_keys=True, default=str)
"""``json.dumps`` would make one for each value."""


def _short(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else _JSON.encode(value)


def _exact(value: object) -> str:
    """Return every digit of a number; 1 and 1.0 are one number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return _SORTED_JSON.encode(value)
