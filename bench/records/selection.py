"""Counts selection pairs that are also test pairs, from hashes alone, without the data."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bench.records.record import RunRecord


def dev_test_pairs(name: str, sha256: str | None, tasks: Collection[str]) -> tuple[int, int] | None:
    """Return how many pairs of a selection set are test pairs of these sts sets, and all pairs.

    None if that is not known. A pair is identified by its letters and digits, whichever sentence
    comes first.
    """
    content = known_sets()
    shas = {sha: reason.partition(",")[0] for reason, sha in content["dev"].items()}
    counts = content["dev_pairs"].get(name)
    if shas.get(sha256) != name or counts is None:
        return None
    shared = sum(n for sets, n in counts.items() if set(sets.split()) & set(tasks))
    return shared, sum(counts.values())


def dev_words(record: RunRecord) -> str:
    """Say how many of the pairs that a checkpoint was selected on are test pairs.

    "" without a selection, or without scores of the suite sts.
    """
    done = record.training
    if done is None or done.dev_score is None or all(s.suite != "sts" for s in record.scores):
        return ""
    name = done.dev_task or "the selection set"
    if done.dev_pairs is None or done.dev_test_pairs is None:
        return f"how many pairs of {name} are test pairs of the suite sts is not recorded"
    return (
        f"{done.dev_test_pairs:,} of the {done.dev_pairs:,} pairs of {name} are test pairs "
        "of the suite sts"
    )


@functools.cache
def known_sets() -> dict[str, Any]:
    """Read ``given.json``, which ``python tools/make_given.py DATA`` writes.

    "dev_pairs": for each selection set, names of sts sets separated by blanks -> pairs that exactly
    those sets test.
    """
    return dict(json.loads(Path(__file__).with_name("given.json").read_bytes()))
