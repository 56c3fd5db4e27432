"""Predictions for made runs, and the scores that follow from them: all are a function of their
keys.

A maker per suite: (method, seed, noise, task, items) -> the arrays that the suite keeps of a task.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from factories import SUBSETS
from generated import generated

from bench.base.hashes import values_sha256
from bench.records import Score
from bench.score.suites import rescore, suite

Arrays = dict[str, np.ndarray]
FOLDS = {"MR": 10, "CR": 10, "SUBJ": 10, "MPQA": 10}


def draw(*key: object) -> np.random.Generator:
    """Return a generator that depends on the key alone."""
    return np.random.default_rng(zlib.crc32(repr(key).encode("utf-8", "surrogatepass")))


def similarity(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Make cosines that follow the gold values, with noise of the method and less of the seed."""
    gold = np.round(draw(task).uniform(0, 5, n), 1)
    stray = 1.4 * draw(method, task).normal(size=n) + 0.15 * draw(method, task, seed).normal(size=n)
    parts = np.array(SUBSETS.get(task, (task,)))
    return {
        "prediction": np.clip(0.2 + gold / 10 + noise * stray / 6, -1, 1),
        "gold": gold,
        "subset": parts[np.arange(n) * len(parts) // n],
    }


def captions(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    rows = np.arange(n)
    pairs = similarity(method, seed, noise, task, n)
    return pairs | {"image": rows // 4, "caption1": rows // 2, "caption2": n + rows}


def classes(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Make predicted classes; the share of wrong ones grows with the noise."""
    count, folds = (6 if task.startswith("TREC") else 2), FOLDS.get(task, 1)
    gold = draw(task).integers(0, count, n)
    wrong = (
        draw(method, task, "item").uniform(size=n) + 0.1 * draw(method, task, seed).normal(size=n)
        < 0.4 * noise
    )
    return {
        "prediction": np.where(wrong, (gold + 1) % count, gold),
        "gold": gold,
        "subset": np.full(n, task),
        "fold": np.arange(n) % folds,
    }


def repeated(
    method: str, seed: int | None, noise: float, task: str, n: int, times: int = 10
) -> Arrays:
    """Make classes several times: draws of few-shot, or starts of k-means."""
    each = [
        classes(method, (seed, i), noise + 0.1 * (i % 3), task, n)["prediction"]
        for i in range(times)
    ]  # type: ignore[arg-type]
    first = classes(method, seed, noise, task, n)
    return {
        "prediction": np.stack(each, axis=1),
        "gold": first["gold"],
        "subset": first["subset"],
        "drawn": np.zeros((times, 32), int),
    }


def clusters(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    made = repeated(
        method, seed, noise, task, n, times=3
    )  # ten in the protocol; agreement of clusters takes its time
    del made["drawn"]
    return made | {
        "prediction": made["prediction"].astype(np.int16),
        "inertia": np.linspace(90, 100, 3),
    }


def lie(method: str, seed: int | None, noise: float, task: str, n: int) -> Arrays:
    """Make values of geometry: squared distances and cosines of pairs, or potentials of
    sentences.
    """
    pairs = similarity(method, seed, noise, "STS-B", n)
    cosine = pairs.pop("prediction")
    if task == "uniformity":
        return {
            "prediction": np.exp(-2 * (1.2 + noise * cosine)) * n,
            "subset": pairs["subset"],
            "mean_cosine": cosine / 4,
            "singular_values": np.linspace(9, 1, 16) ** (1 + noise),
        }
    fewer = {
        f"without_{k}_cosine": cosine + 0.002 * k * draw(k).normal(size=n)
        for k in (4, 8, 16, 32, 64)
    }
    return pairs | {"prediction": 2 - 2 * cosine, "cosine": cosine} | fewer


MAKERS: dict[str, Callable[[str, int | None, float, str, int], Arrays]] = {
    "sts": similarity,
    "sts-multi": similarity,
    "cxc": captions,
    "transfer": classes,
    "fewshot": repeated,
    "clustering": clusters,
    "geometry": lie,
}


def scored(
    name: str, method: str, seed: int | None, noise: float, n: int
) -> list[tuple[Score, Arrays]]:
    """Return each task's score in a suite ("sts", "sts:PROTOCOL"), and the arrays that determine
    it."""
    if name == "check":
        return [_check(method, seed)]
    found: list[tuple[Score, Arrays]] = []
    for task in suite(name).tasks:
        arrays = MAKERS[task.suite](method, seed, noise, task.name, n)
        again = rescore((task.suite, task.name, task.protocol), arrays)
        assert again is not None
        reduced = task.reduced(arrays)
        score = Score(
            **{
                "suite": task.suite,
                "task": task.name,
                "protocol": task.protocol,
                "metric": task.metric.name,
            },
            **{"value": again.value, "n": again.n, "std": again.std},
            detail=dict(again.detail),
            predictions_sha256=values_sha256(arrays),
            reduced_sha256=None if reduced is None else values_sha256(reduced),
        )
        found.append((score, arrays))
    return found


def _check(method: str, seed: int | None) -> tuple[Score, Arrays]:
    """Score the generated pairs of an earlier bench; their gold values are known to this one."""
    result = generated().score(
        lambda sentences: np.stack(
            [draw(method, seed, one).normal(size=8).astype(np.float32) for one in sentences]
        )
    )
    return Score(
        **{name: getattr(result, name) for name in Score.__struct_fields__}
    ), result.predictions
