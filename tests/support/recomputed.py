"""The STS table of a version computed again with numpy and scipy: nothing of bench is imported.

    python tests/support/recomputed.py leaderboards/v4

From the predictions and gold values in the version's folder: every STS score and average, how far
each pair moves them, the variances over pairs and over seeds, Student's t, the rule. Written from
docs/statistics.md and its sources, in the slow way if there is one: ranks and their derivatives
from all comparisons of two items, sharing of sentences pair by pair. The only file of bench that it
reads is the list of the sentences of each pair.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet
from scipy import optimize, special, stats

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
SENTENCES = Path(__file__).parents[2] / "bench" / "data" / "sets" / "shared_sentences.npz"
ALPHA = 0.05
FEWEST_SEEDS, MOST_BORROWED = 3, 2.0


def arrays_of(version: Path, file: str) -> dict[str, np.ndarray]:
    """Read predictions and gold values of one task of a run.

    ``file``: "runs/ID/predictions/STS12.npz".
    """
    if (version / "predictions.parquet").is_file():
        return packed_arrays(version / "predictions.parquet")[file]
    with np.load(version / file, allow_pickle=False) as stored:
        return dict(stored)


@functools.cache
def packed_arrays(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Read file -> name -> array from a version's one file of predictions; text is left out."""
    rows = parquet.read_table(path).to_pylist()
    files: dict[str, dict[str, np.ndarray]] = {}
    made: dict[int, np.ndarray] = {}  # a row comes after the row that it refers to
    for number, row in enumerate(rows):
        if row["dtype"] == "U":
            continue
        if row["dtype"] == "d2":
            low, high = np.frombuffer(row["data"], np.uint8).reshape(2, -1).astype(int)
            moved = (made[row["same"]] + low + 256 * high + 2**15) % 2**16 - 2**15
            made[number] = moved.astype(np.int16)
        elif row["same"] is None:
            made[number] = np.frombuffer(row["data"], "<" + row["dtype"]).reshape(row["shape"])
        else:
            made[number] = made[row["same"]]
        files.setdefault(row["file"], {})[row["array"]] = made[number]
    return files


def sentences_of_pairs() -> dict[str, np.ndarray]:
    """Task -> (N, 2) numbers of the sentences.

    Stored is how many sentences ago each was met last, 0 for a new one.
    """
    with np.load(SENTENCES, allow_pickle=False) as stored:
        back, items = stored["back"].tolist(), stored["items"].tolist()
    numbers: list[int] = []
    for place, ago in enumerate(back):
        numbers.append(numbers[place - ago] if ago else place)
    pairs = np.array(numbers).reshape(-1, 2)
    return dict(zip(TASKS, np.split(pairs, np.cumsum(items)[:-1]), strict=True))


def signs(values: np.ndarray) -> np.ndarray:
    """(N, N) 1 if the row's item is above the column's, -1 if below, else 0."""
    return np.sign(values[:, None] - values[None, :]).astype(np.float32)


