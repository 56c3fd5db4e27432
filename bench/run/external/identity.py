"""Tell whether an object is the encoder that an earlier run scored.

The id of a run holds an object's answers to a few fixed sentences (:mod:`bench.method.answers`).
An encoder that was changed may still answer these alike, and other sentences not: one that now
reads long sentences to their end, for example. So before the scores of a run are used again,
sentences of its tasks are encoded anew, and an object that answers differently gets its own run.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace

from bench.method.answers import answers_alike
from bench.method.config import RunConfig
from bench.method.prompts import prompted
from bench.records import RunsFolder
from bench.records.names import VECTORS
from bench.run.external.objects import ANSWERS, ObjectModel
from bench.run.planned import PlannedRun, with_fingerprint
from bench.run.vectors import sentences_by_way
from bench.score.encoding import VectorStore

# the sentences of a run that are encoded again: the longest, the shortest, and some of all others
LONGEST = 256
SHORTEST = 64
SPREAD = 704


def tell_apart(run: PlannedRun, store: RunsFolder, config: RunConfig) -> PlannedRun:
    """Return the run, with another id if this id belongs to an object that answers otherwise.

    The next ids are tried in turn. Runs of anything but an object that is known only by its answers
    are returned unchanged. Raises RunLocked if another process works on the run.
    """
    cls = run.plugin.cls
    if not issubclass(cls, ObjectModel) or cls.identify().by != ANSWERS or config.fresh:
        return run
    first = run.backbone.revision
    number = 1
    while store.get(run.run_id, run.fingerprint) is not None:
        with store.lock(run.run_id, config.wait_seconds):
            alike = _answers_as_stored(cls, run, store)
        if alike:
            return run
        number += 1
        revision = hashlib.sha256(f"{first} {number}".encode()).hexdigest()
        run = with_fingerprint(replace(run, backbone=replace(run.backbone, revision=revision)))
    return run


def _answers_as_stored(cls: type[ObjectModel], run: PlannedRun, store: RunsFolder) -> bool:
    """Tell whether the object gives the vectors that the run has stored for its sentences."""
    record = store.get(run.run_id, run.fingerprint)
    compared = False
    ways = sentences_by_way(run.recipe, run.task_data, tells_sides=cls.tells_sides)
    for way, texts in ways.items():
        key = run.fingerprint[:16] + way.suffix
        vectors = VectorStore(store.folder(run.run_id) / VECTORS, key)
        missing = set(vectors.missing(texts))
        sample = choose_sample([text for text in dict.fromkeys(texts) if text not in missing])
        if not sample:
            continue
        prompt = run.recipe.get("prompt") if way.prompt is None else way.prompt
        answers = cls.ask(prompted(prompt, sample), prompt is not None, side=way.side)
        if not answers_alike(vectors(sample), answers):
            return False
        compared = True
    if not compared and record is not None:
        scored = {score.task for score in record.scores}
        if any(known.name in scored for known in run.task_data):
            warnings.warn(
                f"{run.run_id}: its vectors were deleted, so nothing shows whether "
                f"{run.backbone.name} is still the encoder that was scored; "
                "fresh=True scores it again",
                stacklevel=5,
            )
    return True


def choose_sample(texts: list[str]) -> list[str]:
    """Choose the longest and the shortest texts, and others evenly; all of them if they are few.

    The choice is always the same.
    """
    ordered = sorted(texts, key=lambda text: (len(text), text))
    if len(ordered) <= LONGEST + SHORTEST + SPREAD:
        return ordered
    middle = ordered[SHORTEST:-LONGEST]
    # by hash: neighbours in length are often neighbours in meaning
    middle.sort(key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return [*ordered[:SHORTEST], *middle[:SPREAD], *ordered[-LONGEST:]]
