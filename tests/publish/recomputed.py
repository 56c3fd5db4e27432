"""The verdicts of a published version's primary family computed again, with numpy alone: nothing of bench is imported.

    python tests/publish/recomputed.py leaderboards/v3

From the predictions and gold values in the version's folder: every STS score and average, how far each pair moves them, the variances over pairs and
over seeds, Student's t, Holm's correction; beside what ``tables.json`` says. Written from docs/statistics.md and its sources, in the slow
way wherever there is one: ranks and their derivatives from all comparisons of two items, sharing of sentences pair by pair, special functions by
series and quadrature. The one file of bench that it reads is the list of which pair has which sentences.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
SENTENCES = Path(__file__).parents[2] / "bench" / "data" / "sets" / "shared_sentences.npz"
ALPHA, MARGIN = 0.05, 0.5


# --- what lies in the folder ---


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """Predictions, with the gold values that the version keeps once."""
    with np.load(path, allow_pickle=False) as stored:
        found = dict(stored)
    if "given_sha256" in found:
        name = f"given/{found.pop('given_sha256').item()}.npz"
        versions = [folder for folder in path.parents if (folder / "MANIFEST.json").is_file()]
        with np.load(versions[0] / name, allow_pickle=False) as stored:
            found |= dict(stored)
    return found


def sentences_of_pairs() -> dict[str, np.ndarray]:
    """Task -> (N, 2) numbers of the sentences. Stored is how many sentences ago each was met last, 0 for a new one."""
    with np.load(SENTENCES, allow_pickle=False) as stored:
        back, items = stored["back"].tolist(), stored["items"].tolist()
    numbers: list[int] = []
    for place, ago in enumerate(back):
        numbers.append(numbers[place - ago] if ago else place)
    pairs = np.array(numbers).reshape(-1, 2)
    return dict(zip(TASKS, np.split(pairs, np.cumsum(items)[:-1]), strict=True))


# --- one run on one task ---


def signs(values: np.ndarray) -> np.ndarray:
    """(N, N) 1 where the row's item is above the column's, -1 where below."""
    return np.sign(values[:, None] - values[None, :]).astype(np.float32)


def spearman(x_sign: np.ndarray, y_sign: np.ndarray) -> tuple[float, np.ndarray]:
    """The correlation of ranks in points, and (N,) its derivative by the share that an item has of the data, over N."""
    n = len(x_sign)
    u, v = (
        sign.mean(axis=1, dtype=np.float64) for sign in (x_sign, y_sign)
    )  # twice the centred rank, as a share
    a, b, c = (u * v).mean(), (u * u).mean(), (v * v).mean()

    def moved(sign: np.ndarray, other: np.ndarray) -> np.ndarray:
        """What more of an item does to the mean of ``other`` times the ranks: it pushes all below it down."""
        return sign.T.astype(np.float64) @ other / n

    of_a = u * v + moved(x_sign, v) + moved(y_sign, u) - 3 * a
    of_b, of_c = u * u + 2 * moved(x_sign, u) - 3 * b, v * v + 2 * moved(y_sign, v) - 3 * c
    rho = a / math.sqrt(b * c)
    return 100 * rho, 100 / n * (of_a / math.sqrt(b * c) - rho / 2 * (of_b / b + of_c / c))


# --- variances ---


def over_items(moved_RN: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, R) covariances of the values, twice: over pairs that share a sentence, and over those that are the same pair."""
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
    """How many sentences of one weight would say as much, less one."""
    share: dict[int, float] = {}
    for weight, both in zip(weights.tolist(), pairs.tolist(), strict=True):
        for one in set(both):
            share[one] = share.get(one, 0.0) + weight
    total = sum(share.values())
    return 1 / sum((one / total) ** 2 for one in share.values()) - 1


def digamma(x: float) -> float:
    less = 0.0
    while x < 20:
        less, x = less + 1 / x, x + 1
    return (
        math.log(x)
        - 1 / (2 * x)
        - 1 / (12 * x**2)
        + 1 / (120 * x**4)
        - 1 / (252 * x**6)
        + 1 / (240 * x**8)
        - less
    )


