"""The rule of docs/statistics.md once more, for thousands of made-up tables at once, with numpy and
scipy alone; and worlds to draw them from.

``python tests/support/made_tables.py`` prints a table of benchmarks/verdict-errors.md;
``benchmarks/verdict_errors.py`` simulates the worlds of the newest version's shape.

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


def seed_variances(variance_TK: np.ndarray, df_K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate variances: moderated (Smyth 2004) and raised; a row that spreads more by an F test
    keeps its own.
    """
    known = df_K > 0
    v, d = variance_TK[:, known], df_K[known]
    if len(d) == 1:  # nobody to learn from
        return variance_TK, np.broadcast_to(df_K, variance_TK.shape)
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
    prior_df = np.minimum(prior_df, MOST_BORROWED)
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


class Tables:
    """The runs of T tables: per row the (T, S) values of its seeds, which are numbered from 1."""

    def __init__(
        self, values: list[np.ndarray], random_K: np.ndarray, items_KK: np.ndarray, paired: bool
    ) -> None:
        self.values, self.random_K, self.items_KK, self.paired = values, random_K, items_KK, paired
        self.runs_K = np.array([own.shape[1] for own in values])
        self.mean_TK = np.stack([own.mean(1) for own in values], 1)
        df_K = np.where(random_K, self.runs_K - 1, 0).astype(float)
        self.seed_TK = np.zeros_like(self.mean_TK)
        self.seed_df_TK = np.full_like(self.mean_TK, 1e9)
        self.total_df = max(df_K.sum(), 1.0)
        if df_K.any():
            variance_TK = np.stack(
                [own.var(1, ddof=1) if own.shape[1] > 1 else own[:, 0] * 0 for own in values], 1
            )
            seed, df = seed_variances(variance_TK, df_K)
            self.seed_TK = np.where(random_K, seed / self.runs_K, 0.0)
            self.seed_df_TK = np.where(random_K, df, 1e9)

    def minus(self, other: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return every row minus ``other`` in the tables ``at``, and the probabilities that a row
        lies as far below by chance."""
        value = self.mean_TK[at] - self.mean_TK[at][:, [other]]
        one, base = self.seed_TK[at], self.seed_TK[at][:, [other]]
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = one**2 / self.seed_df_TK[at] + base**2 / self.seed_df_TK[at][:, [other]]
            df = np.nan_to_num((one + base) ** 2 / squares, nan=1e9, posinf=1e9)
        df = np.minimum(df, np.where(df > 1e8, 1e9, self.total_df))
        variance = one + base
        if self.paired and self.random_K[other]:
            value, variance, df = self.pair(other, at, value, variance, df)
        diagonal = self.items_KK.diagonal()
        items = np.maximum(diagonal + diagonal[other] - 2 * self.items_KK[other], 0)
        total = items + variance
        with np.errstate(divide="ignore", invalid="ignore"):
            df = total**2 / (items**2 / ITEMS_FREEDOM + variance**2 / df)
            t = value / np.sqrt(total)
        return value, special.stdtr(np.nan_to_num(df, nan=1.0), np.nan_to_num(t))

    def pair(
        self, other: int, at: np.ndarray, value: np.ndarray, variance: np.ndarray, df: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Replace what rows with three common seeds have by what their differences say."""
        common_K = np.where(self.random_K, np.minimum(self.runs_K, self.runs_K[other]), 0)
        common_K[other] = 0
        paired_K = common_K >= 3
        if not paired_K.any():
            return value, variance, df
        spread = np.zeros_like(value)
        for row in np.flatnonzero(paired_K):
            n = common_K[row]
            apart = self.values[row][at, :n] - self.values[other][at, :n]
            value[:, row], spread[:, row] = apart.mean(1), apart.var(1, ddof=1)
        own_df = np.where(paired_K, common_K - 1, 0).astype(float)
        found, found_df = seed_variances(spread, own_df)
        common = np.maximum(common_K, 1)
        return (
            value,
            np.where(paired_K, found / common, variance),
            np.where(paired_K, found_df, df),
        )


def judge(
    values: list[np.ndarray],
    random_K: np.ndarray,
    items_KK: np.ndarray,
    base: int | None,
    paired: bool = True,
) -> Said:
    """Judge tables with predictions in all rows; a baseline has as many seeds as a tested row."""
    made = Tables(values, random_K, items_KK, paired)
    shape = made.mean_TK.shape
    every = np.arange(shape[0])
    tested_K = ~random_K | (made.runs_K >= FEWEST_SEEDS)
    assert base is None or tested_K[base]
    count = int(tested_K.sum())
    critical = np.full(len(every), ALPHA / (count - 1))
    if base is None:
        out = np.tile(~tested_K, (len(every), 1))
        for above in np.flatnonzero(tested_K):
            out |= made.minus(above, every)[1] < critical[:, None]
        return Said(np.zeros(shape, int), ~out, critical)
    value, below = made.minus(base, every)
    p = 2 * np.minimum(below, 1 - below)
    for _ in range(count):
        worse = (p < critical[:, None]) & (value < 0) & tested_K
        critical = ALPHA / np.maximum(1, count - 1 - worse.sum(1))
    better = (p < critical[:, None]) & (value > 0) & tested_K
    out = ~tested_K | worse
    for above in range(shape[1]):
        at = np.flatnonzero(better[:, above])
        if len(at):
            out[at] |= made.minus(above, at)[1] < critical[at, None]
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
    common: float = 0.0  # correlation of the same seed in two rows
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
        shared = rng.normal(size=(tables, max(self.seeds))) if self.common else None
        values = []
        for i, n in enumerate(self.seeds):
            noise = rng.normal(size=(tables, max(n, 1)))
            if shared is not None and n:
                own = (1 - self.common) ** 0.5 * noise
                noise = self.common**0.5 * shared[:, :n] + own
            values.append(center[:, [i]] + spread[:, [i]] * noise)
        return true, values

    def said(self, values: list[np.ndarray], paired: bool = True) -> Said:
        return judge(values, np.array(self.seeds) > 0, self.items, self.base, paired)

    def tested(self) -> np.ndarray:
        """(K,) which rows are tested: rows without randomness, and rows with enough seeds."""
        return np.array([n == 0 or n >= FEWEST_SEEDS for n in self.seeds])


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


HIGHER = {"the baseline spreads 6 times as far": 0.07}
"""Worlds in which more than 5 of 100 tables say something false: benchmarks/verdict-errors.md
has the same numbers.
"""


class Shares(NamedTuple):
    wrong: float  # share of tables with a false statement
    power: float  # share of true differences from the baseline, upwards, that are found
    candidates: float  # rows that may be the best


def simulate(world: World, tables: int, seed: int = 1, paired: bool = True) -> Shares:
    """Judge so many tables of the world. The best row is the best of those that are tested."""
    true, values = world.values(np.random.default_rng(seed), tables)
    said = world.said(values, paired)
    # the first of equal ones: the hardest case, ahead by nothing
    best = np.where(world.tested(), true, -np.inf).argmax(1)
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
