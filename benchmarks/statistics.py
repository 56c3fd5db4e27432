"""Simulate how often a table like those of leaderboards/v5 is wrong, and how many seeds find a gain.

    python benchmarks/statistics.py [--tables 4000] [--only TEXT]

A world draws tables: items vary as in version 5 (the covariance of its rows over items, shared
sentences counted), seeds as the world says. A table is wrong if it has a false sign, or no mark at
the best of its tested rows. Each world is judged three times: by the present rule, which compares
rows of one text seed by seed; by that of v5, which did not (a row borrows two degrees of freedom at
most; rows with fewer than three seeds are not tested); and by that of v1 to v4. Next to the share
of the last is printed the one that an independent computation found (10,000 tables a world; "-" if
it has no value). The rule is in tests/support/made_tables.py, which tests compare with bench. Ten
minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "statistics":
    # a script of this folder looks here first, also for Python's own module of this name: return
    # that one
    import importlib.util
    import sysconfig

    _own = importlib.util.spec_from_file_location(
        __name__, Path(sysconfig.get_path("stdlib")) / "statistics.py"
    )
    assert _own is not None and _own.loader is not None
    sys.modules[__name__] = importlib.util.module_from_spec(_own)
    _own.loader.exec_module(sys.modules[__name__])
else:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    import numpy as np
    from made_tables import BEFORE, V1_ITEMS, V5, Rule, World, simulate


V4 = "STS, 100 steps"


@dataclass(frozen=True)
class Shape:
    """A table of leaderboards/v5."""

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
    V4: ("sts", "unsupervised", ""),
    "STS, supervised": ("sts", "supervised", ""),
}


@cache
def shapes() -> dict[str, Shape]:
    """The judged rows of tables of version 5."""
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
        if name == V4:
            found["v4"] = _shape(table, by_id)
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


def shape_of_v4() -> Shape:
    """All 27 rows of the table, which was version 4's; of some nothing was trained."""
    return shapes()["v4"]


@dataclass(frozen=True)
class Simulated:
    """A world, or several to average over, with the values of the review.

    The review gives the share of wrong tables, or of differences found.
    """

    name: str
    worlds: World | list[World]
    before: float | None  # by the rule of v1 to v4


