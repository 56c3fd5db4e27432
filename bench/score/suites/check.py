"""Rated pairs of image captions in the package: enough to see a method work, not a result.

Suite check: the validation pairs of Crisscrossed Captions (Parekh et al. 2021; sources and licences
in bench/builtin/README.md), if their captions were available, in a dev and a test part that share
no caption and no image. Protocol ``check/2``: Spearman x 100 of cosine against rating over all test
pairs together; the way a pair was sampled is its sub-dataset.
"""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder
from bench.data.sets.cxc import SAME_IMAGE, RatedCaptions, images
from bench.score.metrics.metric import SPEARMAN
from bench.score.suites.sts import LoadedPairs, score_pairs
from bench.score.suites.task import Suite, Task

# The protocol of generated pairs in earlier records. Scores follow from predictions as in check/2.
GENERATED = "check/1"
CHECK_DATA = Path(__file__).parents[2] / "builtin" / "data"


def _read_captions(task: Task, *_: object) -> LoadedPairs:
    """Read the pairs of the task's part, dev or test. Raises DataDamaged."""
    part = "dev" if task.name == CHECK_DEV else "test"
    path, hint = CHECK_DATA / f"check-{part}.tsv.xz", "install the package again"
    try:
        content = lzma.decompress(path.read_bytes())
        rows = [line.split("\t") for line in content.decode().splitlines()[1:]]
        first, second, gold, kind, *ids = (list(column) for column in zip(*rows, strict=True))
        caption1, caption2 = (np.array(column, dtype=np.int64) for column in ids)
        ratings = np.array(gold, dtype=np.float64)
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise DataDamaged(f"{task.name}: {path}: {error}", hint) from None
    if len(rows) != task.n:
        raise DataDamaged(
            f"{task.name}: expected {task.n} pairs, found {len(rows)}, in {path}", hint
        )
    return LoadedPairs(
        task,
        RatedCaptions(
            name=task.name,
            sentences1=first,
            sentences2=second,
            gold=ratings,
            subset=kind,
            split=part,
            sha256=hashlib.sha256(content).hexdigest(),
            caption1=caption1,
            caption2=caption2,
            image=images(
                ids[0], [(a, b) for a, b, of in zip(*ids, kind, strict=True) if of == SAME_IMAGE]
            ),
        ),
    )


CHECK_TASK = Task(
    suite="check",
    name="captions",
    protocol="check/2",
    metric=SPEARMAN,
    n=4742,
    read=_read_captions,
    rescore=score_pairs,
)  # without ``data``: it reads no set of the manifest
CHECK_DEV = "captions dev"


def check_dev_task(data: DataFolder | None = None) -> LoadedPairs:
    """Read the 1,125 dev pairs, to choose a checkpoint without STS-B. Raises DataDamaged."""
    return _read_captions(replace(CHECK_TASK, name=CHECK_DEV, n=1125))


SUITE = Suite(
    name="check",
    title="Built-in check",
    description=(
        "Do cosines rank pairs of captions as people do? A small sample inside the package: to "
        "see a method work, not a result."
    ),
    tasks=(CHECK_TASK,),
    average=None,
    docs="suites.md#check",
    earlier=(GENERATED,),
)