def spearman(x_sign: np.ndarray, y_sign: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the correlation of ranks in points, and (N,) its derivative by each item's share, over
    N.
    """
    n = len(x_sign)
    u, v = (
        sign.mean(axis=1, dtype=np.float64) for sign in (x_sign, y_sign)
    )  # twice the centred rank, as a share
    a = (u * v).mean()
    b = (u * u).mean()
    c = (v * v).mean()

    def moved(sign: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the effect of more of an item on the mean of ``other`` times the ranks."""
        return sign.T.astype(np.float64) @ other / n

    of_a = u * v + moved(x_sign, v) + moved(y_sign, u) - 3 * a
    of_b, of_c = u * u + 2 * moved(x_sign, u) - 3 * b, v * v + 2 * moved(y_sign, v) - 3 * c
    rho = a / math.sqrt(b * c)
    return 100 * rho, 100 / n * (of_a / math.sqrt(b * c) - rho / 2 * (of_b / b + of_c / c))


def over_items(moved_RN: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (R, R) covariances twice: over pairs that share a sentence, and over equal pairs."""
    having: dict[int, list[int]] = {}
    for item, both in enumerate(pairs.tolist()):
        for one in set(both):
            having.setdefault(one, []).append(item)
    same: dict[tuple[int, ...], list[int]] = {}
    for item, both in enumerate(pairs.tolist()):
        same.setdefault(tuple(sorted(both)), []).append(item)
    near, equal = np.zeros_like(moved_RN), np.zeros_like(moved_RN)
    for item, both in enumerate(pairs.tolist()):
        near[:, item] = moved_RN[:, sorted({other for one in both for other in having[one]})].sum(
            axis=1
        )
        equal[:, item] = moved_RN[:, same[tuple(sorted(both))]].sum(axis=1)
    return moved_RN @ near.T, moved_RN @ equal.T


def freedom_of_items(weights: np.ndarray, pairs: np.ndarray) -> float:
    """Return how many sentences of one weight would say as much, minus one."""
    share: dict[int, float] = {}
    for weight, both in zip(weights.tolist(), pairs.tolist(), strict=True):
        for one in set(both):
            share[one] = share.get(one, 0.0) + weight
    total = sum(share.values())
    return 1 / sum((one / total) ** 2 for one in share.values()) - 1


def borrowed(variances: list[float], freedoms: list[int]) -> tuple[list[float], list[float]]:
    """Variances over seeds drawn towards what all have (Smyth 2004, section 6.2), and degrees of
    freedom; two of them at most are borrowed.

    What is then below the mean is drawn up to it, in logarithms by the share that was borrowed.
    What an F test finds above the others, at 0.05 over all, stays.
    """
    d, s = np.array(freedoms, dtype=float), np.array(variances)
    pooled, total = float((d * s).sum() / d.sum()), float(d.sum())
    if len(d) == 1:
        return [float(s[0])], [float(d[0])]
    logs = np.log(np.maximum(s, 1e-5 * np.median(s)))
    e = logs - np.array([special.digamma(one / 2) for one in d]) + np.log(d / 2)
    excess = float(e.var(ddof=1)) - float(np.mean([special.polygamma(1, one / 2) for one in d]))
    if excess <= 0:
        prior, lent = pooled, MOST_BORROWED
    else:
        half = optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-6, 1e9, xtol=1e-12)
        prior = math.exp(float(e.mean()) + special.digamma(half) - math.log(half))
        lent = min(2 * half, MOST_BORROWED)
    posterior = (d * s + lent * prior) / (d + lent)
    share = lent / (d + lent)
    found = np.maximum(pooled**share * posterior ** (1 - share), posterior).tolist()
    its = np.minimum(total, d + lent).tolist()
    for i in range(len(d)):
        rest = (pooled * total - d[i] * s[i]) / (total - d[i])
        if s[i] > found[i] and stats.f.sf(s[i] / rest, d[i], total - d[i]) < 0.05 / len(d):
            found[i], its[i] = float(s[i]), float(d[i])
    return found, its


def satterthwaite(parts: list[tuple[float, float]]) -> float:
    below = sum(part**2 / freedom for part, freedom in parts if part > 0 and math.isfinite(freedom))
    return sum(part for part, _ in parts) ** 2 / below if below else math.inf


def comparison(version: Path) -> dict[str, dict[str, Any]]:
    """Compute row -> result for the version's first STS table, without the baseline."""
    content = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    table = next(
        one["table"]
        for one in content["tables"]
        if one["table"]["suite"] == "sts" and one["table"]["setting"] == "unsupervised"
    )
    rows, sentences = table["rows"], sentences_of_pairs()
    pairs = np.concatenate([sentences[task] for task in TASKS])
    gold_signs: dict[str, np.ndarray] = {}
    values: list[list[float]] = []
    moved: list[np.ndarray] = []
    for row in rows:
        of_row = []
        for run in row["runs"]:
            scores, parts = [], []
            for task in TASKS:
                arrays = arrays_of(version, f"runs/{run}/predictions/{task}.npz")
                if task not in gold_signs:
                    gold_signs[task] = signs(arrays["gold"].astype(np.float64))
                score, by_item = spearman(
                    signs(arrays["prediction"].astype(np.float64)), gold_signs[task]
                )
                scores.append(score)
                parts.append(by_item / len(TASKS))
            of_row.append(round(sum(round(one, 2) for one in scores) / len(scores), 2))
            moved.append(np.concatenate(parts))
        values.append(of_row)
    return _compared(rows, table["baseline"], values, np.array(moved), pairs)


def _verdict(p: float, c: float, difference: float) -> str:
    if p >= c:
        return "inconclusive"
    return "better" if difference > 0 else "worse"


def _compared(rows, baseline, values, moved_RN, pairs):  # type: ignore[no-untyped-def]
    """Compare every tested row with the baseline, by the rule of docs/statistics.md."""
    counts = [len(one) for one in values]
    starts = np.concatenate([[0], np.cumsum(counts)])
    mean = [float(np.mean(one)) for one in values]
    near, equal = over_items(moved_RN, pairs)
    weights = np.concatenate(
        [np.full(len(one), 1 / len(one) / len(TASKS)) for one in sentences_of_pairs().values()]
    )
    freedom = freedom_of_items(weights, pairs)
    near, equal = ((freedom + 1) / freedom * one for one in (near, equal))
    block = [slice(starts[i], starts[i + 1]) for i in range(len(values))]
    several = [i for i, row in enumerate(rows) if row["seeds"] != [None] and counts[i] > 1]
    variance = dict.fromkeys(range(len(rows)), 0.0)
    of_seeds = dict.fromkeys(range(len(rows)), math.inf)
    found, freedoms = borrowed(
        [float(np.var(values[i], ddof=1)) for i in several], [counts[i] - 1 for i in several]
    )
    for i, one, its in zip(several, found, freedoms, strict=True):
        variance[i], of_seeds[i] = one, its
    total = float(sum(counts[i] - 1 for i in several))
    (base,) = [i for i, row in enumerate(rows) if (row["method"], row["variant"]) == (baseline, "")]
    told = []
    for i in range(len(rows)):
        few = rows[i]["seeds"] != [None] and counts[i] < FEWEST_SEEDS
        if i == base or few:
            continue
        items = max(
            0.0,
            _variance_of_difference(near, block[i], block[base]),
            _variance_of_difference(equal, block[i], block[base]),
        )
        one, other = variance[i] / counts[i], variance[base] / counts[base]
        seeds_freedom = satterthwaite([(one, of_seeds[i]), (other, of_seeds[base])])
        seeds_freedom = seeds_freedom if math.isinf(seeds_freedom) else min(seeds_freedom, total)
        error = math.sqrt(items + one + other)
        its = satterthwaite([(items, freedom), (one + other, seeds_freedom)])
        difference = mean[i] - mean[base]
        name = f"{rows[i]['method']} {rows[i]['variant']}".strip()
        told.append((name, difference, error, its, 2 * stats.t.sf(abs(difference) / error, its)))
    return _judged(told)


def _variance_of_difference(covariance: np.ndarray, one: slice, other: slice) -> float:
    """Return the variance over items of the difference of two means over runs."""
    apart = covariance[one, one].mean() + covariance[other, other].mean()
    return float(apart - 2 * covariance[one, other].mean())


def _judged(told: list[tuple[str, float, float, float, float]]) -> dict[str, dict[str, Any]]:
    """Judge rows of (name, difference, error, degrees of freedom, p): a worse row leaves the others
    its share of the level.
    """
    c = ALPHA / len(told)
    worse = -1
    while True:
        before = worse
        worse = sum(p < c and difference < 0 for _, difference, _, _, p in told)
        if worse == before:
            break
        c = ALPHA / max(1, len(told) - worse)
    found = {}
    for name, difference, error, its, p in told:
        half = stats.t.isf(c / 2, its) * error
        found[name] = {
            "difference": difference,
            "se": error,
            "df": its,
            "ci_low": difference - half,
            "ci_high": difference + half,
            "ci_level": 1 - c,
            "p": p,
            "verdict": _verdict(p, c, difference),
        }
    return found


if __name__ == "__main__":
    for name, of in comparison(Path(sys.argv[1])).items():
        interval = f"[{of['ci_low']:+.4f}, {of['ci_high']:+.4f}]"
        print(f"{name:24}{of['difference']:+.2f} {interval} {of['verdict']}, p {of['p']:.3g}")