def worlds_where_nothing_differs() -> list[Simulated]:
    """All rows are equal: each sign is false."""
    v4 = shape_of_v4()
    equal = World(v4.seeds, v4.items, 0.5, base=v4.base)
    measured = replace(equal, seed_sd=v4.spreads)
    threes = replace(equal, seeds=tuple(3 if n else 0 for n in v4.seeds))
    fives = replace(equal, seeds=tuple(5 if n else 0 for n in v4.seeds))
    small = World((3,) * 8, V1_ITEMS, base=1)
    three, six = v4.places(3), v4.places(6)
    base = (v4.base,)

    def wide(world: World, places: Sequence[int], times: float) -> World:
        return replace(world, wide=tuple(places), times=times)

    return [
        Simulated("SD 0.5 each", equal, 0.031),
        Simulated("log-SD of variances 0.6", replace(equal, unequal=0.6), 0.039),
        Simulated("log-SD of variances 1.2", replace(equal, unequal=1.2), 0.050),
        Simulated("log-SD of variances 1.8", replace(equal, unequal=1.8), 0.059),
        Simulated("log-SD of variances 3.0", replace(equal, unequal=3.0), 0.055),
        Simulated("measured SDs", measured, 0.039),
        Simulated("measured SDs, permuted", replace(measured, permuted=True), 0.057),
        Simulated("one 6-seed row 3x", wide(equal, six[:1], 3), 0.040),
        Simulated("one 6-seed row 6x", wide(equal, six[:1], 6), 0.018),
        Simulated("five 6-seed rows 6x", wide(equal, six[:5], 6), 0.055),
        Simulated("baseline (10 seeds) 3x", wide(equal, base, 3), 0.020),
        Simulated("baseline (10 seeds) 6x", wide(equal, base, 6), 0.012),
        Simulated("one 3-seed row 3x", wide(equal, three[:1], 3), 0.099),
        Simulated("one 3-seed row 4x", wide(equal, three[:1], 4), 0.108),
        Simulated("one 3-seed row 6x", wide(equal, three[:1], 6), 0.090),
        Simulated("three 3-seed rows 3x", wide(equal, three[:3], 3), 0.142),
        Simulated("three 3-seed rows 4x", wide(equal, three[:3], 4), 0.151),
        Simulated("three 3-seed rows 6x", wide(equal, three[:3], 6), 0.143),
        Simulated("all six 3-seed rows 3x", wide(equal, three, 3), 0.128),
        Simulated("all six 3-seed rows 6x", wide(equal, three, 6), 0.137),
        Simulated("the 2-seed row 3x", wide(equal, v4.places(2), 3), 0.141),
        Simulated("the 2-seed row 4x", wide(equal, v4.places(2), 4), 0.185),
        Simulated("the 2-seed row 5x", wide(equal, v4.places(2), 5), 0.205),
        Simulated("all rows 3 seeds", threes, 0.025),
        Simulated("all 3 seeds, log-SD 1.8", replace(threes, unequal=1.8), 0.067),
        Simulated("all 3 seeds, baseline 3x", wide(threes, base, 3), 0.132),
        Simulated("all 3 seeds, baseline 4x", wide(threes, base, 4), None),
        Simulated("all 3 seeds, baseline 6x", wide(threes, base, 6), 0.097),
        Simulated("all 5 seeds, baseline 2x", wide(fives, base, 2), 0.077),
        Simulated("all 5 seeds, baseline 3x", wide(fives, base, 3), 0.077),
        Simulated("8 rows, 3 seeds, baseline 3x", wide(small, (1,), 3), None),
        Simulated("8 rows, 3 seeds, baseline 4x", wide(small, (1,), 4), None),
        Simulated("8 rows, 3 seeds, baseline 6x", wide(small, (1,), 6), 0.095),
        Simulated("without a baseline", replace(equal, base=None), 0.027),
        Simulated("without a baseline, log-SD 1.8", replace(equal, base=None, unequal=1.8), 0.042),
        Simulated("without a baseline, all 3 seeds", replace(threes, base=None), 0.056),
    ]


def worlds_with_a_gain() -> list[Simulated]:
    """A row is better than the baseline by so many points: how often it is found."""
    v4 = shape_of_v4()
    small = World((3,) * 8, V1_ITEMS, base=1, gaps="in turn")
    count = len(v4.seeds)
    flat = World((3,) * count, v4.items, 0.5, base=v4.base, gaps="in turn", gain=2.0)
    return [
        *(
            Simulated(f"v4 as found, a new row of {n} seeds, +2", _new_rows(n, 2.0), before)
            for n, before in ((3, 0.66), (4, 0.86), (5, 0.90), (6, 0.92), (10, 0.92))
        ),
        *(
            Simulated(f"v4 as found, a new row of {n} seeds, +{gain}", _new_rows(n, gain), before)
            for n, gain, before in ((3, 1, 0.11), (5, 1, 0.32), (3, 3, 0.96), (5, 3, 0.99))
        ),
        Simulated("27 equal rows of 3 seeds, +2", flat, 0.73),
        Simulated("the bar: 8 rows of 3 seeds, +3", small, 0.90),
        Simulated("the bar with 4 seeds", replace(small, seeds=(4,) * 8), 0.940),
        Simulated("the bar with 5 seeds", replace(small, seeds=(5,) * 8), 0.953),
    ]


