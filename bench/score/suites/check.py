"""The built-in suite: pairs of image captions that people rated, carried by the package. Enough to see a method work, not a result.

Crisscrossed Captions' validation pairs (Parekh et al. 2021; bench/builtin/README.md has sources and licences), as far as
their captions were at hand, in a dev and a test part that share no caption and no image. Protocol ``check/2``: Spearman x 100 of cosine
against rating over all test pairs together; how a pair was sampled is its sub-dataset.
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
from bench.score.suites import Suite, Task
from bench.score.suites.sts import LoadedPairs, score_predictions

PROTOCOL = "check/2"
GENERATED = "check/1"
"""The protocol of the pairs that this package made itself in earlier versions. Its scores follow from their predictions as these do."""
DATA = Path(__file__).parents[2] / "builtin" / "data"


def _read(task: Task, data: DataFolder | None = None, text: str | None = None) -> LoadedPairs:
    """The pairs of the part that the task is of; ``data`` and ``text`` are not asked. Raises DataDamaged."""
    part = "dev" if task.name == DEV else "test"
    path = DATA / f"check-{part}.tsv.xz"
    hint = "install the package again"
    try:
        content = lzma.decompress(path.read_bytes())
        rows = [line.split("\t") for line in content.decode().splitlines()[1:]]
        first, second, gold, kind, *ids = (list(column) for column in zip(*rows, strict=True))
        values, (caption1, caption2) = (
            np.array(gold, dtype=np.float64),
            (np.array(id_, dtype=np.int64) for id_ in ids),
        )
        rings = [(a, b) for a, b, of in zip(*ids, kind, strict=True) if of == SAME_IMAGE]
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise DataDamaged(f"{task.name}: {path}: {error}", hint) from None
    if len(rows) != task.n:
        raise DataDamaged(
            f"{task.name}: {len(rows)} pairs found, {task.n} expected, in {path}", hint
        )
    sha256, image = hashlib.sha256(content).hexdigest(), images(ids[0], rings)
    return LoadedPairs(
        task,
        RatedCaptions(
            task.name, first, second, values, kind, part, None, sha256, caption1, caption2, image
        ),
    )


TASK = Task(
    suite="check",
    name="captions",
    protocol=PROTOCOL,
    metric="spearman",
    n=4742,
    read=_read,
    rescore=score_predictions,
)  # it reads no set of the manifest: its data lies in the package
DEV = "captions dev"


def check_dev_task(data: DataFolder | None = None) -> LoadedPairs:
    """The 1,125 dev pairs, for choosing a checkpoint where there is no STS-B; they lie in the package. Raises DataDamaged."""
    return _read(replace(TASK, name=DEV, n=1125))


SUITE = Suite(
    name="check",
    title="Built-in check",
    description="Do cosines rank pairs of captions as people do? A small sample inside the package: to see a method work, not a result.",
    tasks=(TASK,),
    average=None,
    docs="suites.md#check",
    earlier=(GENERATED,),
)
