"""The sets that select a checkpoint: the values of the recipe key ``select_on``."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping, Sequence
from functools import partial

from bench.base.errors import DataMissing, UnknownName
from bench.data.sets import DataFolder, NotFetchedYet, data_set
from bench.data.sets.sts import STS_TASKS
from bench.data.sets.sts_multi import TRANSLATIONS
from bench.method.recipe import Value
from bench.score.suites import KnownTask, survey_files

STSB_DEV = "STS-B dev"
CLEAN_DEV = "sts-dev-clean"
"""Pairs of STS-B dev and SICK's trial split that no test set has."""
BUILT_IN_DEV = Value(
    "captions dev", "with the package's backbone or corpus, or where STS-B is not at hand"
)
"""The dev set of such a training, in place of STS-B dev. What is scored has no say in it."""
DEV_SETS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "captions dev": ("bench.score.suites.check", "check_dev_task", ()),
    STSB_DEV: ("bench.score.suites.sts", "dev_task", ("STS-B",)),
    CLEAN_DEV: ("bench.score.suites.sts", "clean_dev_task", STS_TASKS),
}
"""Name in recipes -> module and function that read it from a data folder, and its sets in the
manifest.
"""
LANGUAGE_DEV_SETS: Mapping[str, str] = {
    f"{name} dev": language for language, name in TRANSLATIONS.items() if language != "en"
}
"""STS-B dev in other languages, "STS-B-de dev" -> "de"."""


def open_dev_task(select_on: str, data: DataFolder) -> KnownTask | None:
    """Return the set that selects the checkpoint, or None. Raises DataMissing, DataDamaged."""
    if select_on == "last":
        return None
    if select_on in LANGUAGE_DEV_SETS:
        language = LANGUAGE_DEV_SETS[select_on]
        sets: Sequence[str] = (TRANSLATIONS[language],)
        suite = importlib.import_module("bench.score.suites.sts_multi")
        read = partial(suite.language_dev_task, data, language)
    elif select_on in DEV_SETS:
        module, function, sets = DEV_SETS[select_on]
        read = partial(getattr(importlib.import_module(module), function), data)
    else:
        names = [*DEV_SETS, *LANGUAGE_DEV_SETS, "last"]
        raise UnknownName("selection set", select_on, names, "of recipe key select_on")
    try:
        return survey_files(select_on, sets, data, "", read)
    except NotFetchedYet:
        for name in sets:  # whoever announces the downloads hears of all
            with contextlib.suppress(NotFetchedYet):
                data.open(data_set(name))
        raise
    except DataMissing as error:
        raise DataMissing(
            f"{error.message}; the checkpoint is selected on {select_on}",
            f"{error.hint}; or --set 'select_on=captions dev', which is in the package, or --set "
            "select_on=last",
            error.name,
        ) from None
