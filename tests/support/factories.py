"""The maker of runs: records of synthetic numbers, and their folders.

``record`` makes a record, ``with_fingerprint`` names it by its contents, ``write_run`` writes it
with its predictions. The other makers choose what is scored, and call these: made_runs.py (every
suite), predicted_runs.py (STS of chosen noise), scored_run.py (generated pairs, scored for real).
Numbers come from a named generator, so that a test can be read without data.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.records import (
    BackboneUsed,
    Checkout,
    Code,
    CorpusUsed,
    Cost,
    Provenance,
    RecipeValue,
    RunRecord,
    RunsFolder,
    Score,
    Training,
)
from bench.records.fingerprint import record_fingerprint

DETERMINES = {"precision": "fp32", "dev": None, "places": {"teacher": None}}
"""Choices of a made run that are part of its fingerprint and stand in no other field."""

STS = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STS-B": 1379,
    "SICK-R": 4927,
}
SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
}


PROTOCOL = "senteval-all/1"
RAW_PROTOCOL = "senteval-all-raw/1"


def sts_score(task: str, value: float, n: int, protocol: str = PROTOCOL, **detail: Any) -> Score:
    about = {"suite": "sts", "protocol": protocol, "metric": "spearman"}
    return Score(**about, task=task, value=value, n=n, detail=detail)


def sts_average(scores: Sequence[Score]) -> Score:
    """Return the mean of the seven printed values, as papers take it."""
    mean = round(sum(round(one.value, 2) for one in scores) / len(scores), 2)
    n = sum(one.n for one in scores)
    return sts_score("Avg.", mean, n, scores[0].protocol, tasks=list(STS))


def sts_scores(
    base: float = 70.0,
    *,
    protocol: str = PROTOCOL,
    noise: int = 0,
    tasks: tuple[str, ...] = tuple(STS),
) -> tuple[Score, ...]:
    """Return STS scores around ``base`` and, if all seven are there, their average."""
    drawn = random.Random(f"{base} {noise}")
    scores = []
    for task in tasks:
        value = round(base + drawn.uniform(-4, 4) + 0.1 * noise, 6)
        subsets = {
            name: {
                "spearman": round(value + drawn.uniform(-3, 3), 4),
                "pearson": value - 1,
                "n": 750,
            }
            for name in SUBSETS.get(task, ())
        }
        pearson = {"all": value - 2, "mean": value - 3, "wmean": value - 2.5}
        detail = {"mean": value - 1, "wmean": value - 0.5, "subsets": subsets, "pearson": pearson}
        scores.append(sts_score(task, value, STS[task], protocol, **detail))
    return (*scores, sts_average(scores)) if set(STS) <= set(tasks) else tuple(scores)


COST = Cost(
    trainable_parameters=5_300_000,
    total_parameters=5_300_000,
    train_seconds=812.5,
    train_sentences_per_second=1230.8,
    encode_sentences_per_second=2100.0,
    eval_seconds=14.2,
    peak_memory_bytes=1_400_000_000,
    checkpoint_bytes=10_600_000,
    device="cpu",
)
TRAINING = Training(
    steps=1000, best_step=875, dev_task="STS-B dev", dev_score=72.0, sentences=64_000
)


def record(
    method: str = "simcse",
    seed: int | None = 42,
    *,
    base: float = 70.0,
    variant: str = "",
    setting: str = "unsupervised",
    backbone: str = "builtin",
    scores: tuple[Score, ...] | None = None,
    recipe: dict[str, Any] | None = None,
    **changes: Any,
) -> RunRecord:
    """Return the record of a finished run; ``changes`` are fields of RunRecord."""
    name = "".join(
        c if (c.isascii() and c.isalnum()) or c in "-." else "_"
        for c in f"{method}{'+' + variant if variant else ''}-{backbone}"
    )
    values = {"batch_size": 64, "learning_rate": 3e-5, "temperature": 0.05, "epochs": 1} | (
        recipe or {}
    )
    trained = setting != "none"
    training = None
    settings = {}
    if trained:
        training = replace(TRAINING, dev_score=base + 2)
        settings = {
            key: RecipeValue(value=value, source="SimCSE README") for key, value in values.items()
        }
    identity = hash_of(method, variant, setting, backbone, seed, sorted(values.items()))
    made = RunRecord(
        run_id=f"{name}-s{seed}-{identity:08x}",
        fingerprint="f" * 64,
        status="finished",
        method=method,
        variant=variant,
        setting=setting,
        backbone=backbone,
        seed=seed,
        recipe=settings,
        scores=sts_scores(base, noise=seed or 0) if scores is None else scores,
        cost=COST,
        training=training,
        provenance=Provenance(
            created=f"2026-01-{1 + (seed or 0) % 28:02d}T12:00:00+00:00",
            bench_version="0.1.0",
            command=f"bench run --method {method} --backbone {backbone} --seeds {seed}",
            git=Checkout(commit="0" * 40, dirty=False),
            plugin=Code(package="sentence-bench", version="0.1.0", sha256="a" * 64),
            packages={"torch": "2.13.0"},
            platform={"python": "3.12", "cpu": "a CPU"},
            data={task: "d" * 64 for task in STS},
            corpus=CorpusUsed(name="wiki.txt", sha256="c" * 64) if trained else CorpusUsed(),
            backbone=BackboneUsed(name=backbone, revision="e" * 40),
        ),
    )
    return replace(made, **changes)


def with_fingerprint(run: RunRecord) -> RunRecord:
    """Return the run under the fingerprint of its fields, and under the id that ends in it."""
    fingerprint = record_fingerprint(run)
    assert fingerprint is not None
    stem = run.run_id.rsplit("-s", 1)[0].lstrip("_")[:100]
    seed = "any" if run.seed is None else f"s{run.seed}"
    return replace(run, fingerprint=fingerprint, run_id=f"{stem}-{seed}-{fingerprint[:8]}")


def write_run(
    store: RunsFolder,
    run: RunRecord,
    predictions: Iterable[tuple[Score, Mapping[str, np.ndarray]]] = (),
) -> None:
    """Write the record, and before it the arrays of each score that has predictions."""
    for score, arrays in predictions:
        store.write_predictions(run.run_id, score.task, score.protocol, arrays, score.suite)
    store.write(run)


def hash_of(*parts: object) -> int:
    return random.Random(repr(parts)).getrandbits(32)


def family(seeds: range = range(42, 45)) -> list[RunRecord]:
    """Return the records of five rows: two untrained, three trained with several seeds."""
    made = [
        record("cls", None, base=31, setting="none"),
        record("first-last-avg", None, base=56, setting="none"),
    ]
    for seed in seeds:
        made += [
            record("simcse", seed, base=70),
            record("promcse", seed, base=72.5),
            record("dcpcse", seed, base=71.8, variant="mlm"),
        ]
    return made
