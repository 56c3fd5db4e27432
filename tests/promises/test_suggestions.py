"""Each suggestion that an error prints after ``try:`` is run, and works.

The cases are mistakes; what their lines suggest is tried in the folder in which they were made. A
suggestion of the source that no case prints is listed with the reason, or the table is not whole.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from in_a_row import End, in_a_row
from suggest_cases import CASES, NOT_HERE, NOT_TRIED
from suggested import Suggested, Template, suggested, templates, without

SOURCE = Path(__file__).parents[2]
READS = {"methods", "suites", "runs", "papers", "compare", "doctor", "data", "verify"}
"""Verbs that write nothing."""
PLANS = {"run", "search", "evaluate"}
"""Verbs that have --dry-run."""


def hint(end: End) -> str:
    """Return what a command says to try, or nothing."""
    tries = [line for line in end.err.splitlines() if line.startswith("try: ")]
    return tries[0].removeprefix("try: ") if tries else ""


@pytest.mark.promise(29)
def test_each_case_is_a_mistake_that_suggests_something(mistakes: list[End]) -> None:
    own = mistakes[: len(CASES)]
    assert [(end.words, end.err) for end in own if end.code != 2 or not hint(end)] == []


@pytest.mark.promise(29)
def test_each_suggestion_of_the_source_has_a_case(mistakes: list[End]) -> None:
    printed = "\n".join({" ".join(hint(end).split()) for end in mistakes})
    every = templates(SOURCE / "bench") | templates(SOURCE / "methods")
    assert len(every) > 200
    missing = [one for one in every if not one.is_in(printed)]
    listed = {one: is_listed(one) for one in missing}
    assert [one for one, place in listed.items() if place is None] == []
    assert [one for one in NOT_HERE if one not in listed.values()] == [], "these have a case now"


@pytest.mark.promise(29)
def test_commands_and_options_that_errors_suggest_work(
    shared_folder: Path, mistakes: list[End], copied: Any
) -> None:
    """Whole ones are run, those that train or write as a dry run; of the others, and of those that
    write, the help must know each option."""
    place = copied(shared_folder / "mistakes" / "place")
    tried: dict[tuple[str, ...], Suggested] = {}
    for end in mistakes:
        for one in suggested(known_words(end), hint(end)):
            tried[one.words] = one
    assert len(tried) > 150
    helped = {one: verb_of(words) for words, one in tried.items()}
    asked = sorted(set(helped.values()))
    helps = dict(zip(asked, in_a_row([[*verb, "--help"] for verb in asked], place), strict=True))
    assert [verb for verb, end in helps.items() if end.code != 0] == []
    unknown = [
        (one.words, word)
        for one, verb in helped.items()
        for word in one.words
        if word.startswith("--") and not knows(helps[verb], word)
    ]
    assert unknown == []
    runs = [runnable(one.words) for one in helped if one.whole]
    runs = [
        words for words in runs if words and not any(one in " ".join(words) for one in NOT_TRIED)
    ]
    assert len(runs) > 80
    done = in_a_row(runs, place)
    assert [(end.words, end.err[-300:]) for end in done if end.code not in (0, 1)] == []


def is_listed(one: Template) -> tuple[str, str] | None:
    """Return the entry of a suggestion that no case prints."""
    entries = [(file, begin) for file, begin in NOT_HERE if one.file == file]
    return next((entry for entry in entries if one.text.startswith(entry[1])), None)


def verb_of(words: Any) -> tuple[str, ...]:
    """Return the words of a command before its arguments."""
    if words[0].startswith("-"):
        return ()
    return tuple(words[: 2 if words[0] == "data" and len(words) > 1 else 1])


def known_words(end: End) -> list[str]:
    """Return a command without the option that it does not have."""
    unknown = re.search(r"unknown option '(--[a-z-]+)'", end.err)
    return without(end.words, unknown[1]) if unknown else list(end.words)


def knows(shown: End, option: str) -> bool:
    """Say if a help lists an option."""
    listed = re.search(rf"^\s+(-\w, )?{option.partition('=')[0]}\b", shown.out, re.MULTILINE)
    return option == "--help" or listed is not None


def runnable(words: tuple[str, ...]) -> list[str]:
    """Return a command that changes nothing: with --dry-run if it plans; empty if it writes, or
    needs a network or a version's commit."""
    if "--help" in words or words[0] in READS:
        elsewhere = words[:2] == ("data", "fetch") or "--fetch" in words
        return [] if elsewhere or "leaderboards/v4" in words else list(words)
    if words[0] in PLANS:
        planned = [word for word in words if word != "--dry-run"]
        return planned if "commands" in words else [*planned, "--dry-run"]
    return []
