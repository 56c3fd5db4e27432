"""The sets that select a checkpoint: the values of the recipe key ``select_on``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import partial

from bench.base.errors import DataMissing, UnknownName
from bench.data.sets import DataFolder
from bench.data.sets.sts import STS_TASKS
from bench.method.recipe import Value
from bench.score.suites import KnownTask, survey_files

STSB_DEV = "STS-B dev"
BUILT_IN_DEV = Value(
    "captions dev", "with the package's backbone or corpus, or where STS-B is not at hand"
)
"""The dev set of such a training, in place of STS-B dev. What is scored has no say in it."""
DEV_SETS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "captions dev": ("bench.score.suites.check", "check_dev_task", ()),
    STSB_DEV: ("bench.score.suites.sts", "dev_task", ("STS-B",)),
    "sts-dev-clean": ("bench.score.suites.sts", "clean_dev_task", STS_TASKS),
}
"""Name in recipes -> module and function that read it from a data folder, and its sets in the
manifest.
"""


def open_dev_task(select_on: str, data: DataFolder) -> KnownTask | None:
    """The set that selects the checkpoint; None for "last". Raises DataMissing, DataDamaged."""
    if select_on == "last":
        return None
    if select_on not in DEV_SETS:
        raise UnknownName(
            "selection set", select_on, [*DEV_SETS, "last"], "of recipe key select_on"
        )
    module, function, sets = DEV_SETS[select_on]
    read_task = getattr(importlib.import_module(module), function)
    try:
        return survey_files(select_on, sets, data, "any", partial(read_task, data))
    except DataMissing as error:
        raise DataMissing(
            f"{error.message}; the checkpoint is selected on {select_on}",
            f"{error.hint}; or --set 'select_on=captions dev', which is in the package, or --set "
            "select_on=last",
            error.name,
        ) from None
