"""The rule of docs/statistics.md once more, for thousands of made-up tables at once, with numpy and
scipy alone; and worlds to draw them from.

``python tests/support/made_tables.py`` prints the table of docs/verdict-errors.md;
``benchmarks/statistics.py`` simulates the worlds of v4's shape.

Legend: T tables, K rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

ALPHA = 0.05
WIDE = 0.05
ITEMS_FREEDOM = 1000.0
FEWEST_SEEDS, MOST_BORROWED = 3, 2.0
V1_ITEMS = np.array(
    [
        [0.58, 0.58, 0.52, 0.58, 0.51, 0.61, 0.56, 0.56],
        [0.58, 0.59, 0.52, 0.58, 0.52, 0.63, 0.59, 0.59],
        [0.52, 0.52, 0.63, 0.56, 0.47, 0.59, 0.55, 0.55],
        [0.58, 0.58, 0.56, 0.69, 0.57, 0.70, 0.62, 0.62],
        [0.51, 0.52, 0.47, 0.57, 0.65, 0.63, 0.59, 0.59],
        [0.61, 0.63, 0.59, 0.70, 0.63, 0.94, 0.85, 0.85],
        [0.56, 0.59, 0.55, 0.62, 0.59, 0.85, 1.06, 1.06],
        [0.56, 0.59, 0.55, 0.62, 0.59, 0.85, 1.06, 1.07],
    ]
)
"""leaderboards/v1, average of the seven STS sets: covariance of its eight rows over items, shared
sentences counted.

Row 1 is simcse.
"""


class Said(NamedTuple):
    """The verdicts of tables."""

    sign_TK: np.ndarray  # 1 better, -1 worse, 0 inconclusive or the baseline
    may_be_best_TK: np.ndarray
    critical_T: np.ndarray


@dataclass(frozen=True)
class Rule:
    """The two numbers of the rule that were added last; without them it is the rule of v1 to v4."""

    most_borrowed: float = MOST_BORROWED
    """Degrees of freedom that a row borrows at most."""
    fewest_seeds: int = FEWEST_SEEDS
    """Of a row with seeds, for it to be tested."""


BEFORE = Rule(most_borrowed=np.inf, fewest_seeds=1)


def seed_variances(
    variance_TK: np.ndarray, df_K: np.ndarray, most_borrowed: float = MOST_BORROWED
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate variances: moderated (Smyth 2004) and raised; a row that spreads more by an F test
    keeps its own.
    """
    known = df_K > 0
    v, d = variance_TK[:, known], df_K[known]
    e = np.log(np.maximum(v, 1e-5 * np.median(v, axis=1)[:, None]))
    e = e - special.psi(d / 2) + np.log(d / 2)
    excess = e.var(axis=1, ddof=1) - special.polygamma(1, d / 2).mean()
    alike = excess <= 0
    prior_df = 2 * _inverse_trigamma(np.where(alike, 1.0, excess))
    prior = np.exp(e.mean(axis=1) + special.psi(prior_df / 2) - np.log(prior_df / 2))
    mean = (v * d).sum(axis=1) / d.sum()
    prior, prior_df = (
        np.where(alike, *pair)[:, None] for pair in ((mean, prior), (1e12, prior_df))
    )
    prior_df = np.minimum(prior_df, most_borrowed)
    posterior = (df_K * variance_TK + prior_df * prior) / (df_K + prior_df)
    share = 1 / (1 + df_K / prior_df)
    posterior = np.maximum(posterior, mean[:, None] ** share * posterior ** (1 - share))
    others = d.sum() - df_K
    rest = (mean[:, None] * d.sum() - df_K * variance_TK) / others
    wide = known & (variance_TK > posterior)
    wide &= stats.f.sf(variance_TK / rest, np.maximum(df_K, 1), others) < WIDE / known.sum()
    df = np.minimum(df_K + prior_df, d.sum())
    return np.where(wide, variance_TK, posterior), np.where(wide, df_K, df)


def _inverse_trigamma(value: np.ndarray) -> np.ndarray:
    low, high = np.full(len(value), -12.0), np.full(len(value), 20.0)  # logarithms
    for _ in range(60):
        middle = (low + high) / 2
        above = special.polygamma(1, np.exp(middle)) > value
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.exp(low)


