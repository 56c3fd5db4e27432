"""Write ``given.json``: for every task, hashes of the arrays that the data alone determines.

    python tools/make_given.py DATA

Each task is scored once with random vectors, so that the code that makes a run's arrays makes
these, too. No text and no gold value is written, only hashes.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from bench.base.errors import DataMissing
from bench.base.files import write_whole
from bench.base.hashes import values_sha256
from bench.board.verify.scores import SCHEMA
from bench.data.sets import DataFolder
from bench.records.names import data_key
from bench.records.selection import known_sets
from bench.score.suites import GIVEN, LoadedTask, Task, suite, suite_names
from bench.score.suites.check import CHECK_DEV, check_dev_task
from bench.score.suites.sts import CLEAN_DEV, clean_dev_task, dev_task, find_test_sets

STSB_DEV = "STS-B dev"  # as a training names it
TEXTS = ("tokenised", "raw")
EARLIER = ("check/CHECK", "CHECK dev")
"""Of data that this package no longer has: these hashes are taken over, so that older records can
still be verified.
"""
DIMENSIONS = 4


def given_hashes(loaded: LoadedTask) -> dict[str, str]:
    """Return array -> hash of its values, for the arrays that no model changes."""
    made: dict[str, np.ndarray] = {}
    draw = np.random.default_rng(0)

    def vectors(sentences: Sequence[str]) -> np.ndarray:
        for one in sentences:
            if one not in made:
                made[one] = draw.normal(size=DIMENSIONS).astype(np.float32)
        return np.stack([made[one] for one in sentences])

    with mock.patch.multiple(
        "bench.score.suites.clustering", SEEDS=(0,), STARTS=1, ITERATIONS=1
    ):  # the clusters are thrown away
        arrays = loaded.score(vectors).predictions
    return {name: values_sha256({name: arrays[name]}) for name in GIVEN if name in arrays}


def measure(data: DataFolder) -> dict[str, object]:
    """Return the content of ``given.json``. Raises DataMissing, DataDamaged."""
    given: dict[str, dict[str, str]] = {}
    shas: dict[str, str] = {}
    tasks: list[Task] = []
    for name in suite_names():
        if name != "mteb":
            tasks += (*suite(name).tasks, *suite(name).on_request)
    for task in tasks:
        key = f"{task.suite}/{data_key(task.name, task.protocol)}"
        try:
            loaded = task.load(data)
        except DataMissing as error:
            print(f"{key}: {error.message}", file=sys.stderr)
            continue
        shas[key] = loaded.sha256
        found = given_hashes(loaded)
        if found != given.setdefault(f"{task.suite}/{task.name}", found):
            given[key] = found  # raw texts can be in another order
        print(f"{key}: {', '.join(found)}", file=sys.stderr)
    of_dev = measure_dev(data)
    taken_over: list[tuple[Mapping[str, Any], dict[str, Any]]] = [
        (known_sets()["given"], given),
        (known_sets()["data"], shas),
        (known_sets()["dev"], of_dev["dev"]),
    ]
    for before, now in taken_over:
        now.update((name, before[name]) for name in EARLIER if name in before)
    return {"schema": SCHEMA, "given": given, "data": shas, **of_dev}


def measure_dev(data: DataFolder) -> dict[str, dict[str, Any]]:
    """Return the known facts about the sets that select checkpoints."""
    dev = {CHECK_DEV: check_dev_task().sha256} | {
        f"{STSB_DEV}, {text}": dev_task(data, text).sha256 for text in TEXTS
    }
    dev |= {f"{CLEAN_DEV}, {text}": clean_dev_task(data, text).sha256 for text in TEXTS}
    counts = Counter(" ".join(sets) for sets in find_test_sets(dev_task(data, TEXTS[0]).data, data))
    return {
        "dev": dev,
        "dev_pairs": {
            STSB_DEV: dict(sorted(counts.items())),
            CLEAN_DEV: {"": clean_dev_task(data, TEXTS[0]).n},
        },
    }


def main(folder: str) -> None:
    content = measure(DataFolder(folder, offline=True))
    write_whole(
        Path(__file__).parents[1] / "bench" / "records" / "given.json",
        json.dumps(content, indent=1).encode() + b"\n",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
