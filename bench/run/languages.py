"""Notes on languages: is a backbone scored on languages that it does not know?"""

from __future__ import annotations

from bench.backbones import Reference
from bench.base.text import list_names, plural
from bench.data.sets import data_set
from bench.run.scored_tasks import ScoredTasks

ENGLISH = ("en", "eng")
"""English in ISO 639-1, which data sets have, and in ISO 639-3, which mteb has."""


def language_notes(backbone: Reference, scored: ScoredTasks) -> list[str]:
    """Return a line if the built-in backbone, which knows only English, is scored on others.

    Nothing is known of the languages of other backbones, nor of a user's own texts.
    """
    if backbone.name != "builtin":
        return []
    languages: dict[str, None] = {}
    count = 0
    for codes in languages_by_task(scored).values():
        others = [code for code in codes if code not in ENGLISH]
        if others:
            count += 1
            languages.update(dict.fromkeys(others))
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [
        f"the built-in backbone knows only English; {plural(count, 'task')} of this run {verb} "
        f"in other languages ({list_names(languages, 12)})"
    ]


def languages_by_task(scored: ScoredTasks) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return (suite, task) -> the codes of its languages, for tasks with known languages.

    The languages of an mteb task are known once its data is here.
    """
    found = {}
    for task in scored.tasks:
        if task.data:
            found[task.suite, task.name] = data_set(task.data[0]).languages
    for known in scored.data:
        if known.suite == "mteb":
            found[known.suite, known.name] = getattr(known.task, "languages", ())
    return found
