"""A table of a version computed again with numpy and scipy: nothing of bench is imported.

    python tests/support/recomputed.py leaderboards/v6
    python tests/support/recomputed.py leaderboards/v6 cxc cxc-promcse/1 1000steps

From the predictions and gold values in the version's folder: every score and average, how far
each item moves them, the variances over items and over seeds, Student's t, the rule. Written from
docs/statistics.md and its sources. The only file of bench that it reads is the list of the sentences of each pair.
"""

from __future__ import annotations

import json
import math
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from recomputed_scores import Answer, answer, sentences_of_pairs
from scipy import optimize, sparse, special, stats

ALPHA = 0.05
FEWEST_SEEDS, MOST_BORROWED = 3, 2.0


def over_items(moved_RN: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (R, R) covariances twice: over pairs that share a sentence, and over equal pairs."""
    item_N, one_N = np.arange(len(pairs)), np.ones(len(pairs))
    shape = len(pairs), int(pairs.max()) + 1
    # an item has its two sentences; a product of two items' rows is above 0 if they share one
    has_NS = sum(sparse.csr_array((one_N, (item_N, end_N)), shape) for end_N in pairs.T)
    share_NN = ((has_NS @ has_NS.T) > 0).astype(float)
    kind_N = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    is_NK = sparse.csr_array((one_N, (item_N, kind_N)))
    near, equal = moved_RN @ share_NN, moved_RN @ is_NK @ is_NK.T
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


def comparison(
    version: Path, suite: str = "sts", protocol: str = "senteval-all/1", budget: str | None = None
) -> dict[str, dict[str, Any]]:
    """Compute row -> result for an unsupervised table of the version, without the baseline.

    ``budget``: None is the first table of the suite and protocol.
    """
    return compared(version, unsupervised_table(version, suite, protocol, budget))


def compared(version: Path, table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Compute row -> result for a table: its suite, protocol and columns, its rows with method,
    variant, seeds and runs are read, and of CxC the values.
    """
    suite, protocol = table["suite"], table["protocol"]
    tasks = [name for name in table["columns"] if name != "Avg."]
    values: list[list[float]] = []
    answers: list[list[Answer]] = []
    texts = [trained_on(version, row["runs"][0]) for row in table["rows"]]
    for row in table["rows"]:
        of_row = []
        for run in row["runs"]:
            answered = [answer(version, run, suite, protocol, task) for task in tasks]
            of_row.append(average([float(one.values_Q.mean()) for one in answered]))
            answers.append(answered)
        if suite == "cxc":  # the value is a mean over draws, which bench verify draws again
            of_row = row["cells"][tasks[0]]["values"]
        values.append(of_row)
    base, family = judged_rows(version, table)
    starts = starts_of_rows(version, table)
    return _compared(table["rows"], values, answers, texts, base, family, starts)


def record_of(version: Path, run: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (version / "runs" / run / "run.json").read_text(encoding="utf-8")
    )
    return content


def trained_on(version: Path, run: str) -> str | None:
    """Return the sha256 of a run's training text."""
    text: str | None = record_of(version, run)["provenance"]["corpus"].get("sha256")
    return text


def judged_rows(version: Path, table: dict[str, Any]) -> tuple[int, list[int]]:
    """Return the places of the baseline and of the rows that are judged: those of the table's
    question, else those that train or fit something.
    """
    rows = table["rows"]
    firsts = [record_of(version, row["runs"][0]) for row in rows]
    questions = [question_of_row(version, table, row) for row in rows]
    asked = list(map(bool, questions))
    if any(asked):
        question = questions[asked.index(True)]
        places: dict[str, int] = {}
        for i, row in enumerate(rows):
            name = "+".join(filter(None, [row["method"], row["variant"]]))
            # another question's row of this name stands in for one that was not run for this
            if not is_start(firsts[i]) and (asked[i] or name not in places):
                places[name] = i
        planned = [places[name] for name in question["rows"] if name in places]
        return places[question["baseline"]], planned
    base = baseline_among(rows, [len(row["runs"]) for row in rows])
    fitted = [
        i
        for i, record in enumerate(firsts)
        if not is_start(record)
        and (record.get("training") is not None or record["provenance"]["corpus"].get("sha256"))
    ]
    return base, [i for i in fitted or range(len(rows)) if i != base]


def is_start(record: dict[str, Any]) -> bool:
    """Say if a run of a method that trains made no step."""
    done = record.get("training")
    return record["setting"] != "none" and done is not None and done["steps"] == 0


def starts_of_rows(version: Path, table: dict[str, Any]) -> dict[int, list[int]]:
    """Return the places of a row's starts: of its method before the first step, and the [CLS] of
    its backbone; of a start itself none. Only rows that are trained and starts are keys.
    """
    if table["metric"] not in ("spearman", "spearman-bootstrap"):
        return {}
    rows = table["rows"]
    firsts = [record_of(version, row["runs"][0]) for row in rows]
    found: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        if row["setting"] == "none":
            continue
        found[i] = []
        if is_start(firsts[i]):
            continue
        for k, one in enumerate(rows):
            same = one["backbone"] == row["backbone"]
            own = is_start(firsts[k]) and one["method"] == row["method"]
            first_token = one["method"] == "cls" and one["setting"] == "none"
            if same and (own or first_token):
                found[i].append(k)
    return found


def question_of_row(version: Path, table: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the table's question from the plan of one of the row's runs; {} if none has it."""
    for run in row["runs"]:
        plan = version / "runs" / run / "plan.toml"
        if not plan.is_file():
            continue
        question: Any = tomllib.loads(plan.read_text(encoding="utf-8")).get("question")
        if not isinstance(question, dict) or not question.get("rows"):
            continue
        here = table["suite"] in question.get("suite", [table["suite"]])
        if here and question.get("text", table["question"]) == table["question"]:
            return question
    return {}


def seed_by_seed(
    rows: list[dict[str, Any]], values: list[list[float]], texts: list[str | None], base: int
) -> dict[int, tuple[float, float, float]]:
    """Return of each row that shares three seeds and the text with the baseline: the mean of the
    differences, its variance, and degrees of freedom."""
    apart: dict[int, list[float]] = {}
    of_base = dict(zip(rows[base]["seeds"], values[base], strict=True))
    for i, row in enumerate(rows):
        if i == base or not texts[i] or texts[i] != texts[base] or "(step 0" in row["name"]:
            continue
        pairs = zip(row["seeds"], values[i], strict=True)
        both = [
            value - of_base[seed] for seed, value in pairs if seed is not None and seed in of_base
        ]
        if len(both) >= FEWEST_SEEDS:
            apart[i] = both
    if not apart:
        return {}
    found, freedoms = borrowed(
        [float(np.var(one, ddof=1)) for one in apart.values()],
        [len(one) - 1 for one in apart.values()],
    )
    told = {}
    for (i, both), variance, its in zip(apart.items(), found, freedoms, strict=True):
        told[i] = float(np.mean(both)), variance / len(both), its
    return told


def average(values: list[float]) -> float:
    """Return the average of a run's tasks as papers print it: of rounded numbers, rounded."""
    return round(math.fsum(round(one, 2) for one in values) / len(values), 2)


def unsupervised_table(
    version: Path, suite: str, protocol: str, budget: str | None
) -> dict[str, Any]:
    """Return a table of a version's tables.json."""
    content = json.loads((version / "tables.json").read_text(encoding="utf-8"))
    for shown in content["tables"]:
        table: dict[str, Any] = shown["table"]
        kind = (table["suite"], table["protocol"], table["setting"])
        if kind == (suite, protocol, "unsupervised") and budget in (None, table["budget"]):
            return table
    raise LookupError(f"{version}: no table of {suite}, {protocol}, {budget}")


def name_of(row: dict[str, Any]) -> str:
    """Name a row: "dcpcse mlm corpus=builtin"."""
    differs = [f"{key}={value}" for key, value in row["differs"].items()]
    step = "at step 0" if "(step 0" in row["name"] else ""
    return " ".join(filter(None, [row["method"], row["variant"], *differs, step]))


def sampled_items(answers: list[list[Answer]]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return two (R, R) covariances over items, as ``over_items``, and their degrees of freedom.

    ``answers``: of each run, by task. Only the STS sets share sentences from task to task.
    """
    first, count = answers[0], len(answers[0])
    moved_RN = np.array([np.concatenate([one.moved_N / count for one in of]) for of in answers])
    pairs, start = [], 0
    shared = set(map(len, sentences_of_pairs().values())) == {len(one.moved_N) for one in first}
    for one in first:
        pairs.append(one.pairs_N2 + (0 if shared else start))
        start += int(one.pairs_N2.max()) + 1
    pairs_N2 = np.concatenate(pairs)
    near, equal = over_items(moved_RN, pairs_N2)
    weights = np.concatenate([one.weight_N / count for one in first])
    freedom = freedom_of_items(weights, pairs_N2)
    return (freedom + 1) / freedom * near, (freedom + 1) / freedom * equal, freedom


def over_repetitions(
    answers: list[list[Answer]], block: list[slice], one: int, other: int
) -> tuple[float, float]:
    """Return the variance of the difference of two rows over other repetitions, the same for both,
    and its degrees of freedom: 0 and infinity without repetitions."""
    variance, freedom = 0.0, 0
    for task in range(len(answers[0])):
        values_RQ = np.array([of[task].values_Q for of in answers]) / len(answers[0])
        repetitions = values_RQ.shape[1]
        if repetitions == 1:
            return 0.0, math.inf
        apart_Q = values_RQ[block[one]].mean(axis=0) - values_RQ[block[other]].mean(axis=0)
        variance += float(apart_Q.var(ddof=1)) / repetitions
        freedom += repetitions - 1
    return variance, float(freedom)


def _verdict(p: float, c: float, difference: float) -> str:
    if p >= c:
        return "inconclusive"
    return "better" if difference > 0 else "worse"


def _compared(
    rows: list[dict[str, Any]],
    values: list[list[float]],
    answers: list[list[Answer]],
    texts: list[str | None],
    base: int,
    family: list[int],
    before: dict[int, list[int]],
) -> dict[str, dict[str, Any]]:
    """Compare every tested row with the baseline, by the rule of docs/statistics.md; rows that are
    not of the family have a difference and an interval."""
    counts = [len(one) for one in values]
    starts = np.concatenate([[0], np.cumsum(counts)])
    mean = [float(np.mean(one)) for one in values]
    near, equal, freedom = sampled_items(answers)
    block = [slice(starts[i], starts[i + 1]) for i in range(len(values))]
    # the seeds of a start say nothing of those of a trained row
    random = [row["seeds"] != [None] and "(step 0" not in row["name"] for i, row in enumerate(rows)]
    several = [i for i in range(len(rows)) if random[i] and counts[i] > 1]
    variance = dict.fromkeys(range(len(rows)), 0.0)
    of_seeds = dict.fromkeys(range(len(rows)), math.inf)
    found, freedoms = borrowed(
        [float(np.var(values[i], ddof=1)) for i in several], [counts[i] - 1 for i in several]
    )
    for i, one, its in zip(several, found, freedoms, strict=True):
        variance[i], of_seeds[i] = one, its
    total = float(sum(counts[i] - 1 for i in several))
    pairs = seed_by_seed(rows, values, texts, base)
    told = []
    start_of: dict[str, tuple[float, float, float] | None] = {}
    for i in range(len(rows)):
        if i == base or (random[i] and counts[i] < FEWEST_SEEDS):
            continue
        items = _over_items(near, equal, block[i], block[base])
        one, other = variance[i] / counts[i], variance[base] / counts[base]
        seeds_freedom = satterthwaite([(one, of_seeds[i]), (other, of_seeds[base])])
        seeds_freedom = seeds_freedom if math.isinf(seeds_freedom) else min(seeds_freedom, total)
        difference, seeds = mean[i] - mean[base], one + other
        if i in pairs:
            difference, seeds, seeds_freedom = pairs[i]
        repeated, of_repeated = over_repetitions(answers, block, i, base)
        error = math.sqrt(items + repeated + seeds)
        its = satterthwaite([(items, freedom), (repeated, of_repeated), (seeds, seeds_freedom)])
        p = 2 * float(stats.t.sf(abs(difference) / error, its))
        lowest = None
        for k in before.get(i, []):
            above = mean[i] - mean[k]
            of_items = _over_items(near, equal, block[i], block[k])
            of_start = float(np.var(values[k], ddof=1)) / counts[k] if counts[k] > 1 else 0.0
            parts = [(of_items, freedom), (one, of_seeds[i]), (of_start, max(1, counts[k] - 1))]
            half = stats.t.isf(0.025, satterthwaite(parts)) * math.sqrt(one + of_start + of_items)
            if lowest is None or above - half < lowest[1]:
                lowest = above, above - half, above + half
        judged = i in family and (lowest is None or lowest[1] > 0)
        start_of[name_of(rows[i])] = lowest
        told.append((name_of(rows[i]), difference, error, its, p if judged else None))
    found_of_all = _judged(told)
    for name, of in found_of_all.items():
        of["start"] = start_of[name]
    return found_of_all


def _over_items(near: np.ndarray, equal: np.ndarray, one: slice, other: slice) -> float:
    """Return the variance of a difference over items."""
    return max(
        0.0,
        _variance_of_difference(near, one, other),
        _variance_of_difference(equal, one, other),
    )


def margin_of_equality(difference: float, error: float, its: float) -> float:
    """Return the smallest margin that both one-sided tests at 5 % leave a difference within."""

    def larger_p(margin: float) -> float:
        above = stats.t.sf((margin - difference) / error, its)
        below = stats.t.cdf((-margin - difference) / error, its)
        return float(max(above, below)) - 0.05

    return float(optimize.brentq(larger_p, abs(difference), abs(difference) + 100 * error))


def baseline_among(rows: list[dict[str, Any]], counts: list[int]) -> int:
    """Return the place of simcse; of several, of the one with most seeds."""
    places = [
        i
        for i, row in enumerate(rows)
        if (row["method"], row["variant"]) == ("simcse", "") and "(step 0" not in row["name"]
    ]
    return max(places, key=lambda i: counts[i])


def _variance_of_difference(covariance: np.ndarray, one: slice, other: slice) -> float:
    """Return the variance over items of the difference of two means over runs."""
    apart = covariance[one, one].mean() + covariance[other, other].mean()
    return float(apart - 2 * covariance[one, other].mean())


def _judged(told: list[tuple[str, float, float, float, float | None]]) -> dict[str, dict[str, Any]]:
    """Judge rows of (name, difference, error, degrees of freedom, p): a worse row leaves the others
    its share of the level. A row without p is not judged.
    """
    tested = [(difference, p) for _, difference, _, _, p in told if p is not None]
    c = ALPHA / max(1, len(tested))
    worse = -1
    while True:
        before = worse
        worse = sum(p < c and difference < 0 for difference, p in tested)
        if worse == before:
            break
        c = ALPHA / max(1, len(tested) - worse)
    found: dict[str, dict[str, Any]] = {}
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
            "verdict": None,
            "equal_within": None,
        }
        if p is not None:
            found[name]["verdict"] = _verdict(p, c, difference)
            found[name]["equal_within"] = margin_of_equality(difference, error, its)
    return found


if __name__ == "__main__":
    for name, of in comparison(Path(sys.argv[1]), *sys.argv[2:]).items():
        interval = f"[{of['ci_low']:+.4f}, {of['ci_high']:+.4f}]"
        print(f"{name:24}{of['difference']:+.2f} {interval} {of['verdict'] or 'not judged'}")
