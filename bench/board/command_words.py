"""The words of commands that pages print: each has the form that its option takes, or there is no
command.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bench.base.text import one_value
from bench.data.corpora.naming import BY_HASH, HUB, parse_corpus
from bench.data.sets import MADE_HERE, RECIPE_CORPORA, data_sets
from bench.records.record import public_name

NOT_REPEATABLE = "not repeatable from here"
RUN = re.compile(
    r"([A-Za-z0-9][\w.+@=-]*-(?:s\d+|any)-[0-9a-f]{8})(?:[/\\]checkpoint)?[/\\]?$", re.ASCII
)
"""The id of a run at the end of a path."""
PRECISIONS = ("auto", "fp32", "tf32", "bf16", "fp16")
MOST_WORDS, LONGEST_WORD = 200, 500
METHOD_NAME = re.compile(r"[a-z0-9-]+(\+[\w.-]+)?", re.ASCII)
PLAIN_NAME = re.compile(r"\w[\w .@+=/-]*")
SUITE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(:[\w.,@:+-]+(/[0-9]+)?)?", re.ASCII)
CORPUS_NAME = re.compile(rf"builtin|hub:[\w./@:,#=-]+|{BY_HASH}[0-9a-f]{{64}}", re.ASCII)
CORPUS_COLUMN = re.compile(
    r"\w[\w .()+-]*=(?:sentence|label|score|negatives|sent[01]|hard_neg(?:_\d+)?)"
)
KEY = re.compile(r"[A-Za-z]\w*", re.ASCII)
_UNSAFE = re.compile(r"[;|&$`\\<>]")
"""Characters that no value may hold, although it is quoted: shells read quotes differently."""
_TOKEN = re.compile(r"</?(?:mask|s|pad|unk)>")
"""RoBERTa's tokens, which prompts hold."""


class NotRepeatable(Exception):
    """Raised if a field has not the form that its option takes."""


def compose(words: Sequence[str]) -> str:
    """Join words into a command. Raises NotRepeatable if there are too many, or one is too long."""
    if len(words) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in words):
        raise NotRepeatable
    return shlex.join(words)


def checked_word(value: object, pattern: re.Pattern[str]) -> str:
    """Return the value, if it is a visible text of this form. Raises NotRepeatable."""
    if not isinstance(value, str) or not value.isprintable() or not pattern.fullmatch(value):
        raise NotRepeatable
    return value


def checked_mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping, an empty one for None. Raises NotRepeatable."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NotRepeatable
    return value


def checked_precision(value: object) -> str:
    """Return a precision, "auto" for None. Raises NotRepeatable."""
    if value is None:
        return "auto"
    if not isinstance(value, str) or value not in PRECISIONS:
        raise NotRepeatable
    return value


def corpus_word(name: str, sha256: str | None) -> str:
    """Return the value of --corpus for a text: a name that bench can find or fetch, else its hash.

    Raises NotRepeatable.
    """
    if name in MADE_HERE:
        return name
    if name == "builtin" or name.startswith(HUB):
        return checked_word(name, CORPUS_NAME)
    known_files: set[tuple[str, str]] = set()
    for data_set in data_sets().values():
        if data_set.kind == "corpus":
            file = data_set.files[0]
            known_files.update((file.name, form.sha256) for form in file.forms.values())
    for word, file_name in RECIPE_CORPORA.items():
        if (file_name, sha256) in known_files:
            return word
    return checked_word(f"{BY_HASH}{sha256}", CORPUS_NAME)


def corpus_part_word(argument: object) -> str:
    """Return one of several values of --corpus, with the columns that it may have.

    Raises NotRepeatable.
    """
    if not isinstance(argument, str):
        raise NotRepeatable
    if argument in MADE_HERE or CORPUS_NAME.fullmatch(argument):
        return argument
    corpus = parse_corpus(argument)
    columns = [checked_word(column, CORPUS_COLUMN) for column in corpus.columns]
    return f"{checked_word(corpus.source, CORPUS_NAME)}:{','.join(columns)}"


def value_word(value: object) -> str:
    """Write the value after the equals sign of --set. Raises NotRepeatable."""
    if value is None:
        return "none"
    text = one_value(value) if isinstance(value, str) else json.dumps(value)
    if not text.isprintable() or _UNSAFE.search(_TOKEN.sub("", text.replace("\\,", ","))):
        raise NotRepeatable
    return text


def without_folder(place: str) -> str:
    """Put a run into the default runs folder; anything else becomes the last part of its path."""
    run = RUN.search(place)
    return public_name(place) if run is None else f"runs/{run[1]}"