def judge(
    mean_TK: np.ndarray,
    variance_TK: np.ndarray,
    runs_K: np.ndarray,
    random_K: np.ndarray,
    items_KK: np.ndarray,
    base: int | None,
    rule: Rule = Rule(),
) -> Said:
    """Judge tables with predictions in all rows; a baseline has as many seeds as a tested row."""
    tested_K = ~random_K | (runs_K >= rule.fewest_seeds)
    assert base is None or tested_K[base]
    df_K = np.where(random_K, runs_K - 1, 0).astype(float)
    if random_K.any():
        seed, seed_df = seed_variances(variance_TK, df_K, rule.most_borrowed)
        seed, seed_df = np.where(random_K, seed / runs_K, 0.0), np.where(random_K, seed_df, 1.0)
    else:
        seed = seed_df = np.zeros_like(mean_TK) + 1e-300
    diagonal = items_KK.diagonal()
    items_TKK = np.maximum(diagonal[:, None] + diagonal - 2 * items_KK, 0)[None]
    seeds_TKK = seed[:, :, None] + seed[:, None]
    squares = seed**2 / seed_df
    with np.errstate(divide="ignore", invalid="ignore"):
        df = seeds_TKK**2 / (squares[:, :, None] + squares[:, None])
        df = np.minimum(np.nan_to_num(df, nan=1.0, posinf=1e9), max(df_K.sum(), 1.0))
        total = items_TKK + seeds_TKK
        df = total**2 / (items_TKK**2 / ITEMS_FREEDOM + seeds_TKK**2 / df)
        t = (mean_TK[:, :, None] - mean_TK[:, None]) / np.sqrt(total)
    below_TKK = special.stdtr(np.nan_to_num(df, nan=1.0), np.nan_to_num(t))  # row below the column
    count = int(tested_K.sum())
    critical = np.full(len(mean_TK), ALPHA / (count - 1))
    if base is None:
        below_any = ((below_TKK < critical[:, None, None]) & tested_K).any(2)
        return Said(np.zeros(mean_TK.shape, int), tested_K & ~below_any, critical)
    p = 2 * np.minimum(below_TKK[:, :, base], 1 - below_TKK[:, :, base])
    above = mean_TK > mean_TK[:, [base]]
    for _ in range(count):
        worse = (p < critical[:, None]) & ~above & tested_K
        critical = ALPHA / np.maximum(1, count - 1 - worse.sum(1))
    better = (p < critical[:, None]) & above & tested_K
    out = ~tested_K | worse | ((below_TKK < critical[:, None, None]) & better[:, None]).any(2)
    out[:, base] = better.any(1)
    return Said(better.astype(int) - worse, ~out, critical)


def alike(count: int, items: float = 0.8, common: float = 0.6) -> np.ndarray:
    return items**2 * ((1 - common) * np.eye(count) + common)


