"""Rated sentence pairs in thirteen languages, and across languages.

Suite sts-multi: the seven tracks of SemEval-2017 Task 1 under protocol ``sts17-tracks/1``, STS-B
and its ten translations under ``stsb-languages/1``. A task's value is Spearman's correlation of the
cosines with the ratings over all its pairs, x 100. A task is a language or a pair of languages.
"""

from __future__ import annotations

from bench.data.sets import DataFolder, data_set
from bench.data.sets.sts_multi import MULTI_TASKS, TRACKS, TRANSLATIONS, read_sts_multi
from bench.score.metrics.metric import SPEARMAN
from bench.score.suites.sts import LoadedPairs, score_pairs
from bench.score.suites.task import Part, Suite, Task

TRACKS_PROTOCOL = "sts17-tracks/1"
LANGUAGES_PROTOCOL = "stsb-languages/1"


def _read(task: Task, data: DataFolder) -> LoadedPairs:
    return LoadedPairs(task, read_sts_multi(data, task.name))


def language_dev_task(data: DataFolder, language: str) -> LoadedPairs:
    """Read STS-B dev in a language, 1,500 pairs to select checkpoints by.

    Raises DataMissing, DataDamaged.
    """
    return LoadedPairs(_task(language), read_sts_multi(data, language, split="dev"))


def _task(name: str) -> Task:
    known = data_set(MULTI_TASKS[name])
    return Task(
        suite="sts-multi",
        name=name,
        protocol=TRACKS_PROTOCOL if name in TRACKS else LANGUAGES_PROTOCOL,
        metric=SPEARMAN,
        n=known.items["test"],
        data=(known.name,),
        subsets={name: known.items["test"]},
        read=_read,
        rescore=score_pairs,
        needs=("prediction", "gold", "subset"),
    )


SUITE = Suite(
    name="sts-multi",
    title="Semantic textual similarity in thirteen languages",
    description=(
        "Do cosines rank pairs as people do, in other languages and across two? STS 2017's seven "
        "tracks, and STS-B in ten translations."
    ),
    tasks=tuple(_task(name) for name in MULTI_TASKS),
    average=None,
    parts={
        TRACKS_PROTOCOL: Part(tuple(TRACKS), "the seven tracks of STS 2017, 4a and 4b among them"),
        LANGUAGES_PROTOCOL: Part(
            tuple(name for name in TRANSLATIONS if name != "en"),
            "the ten translations of STS-B, without the original in English",
        ),
    },
    docs="suites.md#sts-multi",
)