def trigamma(x: float) -> float:
    more = 0.0
    while x < 20:
        more, x = more + 1 / x**2, x + 1
    return (
        1 / x
        + 1 / (2 * x**2)
        + 1 / (6 * x**3)
        - 1 / (30 * x**5)
        + 1 / (42 * x**7)
        - 1 / (30 * x**9)
        + more
    )


def bisected(function, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    """Where a rising function is zero."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def borrowed(
    variances: list[float], freedoms: list[int], statistics: int = 3
) -> tuple[list[float], list[float]]:
    """Variances over seeds drawn towards what all have (Smyth 2004, section 6.2), and degrees of freedom. What is then below the mean is
    drawn up to it, in logarithms by the share that was borrowed; up to version 2 of the ``statistics`` it was raised to the mean."""
    d, s = np.array(freedoms, dtype=float), np.array(variances)
    pooled, total = float((d * s).sum() / d.sum()), float(d.sum())
    if len(d) == 1:
        return [float(s[0])], [float(d[0])]
    logs = np.log(np.maximum(s, 1e-5 * np.median(s)))
    e = logs - np.array([digamma(one / 2) for one in d]) + np.log(d / 2)
    excess = float(e.var(ddof=1)) - float(np.mean([trigamma(one / 2) for one in d]))
    if excess <= 0:
        return [pooled] * len(d), [total] * len(d)
    half = bisected(lambda x: excess - trigamma(x), 1e-6, 1e9)
    prior = math.exp(float(e.mean()) + digamma(half) - math.log(half))
    posterior = (d * s + 2 * half * prior) / (d + 2 * half)
    shares = 2 * half / (d + 2 * half) if statistics > 2 else np.ones(len(d))
    up = [
        math.exp(s * math.log(pooled) + (1 - s) * math.log(one))
        for s, one in zip(shares, posterior, strict=True)
    ]
    return [max(pair) for pair in zip(up, posterior, strict=True)], [
        min(total, one + 2 * half) for one in d
    ]


# --- Student's t ---

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


def tail(t: float, freedom: float) -> float:
    """The chance of more than t >= 0: with x = sqrt(freedom) tan(angle) the density is a power of a cosine."""
    start, scale = (
        math.atan(t / math.sqrt(freedom)),
        math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi),
    )
    end = min(math.pi / 2, start + 60 / math.sqrt(freedom))  # beyond it nothing is left
    angles = start + (end - start) * (_NODES + 1) / 2
    return float(scale * (end - start) / 2 * (_WEIGHTS @ np.cos(angles) ** (freedom - 1)))


def quantile(chance_above: float, freedom: float) -> float:
    return bisected(lambda t: chance_above - tail(t, freedom), 0.0, 1e4)


def satterthwaite(parts: list[tuple[float, float]]) -> float:
    below = sum(part**2 / freedom for part, freedom in parts if part > 0 and math.isfinite(freedom))
    return sum(part for part, _ in parts) ** 2 / below if below else math.inf


def holm(p: list[float]) -> list[float]:
    order, found, least = sorted(range(len(p)), key=p.__getitem__), [0.0] * len(p), 0.0
    for place, one in enumerate(order):
        least = found[one] = min(1.0, max(least, p[one] * (len(p) - place)))
    return found


# --- the table ---


def primary_family(version: Path) -> list[dict[str, Any]]:
    """Of every row of the version's first STS table but the baseline: what the table says, and what comes out here."""
    content = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    records = {one["run_id"]: (version / one["record"]).resolve().parent for one in content["runs"]}
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
                arrays = arrays_of(records[run] / "predictions" / f"{task}.npz")
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
    rule = json.loads((version / "version.json").read_text(encoding="utf-8"))["statistics"]
    return list(_compared(rows, table["baseline"], values, np.array(moved), pairs, rule))


def _compared(rows, baseline, values, moved_RN, pairs, rule):  # type: ignore[no-untyped-def]
    counts, starts = (
        [len(one) for one in values],
        np.concatenate([[0], np.cumsum([len(one) for one in values])]),
    )
    mean = [float(np.mean(one)) for one in values]
    near, equal = over_items(moved_RN, pairs)
    weights = np.concatenate(
        [np.full(len(one), 1 / len(one) / len(TASKS)) for one in sentences_of_pairs().values()]
    )
    freedom = freedom_of_items(weights, pairs)
    near, equal = ((freedom + 1) / freedom * one for one in (near, equal))
    block = [slice(starts[i], starts[i + 1]) for i in range(len(values))]
    own = []
    for i, n in enumerate(
        counts
    ):  # what each run has for itself, which the spread over seeds holds already
        part = near[block[i], block[i]]
        own.append(max(0.0, (np.trace(part) - part.sum() / n) / (n - 1)) / n if n > 1 else 0.0)
    several = [i for i, row in enumerate(rows) if row["seeds"] != [None] and counts[i] > 1]
    variance, of_seeds = (
        dict.fromkeys(range(len(rows)), 0.0),
        dict.fromkeys(range(len(rows)), math.inf),
    )
    found, freedoms = borrowed(
        [float(np.var(values[i], ddof=1)) for i in several], [counts[i] - 1 for i in several], rule
    )
    for i, one, its in zip(several, found, freedoms, strict=True):
        variance[i], of_seeds[i] = one, its
    total = float(sum(counts[i] - 1 for i in several))
    (base,) = [i for i, row in enumerate(rows) if (row["method"], row["variant"]) == (baseline, "")]
    told = []
    for i in range(len(rows)):
        if i == base:
            continue
        items = max(
            0.0,
            *(
                m[block[i], block[i]].mean()
                - own[i]
                + m[block[base], block[base]].mean()
                - own[base]
                - 2 * m[block[i], block[base]].mean()
                for m in (near, equal)
            ),
        )
        one, other = variance[i] / counts[i], variance[base] / counts[base]
        seeds_freedom = satterthwaite([(one, of_seeds[i]), (other, of_seeds[base])])
        seeds_freedom = seeds_freedom if math.isinf(seeds_freedom) else min(seeds_freedom, total)
        error, its = (
            math.sqrt(items + one + other),
            satterthwaite([(items, freedom), (one + other, seeds_freedom)]),
        )
        difference = mean[i] - mean[base]
        nearest = (MARGIN - abs(difference)) / error
        told.append(
            [
                rows[i],
                difference,
                error,
                its,
                2 * tail(abs(difference) / error, its),
                tail(nearest, its) if nearest >= 0 else 1 - tail(-nearest, its),
            ]
        )
    adjusted, equivalent = holm([one[4] for one in told]), holm([one[5] for one in told])
    alpha = ALPHA / max(1, len(told) - sum(p < ALPHA for p in adjusted))
    for (row, difference, error, its, p, _), p_adjusted, p_equal in zip(
        told, adjusted, equivalent, strict=True
    ):
        half = quantile(alpha / 2, its) * error
        verdict = "better" if difference > half else "worse" if -difference > half else "unknown"
        if abs(difference) + half < MARGIN and p_equal < ALPHA:
            verdict = "equivalent"
        said = row["cells"]["Avg."]["against"]
        here = {
            "difference": difference,
            "low": difference - half,
            "high": difference + half,
            "level": 1 - alpha,
            "p": p,
            "p_adjusted": p_adjusted,
            "verdict": verdict,
        }
        yield {
            "row": f"{row['method']} {row['variant']}".strip(),
            "here": here,
            "table": {key: said[key] for key in here},
        }


if __name__ == "__main__":
    for one in primary_family(Path(sys.argv[1])):
        for where in ("here", "table"):
            said = one[where]
            print(
                f"{one['row']:24}{where:6}{said['difference']:+.2f} [{said['low']:+.4f}, {said['high']:+.4f}] {said['verdict']}, "
                f"p {said['p']:.3g}, adjusted {said['p_adjusted']:.3g}"
            )
