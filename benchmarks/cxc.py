"""Compare sampled Spearman as CxC-STS defines it with scipy in a loop over the same draws.

    python benchmarks/cxc.py [--draws 1000]

44,045 made pairs of 5,000 images and 25,000 captions, as many as the set has. The peer draws with
numpy's generator call by call, as PromCSE's code does, and ranks every draw with scipy; ours does
what `--suite cxc` does after encoding, for both protocols.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from machine import describe_machine
from scipy.stats import spearmanr

from bench.score.metrics.sampled import (
    SEED,
    draws_with_replacement,
    draws_without_replacement,
    rank_gold,
    sampled_spearman,
)


def peer(cosine: np.ndarray, gold: np.ndarray, query: np.ndarray, draws: int) -> list[float]:
    """Return the correlation of each draw.

    Queries are drawn with replacement, then one pair of each, by calls of numpy's legacy generator.
    """
    rows = [np.flatnonzero(query == one) for one in range(query.max() + 1)]
    random = np.random.RandomState(SEED)
    found = []
    for _ in range(draws):
        chosen = random.randint(0, len(rows), len(rows) // 2)
        picked = np.array([rows[one][random.randint(len(rows[one]))] for one in chosen])
        found.append(100 * spearmanr(cosine[picked], gold[picked]).statistic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    random = np.random.default_rng(0)
    image = np.repeat(np.arange(5000), 9)[:44045]
    image = np.unique(image, return_inverse=True)[1]
    caption = random.permutation(
        np.concatenate([np.arange(25000), random.integers(0, 25000, 19045)])
    )
    gold, cosine = random.integers(0, 500, 44045) / 100, random.normal(size=44045)
    print(describe_machine())
    began = time.perf_counter()
    drawn = rank_gold(gold, draws_with_replacement(image, draws=draws))
    ours = sampled_spearman(cosine, gold, drawn)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    theirs = peer(cosine, gold, image, draws)
    their_seconds = time.perf_counter() - began
    print(
        f"cxc-promcse/1, {draws} draws: numpy and scipy {their_seconds:.2f} s, bench {seconds:.2f} "
        f"s, ratio {their_seconds / seconds:.1f}"
    )
    print(f"largest difference of a draw: {np.abs(ours - theirs).max():.1e}")
    began = time.perf_counter()
    drawn = rank_gold(gold, draws_without_replacement(caption, draws=draws))
    sampled_spearman(cosine, gold, drawn)
    print(f"cxc-parekh/1, {draws} draws: bench {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
