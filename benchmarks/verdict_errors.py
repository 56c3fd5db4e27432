"""Simulate how often a table like those of leaderboards/v6 is wrong, and how many seeds find a gain.

    python benchmarks/verdict_errors.py [--tables 4000] [--only TEXT]

A world draws tables: items vary as in version 6 (the covariance of its rows over items, shared
sentences counted), seeds as the world says. A table is wrong if it has a false sign, or no mark at
the best of its tested rows. Each world is judged twice: by the rule, which compares rows of one
text seed by seed, and without that pairing. The rule is in tests/support/made_tables.py, which
tests compare with bench. Ten minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
from made_tables import V1_ITEMS, World, simulate  # noqa: E402

HUNDRED = "STS, 100 steps"


@dataclass(frozen=True)
class Shape:
    """A table of leaderboards/v6."""

    means: tuple[float, ...]
    seeds: tuple[int, ...]  # seeds of each row; 0: nothing in it is random
    spreads: tuple[float, ...]  # standard deviations over seeds; 0 without seeds
    items: Any  # (K, K) covariance over items
    base: int

    def places(self, seeds: int) -> list[int]:
        """The rows with so many seeds."""
        return [i for i, n in enumerate(self.seeds) if n == seeds]


SHAPES = {
    "STS, 1,000 steps": ("sts", "unsupervised", "1000steps"),
    "CxC, 1,000 steps": ("cxc", "unsupervised", "1000steps"),
    "transfer, 1,000 steps": ("transfer", "unsupervised", "1000steps"),
    "clustering, 1,000 steps": ("clustering", "unsupervised", "1000steps"),
    HUNDRED: ("sts", "unsupervised", ""),
    "STS, supervised": ("sts", "supervised", ""),
}


@cache
def shapes() -> dict[str, Shape]:
    """The judged rows of tables of version 6."""
    from bench.board.publish.versions import version_folders
    from bench.compare.tables import make_tables
    from bench.records.run import Run
    from bench.records.store import RunsFolder

    newest = version_folders(ROOT / "leaderboards")[-1]
    store = RunsFolder(newest / "runs")
    runs = [Run(record, store.folder(record.run_id)) for record in store.records()[0]]
    tables = make_tables(runs)
    by_id = {run.record.run_id: run for run in runs}
    found = {}
    for name, place in SHAPES.items():
        table = next(one for one in tables if (one.suite, one.setting, one.budget) == place)
        judged = [row for row in table.rows if not row.stands]
        found[name] = _shape(replace(table, rows=tuple(judged)), by_id)
    return found


def _shape(table: Any, runs: Any) -> Shape:
    from bench.compare.judge import head_column

    head = head_column(table, runs)
    assert head is not None and len(head[1]) == len(table.rows)
    rows = [(row, row.cells[-1]) for row in table.rows]
    return Shape(
        means=tuple(cell.mean for _, cell in rows if cell),
        seeds=tuple(0 if row.seeds == (None,) else len(row.runs) for row, _ in rows),
        spreads=tuple((cell and cell.sd) or 0.0 for _, cell in rows),
        items=head[0].items[0],
        base=next(i for i, (row, _) in enumerate(rows) if row.is_baseline),
    )


def worlds_where_nothing_differs() -> dict[str, World]:
    """All rows are equal: each sign is false."""
    many = shapes()[HUNDRED]
    equal = World(many.seeds, many.items, 0.5, base=many.base)
    measured = replace(equal, seed_sd=many.spreads)
    threes = replace(equal, seeds=(3,) * len(many.seeds))
    fives = replace(equal, seeds=(5,) * len(many.seeds))
    small = World((3,) * 8, V1_ITEMS, base=1)
    three, six = many.places(3), many.places(6)
    base = (many.base,)

    def wide(world: World, places: Sequence[int], times: float) -> World:
        return replace(world, wide=tuple(places), times=times)

    return {
        "SD 0.5 each": equal,
        "log-SD of variances 0.6": replace(equal, unequal=0.6),
        "log-SD of variances 1.2": replace(equal, unequal=1.2),
        "log-SD of variances 1.8": replace(equal, unequal=1.8),
        "log-SD of variances 3.0": replace(equal, unequal=3.0),
        "measured SDs": measured,
        "measured SDs, permuted": replace(measured, permuted=True),
        "one 6-seed row 3x": wide(equal, six[:1], 3),
        "one 6-seed row 6x": wide(equal, six[:1], 6),
        "five 6-seed rows 6x": wide(equal, six[:5], 6),
        "baseline (10 seeds) 3x": wide(equal, base, 3),
        "baseline (10 seeds) 6x": wide(equal, base, 6),
        "one 3-seed row 3x": wide(equal, three[:1], 3),
        "one 3-seed row 4x": wide(equal, three[:1], 4),
        "one 3-seed row 6x": wide(equal, three[:1], 6),
        "three 3-seed rows 3x": wide(equal, three[:3], 3),
        "three 3-seed rows 4x": wide(equal, three[:3], 4),
        "three 3-seed rows 6x": wide(equal, three[:3], 6),
        "all six 3-seed rows 3x": wide(equal, three, 3),
        "all six 3-seed rows 6x": wide(equal, three, 6),
        "the 2-seed row 3x": wide(equal, many.places(2), 3),
        "the 2-seed row 4x": wide(equal, many.places(2), 4),
        "the 2-seed row 5x": wide(equal, many.places(2), 5),
        "all rows 3 seeds": threes,
        "all 3 seeds, log-SD 1.8": replace(threes, unequal=1.8),
        "all 3 seeds, baseline 3x": wide(threes, base, 3),
        "all 3 seeds, baseline 4x": wide(threes, base, 4),
        "all 3 seeds, baseline 6x": wide(threes, base, 6),
        "all 5 seeds, baseline 2x": wide(fives, base, 2),
        "all 5 seeds, baseline 3x": wide(fives, base, 3),
        "8 rows, 3 seeds, baseline 3x": wide(small, (1,), 3),
        "8 rows, 3 seeds, baseline 4x": wide(small, (1,), 4),
        "8 rows, 3 seeds, baseline 6x": wide(small, (1,), 6),
        "without a baseline": replace(equal, base=None),
        "without a baseline, log-SD 1.8": replace(equal, base=None, unequal=1.8),
        "without a baseline, all 3 seeds": replace(threes, base=None),
    }


def worlds_with_a_gain() -> dict[str, list[World]]:
    """A row is better than the baseline by so many points: how often it is found."""
    many = shapes()[HUNDRED]
    small = World((3,) * 8, V1_ITEMS, base=1, gaps="in turn")
    count = len(many.seeds)
    flat = World((3,) * count, many.items, 0.5, base=many.base, gaps="in turn", gain=2.0)
    new = [(3, 2), (4, 2), (5, 2), (6, 2), (10, 2), (3, 1), (5, 1), (3, 3), (5, 3)]
    return {f"as found, a new row of {n} seeds, +{gain}": _new_rows(n, gain) for n, gain in new} | {
        "19 equal rows of 3 seeds, +2": [flat],
        "the bar: 8 rows of 3 seeds, +3": [small],
        "the bar with 4 seeds": [replace(small, seeds=(4,) * 8)],
        "the bar with 5 seeds": [replace(small, seeds=(5,) * 8)],
    }


def _new_rows(seeds: int, gain: int) -> list[World]:
    """Make the table as found, plus one row of SD 0.5: one world for each row that it may resemble.

    In each world the items of the new row vary like those of another row.
    """
    many = shapes()[HUNDRED]
    gaps = [mean - many.means[many.base] for mean in many.means]
    worlds = []
    for like in range(len(many.seeds)):
        if like == many.base:
            continue
        again = [*range(len(many.seeds)), like]
        worlds.append(
            World(
                (*many.seeds, seeds),
                many.items[np.ix_(again, again)],
                (*many.spreads, 0.5),
                base=many.base,
                gaps=(*gaps, float(gain)),
            )
        )
    return worlds


def share_found(worlds: Sequence[World], tables: int, paired: bool = True) -> float:
    """How often the gain is found, in so many tables of all worlds together."""
    each = -(-tables // len(worlds))
    found = [_found(world, each, seed, paired) for seed, world in enumerate(worlds, 1)]
    return sum(found) / len(found)


def _found(world: World, tables: int, seed: int, paired: bool) -> float:
    """The same in one world: of each row that is better in turn, or of the row that was added."""
    if isinstance(world.gaps, str):
        return simulate(world, tables, seed, paired).power
    true, values = world.values(np.random.default_rng(seed), tables)
    better = int(np.flatnonzero(true[0] > 0)[-1])
    return float((world.said(values, paired).sign_TK[:, better] > 0).mean())


CORRELATIONS = (0.0, 0.4, 0.6, 0.99)
RULES = (True, False)
"""Pairs of rows are compared seed by seed, and not."""


def paired_shares(shape: Shape, spread: float | None, common: float, tables: int) -> list[float]:
    """The share of wrong tables if nothing differs, and of gains of a point that are found: each
    paired, then unpaired.

    Every row with randomness has five seeds, of which the same one correlates so much between two
    rows. Each of these rows is the better one in turn. ``spread``: over seeds; None: as measured.
    """
    seeds = tuple(5 if n else 0 for n in shape.seeds)
    null = World(seeds, shape.items, spread or shape.spreads, base=shape.base, common=common)
    better = [i for i, n in enumerate(seeds) if n and i != shape.base]
    each = -(-tables // len(better))
    found = [simulate(null, tables, paired=paired).wrong for paired in RULES]
    for paired in RULES:
        shares = []
        for place in better:
            gaps = tuple(float(i == place) for i in range(len(seeds)))
            shares.append(simulate(replace(null, gaps=gaps), each, place, paired).power)
        found.append(sum(shares) / len(shares))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=4000)
    parser.add_argument("--only", default="", help="worlds with this text in their name")
    args = parser.parse_args()
    heading = f"{'':44}{'rule':>10}{'unpaired':>10}"
    print(f"wrong tables, nothing differs\n{heading}")
    for name, world in worlds_where_nothing_differs().items():
        if args.only in name:
            _print(name, *(simulate(world, args.tables, paired=paired).wrong for paired in RULES))
    print(f"\ngains found\n{heading}")
    for name, worlds in worlds_with_a_gain().items():
        if args.only in name:
            _print(name, *(share_found(worlds, args.tables, paired) for paired in RULES))
    print("\nfive seeds of each row: wrong tables, nothing differs; gains of a point found")
    print(f"{'':44}{'wrong':>10}{'unpaired':>10}{'found':>10}{'unpaired':>10}")
    for name in SHAPES:
        shape = shapes()[name]
        for spread, words in ((0.5, "SD 0.5"), (None, "measured SDs")):
            for common in CORRELATIONS:
                if args.only in name:
                    shares = paired_shares(shape, spread, common, args.tables)
                    _print(f"{name}, {words}, r {common:.2f}", *shares)


def _print(name: str, *shares: float) -> None:
    print(f"{name:44}" + "".join(f"{share:10.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
