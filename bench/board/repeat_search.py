"""The command that makes a search of recipe values again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bench.base.text import seed_ranges
from bench.board.command_words import (
    KEY,
    METHOD_NAME,
    NOT_REPEATABLE,
    PLAIN_NAME,
    RUN,
    SUITE_NAME,
    NotRepeatable,
    checked_precision,
    checked_word,
    compose,
    corpus_part_word,
    corpus_word,
    value_word,
    without_folder,
)
from bench.records.record import SET, SETTINGS, public_name
from bench.records.searches import Search, Searched

_BUDGET = re.compile(r"[\w.-]+", re.ASCII)


def repeat_search(search: Search) -> str:
    """Compose the command that makes a search again; NOT_REPEATABLE if there is none."""
    try:
        return compose(["bench", "search", *_search_words(search)])
    except NotRepeatable:
        return NOT_REPEATABLE


def _search_words(search: Search) -> list[str]:
    study = search.study
    if not study.methods:
        raise NotRepeatable
    first = next(iter(study.methods.values()))
    if first.setting not in SETTINGS:
        raise NotRepeatable
    words = ["--method", ",".join(_searched_names(study.methods)), "--setting", first.setting]
    words += ["--backbone", checked_word(public_name(first.backbone), PLAIN_NAME)]
    for corpus in _searched_corpora(first.corpus):
        words += ["--corpus", corpus]
    words += ["--trials", str(study.trials), "--seeds", seed_ranges(study.seeds)]
    words += ["--sampler", checked_word(study.sampler, SUITE_NAME)]
    words += ["--pruner", checked_word(study.pruner, SUITE_NAME)]
    if study.budget:
        words += ["--budget", checked_word(study.budget, _BUDGET)]
    words += ["--precision", checked_precision(study.precision)]
    words += ["--suite", ",".join(checked_word(suite, SUITE_NAME) for suite in study.suites)]
    words += ["--name", checked_word(study.name, PLAIN_NAME)]
    for key in study.fixed:
        if key != "budget":
            words += [SET, f"{checked_word(key, KEY)}={_fixed_value(key, study.methods)}"]
    for key, text in _own_spaces(study.methods.values()).items():
        words += ["--space", f"{checked_word(key, KEY)}={text}"]
    return words


def _searched_names(methods: Mapping[str, Searched]) -> list[str]:
    names = []
    for method, searched in methods.items():
        name = f"{method}+{searched.variant}" if searched.variant else method
        names.append(checked_word(name, METHOD_NAME))
    return names


def _searched_corpora(named: str) -> list[str]:
    """Return the values of --corpus.

    ``named``: name@sha256, or "names = value + value" if there were several texts, or if columns
    were chosen.
    """
    _, equals, arguments = named.partition(" = ")
    if equals:
        return [corpus_part_word(argument) for argument in arguments.split(" + ")]
    name, _, sha256 = named.rpartition("@")
    return [corpus_word(name, sha256)] if name else []


def _fixed_value(key: str, methods: Mapping[str, Searched]) -> str:
    for searched in methods.values():
        if key in searched.recipe:
            value = searched.recipe[key]
            return value_word(without_folder(value) if _is_place(value) else value)
    raise NotRepeatable


def _is_place(value: object) -> bool:
    return isinstance(value, str) and RUN.search(value) is not None


def _own_spaces(methods: Iterable[Searched]) -> dict[str, str]:
    """Return the spaces that --space gave in the place of recipe files."""
    spaces: dict[str, str] = {}
    for searched in methods:
        for key, axis in searched.space.items():
            if axis.get("source") != "--space":
                continue
            if axis.get("values"):
                spaces[key] = ",".join(value_word(value) for value in axis["values"])
            else:
                scale = "log:" if axis.get("scale") == "log" else ""
                spaces[key] = (
                    f"{scale}{value_word(axis.get('low'))}..{value_word(axis.get('high'))}"
                )
    return spaces