@dataclass(frozen=True)
class World:
    """A way to draw tables. ``seeds``: of every row; 0: nothing in it is random."""

    seeds: tuple[int, ...] = (3,) * 8
    items: np.ndarray = field(default_factory=lambda: V1_ITEMS)
    seed_sd: float | tuple[float, ...] = 0.6  # of all rows, or one for each
    permuted: bool = False  # the rows' spreads in another order in every table
    unequal: float = 0.0  # log-sd of the variances over seeds
    wide: tuple[int, ...] = ()  # the rows with seeds that spread ``times`` as far
    times: float = 6.0
    base: int | None = 1
    gaps: (
        tuple[float, ...] | str
    ) = ()  # true values; "in turn": each other row is ``gain`` points better
    gain: float = 3.0

    def true(self, tables: int) -> np.ndarray:
        count = len(self.seeds)
        if self.gaps == "in turn":
            others = [i for i in range(count) if i != self.base]
            return self.gain * (np.arange(count) == np.resize(others, tables)[:, None])
        return np.tile(np.array(self.gaps or (0.0,) * count), (tables, 1))

    def values(self, rng: np.random.Generator, tables: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """(T, K) true values, and per row the (T, S) values of its seeds."""
        count, true = len(self.seeds), self.true(tables)
        root = np.linalg.cholesky(self.items + 1e-9 * np.eye(count))
        center = true + rng.normal(size=(tables, count)) @ root.T
        usual = np.tile(np.broadcast_to(self.seed_sd, count), (tables, 1))
        trained = np.flatnonzero(self.seeds)
        if self.permuted:
            usual[:, trained] = rng.permuted(usual[:, trained], axis=1)
        spread = usual * np.exp(self.unequal / 2 * rng.normal(size=(tables, count)))
        spread[:, list(self.wide)] = self.times * usual[:, list(self.wide)]
        spread[:, np.array(self.seeds) == 0] = 0.0
        return true, [
            center[:, [i]] + spread[:, [i]] * rng.normal(size=(tables, max(n, 1)))
            for i, n in enumerate(self.seeds)
        ]

    def said(self, values: list[np.ndarray], rule: Rule = Rule()) -> Said:
        return judge(
            np.stack([own.mean(1) for own in values], 1),
            np.stack(
                [own.var(1, ddof=1) if own.shape[1] > 1 else own[:, 0] * 0 for own in values], 1
            ),
            np.array([max(n, 1) for n in self.seeds]),
            np.array(self.seeds) > 0,
            self.items,
            self.base,
            rule,
        )

    def tested(self, rule: Rule = Rule()) -> np.ndarray:
        """(K,) which rows are tested: rows without randomness, and rows with enough seeds."""
        return np.array([n == 0 or n >= rule.fewest_seeds for n in self.seeds])


BOARD = (6,) * 14 + (3,) * 6 + (2,) + (0,) * 5 + (10,)  # as leaderboards/v4
V4: dict[str, Any] = {"seeds": BOARD, "items": alike(27, 0.4), "seed_sd": 0.5, "base": 26}
NO_ITEMS = alike(8, 0.001)
WORLDS = {
    "equal rows": World(),
    "unequal spreads": World(unequal=0.6),
    "items alone": World((0,) * 8),
    "seeds alone": World(items=NO_ITEMS),
    "unequal numbers of seeds": World((2, 3, 5, 3, 2, 4, 3, 3), unequal=0.6),
    "some rows with one seed": World((1, 3, 3, 1, 3, 5, 3, 1), unequal=0.6),
    "untrained rows next to trained ones": World((0, 3, 3, 3, 0, 3, 3, 3), unequal=0.6),
    "19 rows": World((3,) * 19, alike(19), unequal=0.6),
    "near ties": World(gaps=tuple(0.3 * i for i in range(8))),
    "half of the rows 3 points better": World(gaps=(3.0, 0.0) * 4),
    "each row in turn 3 points better": World(gaps="in turn"),
    "the same, unequal spreads": World(gaps="in turn", unequal=0.6),
    "no baseline": World(base=None),
    "as v4, spreads far apart": World(unequal=1.8, **V4),
    "as v4, one row spreads 7 times as far": World(wide=(0,), times=7.0, **V4),
    "seeds alone, spreads far apart": World(items=NO_ITEMS, unequal=1.2),
    "one row spreads 6 times as far": World(wide=(0,)),
    "the baseline spreads 6 times as far": World(wide=(1,)),
    "the same, six seeds": World((6,) * 8, wide=(1,)),
}


HIGHER = {
    "as v4, spreads far apart": 0.065,
    "one row spreads 6 times as far": 0.065,
    "the baseline spreads 6 times as far": 0.085,
}
"""Worlds in which more than 5 of 100 tables say something false: docs/verdict-errors.md has the
same numbers.
"""


class Shares(NamedTuple):
    wrong: float  # share of tables with a false statement
    power: float  # share of true differences from the baseline, upwards, that are found
    candidates: float  # rows that may be the best


def simulate(world: World, tables: int, seed: int = 1, rule: Rule = Rule()) -> Shares:
    """Judge so many tables of the world. The best row is the best of those that are tested."""
    true, values = world.values(np.random.default_rng(seed), tables)
    said = world.said(values, rule)
    # the first of equal ones: the hardest case, ahead by nothing
    best = np.where(world.tested(rule), true, -np.inf).argmax(1)
    wrong = ~said.may_be_best_TK[np.arange(tables), best]
    power = np.nan
    if world.base is not None:
        less = true - true[:, [world.base]]
        wrong |= ((said.sign_TK > 0) & (less <= 0) | (said.sign_TK < 0) & (less >= 0)).any(1)
        power = float((said.sign_TK > 0)[less > 0].mean()) if (less > 0).any() else np.nan
    return Shares(float(wrong.mean()), power, float(said.may_be_best_TK.sum(1).mean()))


if __name__ == "__main__":
    for name, world in WORLDS.items():
        print(f"| {name} | {' | '.join(f'{share:.3f}' for share in simulate(world, 10_000))} |")
