"""Notes on languages: is a backbone scored on languages that it does not know?"""

from __future__ import annotations

from collections.abc import Sequence

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.data.sets import data_set
from bench.score.suites import KnownTask, suite

ENGLISH = ("en", "eng")
"""English in ISO 639-1, which data sets have, and in ISO 639-3, which mteb has."""


def language_notes(backbone: Reference, scored: Sequence[KnownTask]) -> list[str]:
    """Return a line if the built-in backbone, which knows English alone, is scored on others.

    Nothing is known of the languages of other backbones, nor of a user's own texts.
    """
    if backbone.name != "builtin":
        return []
    languages: dict[str, None] = {}
    names = []
    for known in scored:
        others = [code for code in languages_of(known) if code not in ENGLISH]
        if others:
            names.append(known.name)
            languages.update(dict.fromkeys(others))
    if not names:
        return []
    return [
        f"the built-in backbone knows English alone; {plural(len(names), 'task')} of this run "
        f"{'is' if len(names) == 1 else 'are'} in other languages ({list_names(languages, 12)})"
    ]


def languages_of(known: KnownTask) -> tuple[str, ...]:
    """Return the codes of a task's languages; () if they are not known."""
    if known.suite == "mteb":
        return tuple(getattr(known.task, "languages", ()))
    try:
        tasks = [task for task in suite(known.suite).tasks if task.name == known.name]
    except BenchError:
        return ()
    if not tasks or not tasks[0].data:
        return ()
    return data_set(tasks[0].data[0]).languages