def _new_rows(seeds: int, gain: float) -> list[World]:
    """Make v4 as found, plus one more row of SD 0.5: one world for each row that it may resemble.

    In each world the items of the new row vary like those of another row.
    """
    v4 = shape_of_v4()
    gaps = [mean - v4.means[v4.base] for mean in v4.means]
    worlds = []
    for like in range(len(v4.seeds)):
        if like == v4.base:
            continue
        again = [*range(len(v4.seeds)), like]
        worlds.append(
            World(
                (*v4.seeds, seeds),
                v4.items[np.ix_(again, again)],
                (*v4.spreads, 0.5),
                base=v4.base,
                gaps=(*gaps, float(gain)),
            )
        )
    return worlds


def share_wrong(one: Simulated, tables: int, rule: Rule) -> float:
    assert isinstance(one.worlds, World)
    return simulate(one.worlds, tables, rule=rule).wrong


def share_found(one: Simulated, tables: int, rule: Rule) -> float:
    """How often the gain is found, in so many tables of all worlds together."""
    worlds = [one.worlds] if isinstance(one.worlds, World) else one.worlds
    each = -(-tables // len(worlds))
    found = [_found(world, each, seed, rule) for seed, world in enumerate(worlds, 1)]
    return sum(found) / len(found)


def _found(world: World, tables: int, seed: int, rule: Rule) -> float:
    """The same in one world: of each row that is better in turn, or of the row that was added."""
    if isinstance(world.gaps, str):
        return simulate(world, tables, seed, rule).power
    true, values = world.values(np.random.default_rng(seed), tables)
    better = int(np.flatnonzero(true[0] > 0)[-1])
    return float((world.said(values, rule).sign_TK[:, better] > 0).mean())


CORRELATIONS = (0.0, 0.4, 0.6, 0.99)


def paired_shares(shape: Shape, spread: float | None, common: float, tables: int) -> list[float]:
    """The share of wrong tables if nothing differs, and of gains of a point that are found: each by
    the present rule, then by that of v5.

    Every row with randomness has five seeds, of which the same one correlates so much between two
    rows. Each of these rows is the better one in turn. ``spread``: over seeds; None: as measured.
    """
    seeds = tuple(5 if n else 0 for n in shape.seeds)
    null = World(seeds, shape.items, spread or shape.spreads, base=shape.base, common=common)
    better = [i for i, n in enumerate(seeds) if n and i != shape.base]
    each = -(-tables // len(better))
    rules = (Rule(), V5)
    found = [simulate(null, tables, rule=rule).wrong for rule in rules]
    for rule in rules:
        shares = []
        for place in better:
            gaps = tuple(float(i == place) for i in range(len(seeds)))
            shares.append(simulate(replace(null, gaps=gaps), each, place, rule).power)
        found.append(sum(shares) / len(shares))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=4000)
    parser.add_argument("--only", default="", help="worlds with this text in their name")
    args = parser.parse_args()
    heading = f"{'':44}{'now':>8}{'v5':>8}{'before':>8}{'review':>8}"
    rules = (Rule(), V5, BEFORE)
    print(f"wrong tables, nothing differs\n{heading}")
    for one in worlds_where_nothing_differs():
        if args.only in one.name:
            _print(one.name, *(share_wrong(one, args.tables, rule) for rule in rules), one.before)
    print(f"\ngains found\n{heading}")
    for one in worlds_with_a_gain():
        if args.only in one.name:
            _print(one.name, *(share_found(one, args.tables, rule) for rule in rules), one.before)
    print("\nfive seeds of each row: wrong tables, nothing differs; gains of a point found")
    print(f"{'':44}{'wrong':>8}{'v5':>8}{'found':>8}{'v5':>8}")
    for name in SHAPES:
        shape = shapes()[name]
        for spread, words in ((0.5, "SD 0.5"), (None, "measured SDs")):
            for common in CORRELATIONS:
                if args.only in name:
                    shares = paired_shares(shape, spread, common, args.tables)
                    _print(f"{name}, {words}, r {common:.2f}", *shares)


def _print(name: str, *shares: float | None) -> None:
    texts = ["-" if share is None else f"{share:.3f}" for share in shares]
    print(f"{name:44}" + "".join(f"{text:>8}" for text in texts), flush=True)


if __name__ == "__main__":
    main()
