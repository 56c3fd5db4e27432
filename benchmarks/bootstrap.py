"""Compare the difference of two runs on the seven STS sets with scipy's bootstrap.

    python benchmarks/bootstrap.py [--runs A B] [--draws 10000] [--peer-draws 100]

``--runs``: the folders of two runs with predictions. Without it, made-up predictions are used, with
the sets' own numbers of items and of distinct gold values. Both sides give the standard error of
the difference of the two correlations over items drawn again, every pair for itself: scipy by a
bootstrap with a Spearman statistic, we without drawing. scipy gets ``--peer-draws`` draws of each
set, and its time is multiplied by draws / peer-draws. Prints wall-clock and processor seconds, the
ratio and both standard errors. Exit code 1 if ours is not 20 times as fast or takes more than 5
seconds, or if the standard errors disagree.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

TARGET, SECONDS = 20.0, 5.0
SIZES = {
    "STS12": (3108, 117),
    "STS13": (1500, 42),
    "STS14": (3750, 60),
    "STS15": (3000, 64),
    "STS16": (1186, 6),
    "STS-B": (1379, 70),
    "SICK-R": (4927, 146),
}
"""Items and distinct gold values."""


def made_up() -> dict[str, tuple[Any, Any, Any]]:
    """Per set: two predictions and the gold values."""
    import numpy as np

    rng = np.random.default_rng(0)
    found = {}
    for task, (items, levels) in SIZES.items():
        gold = rng.integers(0, levels, items) * (5 / (levels - 1))
        common = gold + 2 * rng.normal(size=items)
        found[task] = (common + rng.normal(size=items), common + 1.2 * rng.normal(size=items), gold)
    return found


def stored(folders: list[Path]) -> dict[str, tuple[Any, Any, Any]]:
    import numpy as np

    found = {}
    for task in SIZES:
        with (
            np.load(folders[0] / "predictions" / f"{task}.npz") as a,
            np.load(folders[1] / "predictions" / f"{task}.npz") as b,
        ):
            if not np.array_equal(a["gold"], b["gold"]):
                sys.exit(f"{task}: the two runs have different gold values")
            found[task] = (a["prediction"], b["prediction"], a["gold"])
    return found


def peer(a: Any, b: Any, gold: Any, draws: int) -> float:
    """Standard error of the difference."""
    import numpy as np
    import scipy.stats

    def difference(x: Any, y: Any, z: Any) -> Any:
        return scipy.stats.spearmanr(x, z).statistic - scipy.stats.spearmanr(y, z).statistic

    found = scipy.stats.bootstrap(
        (a, b, gold),
        difference,
        paired=True,
        vectorized=False,
        n_resamples=draws,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return 100 * float(found.standard_error)


def ours(task: str, a: Any, b: Any, gold: Any) -> float:
    from bench.compare.statistics.column import column
    from bench.records.predictions import Predicted
    from bench.score.influence import move_spearman

    cells = [Predicted(task, "spearman", (None,), side[None], gold) for side in (a, b)]
    answers = [[(p, move_spearman(p))] for p in cells]
    return float(
        column(answers, [one[0][1].value_SR[0].tolist() for one in answers], [False, False])
        .minus(1)
        .error_P[0]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", nargs=2, type=Path, metavar="RUN")
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--peer-draws", type=int, default=100)
    args = parser.parse_args()
    import scipy.special  # noqa: F401  # neither side's import is clocked
    import scipy.stats  # noqa: F401
    from machine import describe_machine

    import bench.compare.statistics.column  # noqa: F401

    print(describe_machine())
    print(
        f"difference of two Spearman correlations, as by {args.draws:,} paired draws; seconds are "
        "wall-clock (processor)"
    )
    print(
        f"{'set':8}{'items':>7}{'scipy':>22}{'bench':>18}{'ratio':>16}   standard error: scipy, "
        "bench"
    )
    total, apart = [0.0] * 4, []
    for task, (a, b, gold) in (stored(args.runs) if args.runs else made_up()).items():
        scale = args.draws / args.peer_draws
        wall, cpu = time.perf_counter(), time.process_time()
        theirs = peer(a, b, gold, args.peer_draws)
        peer_wall, peer_cpu = (
            (time.perf_counter() - wall) * scale,
            (time.process_time() - cpu) * scale,
        )
        wall, cpu = time.perf_counter(), time.process_time()
        error = ours(task, a, b, gold)
        seconds = [peer_wall, peer_cpu, time.perf_counter() - wall, time.process_time() - cpu]
        total = [sum(pair) for pair in zip(total, seconds, strict=True)]
        if (
            abs(theirs / error - 1) > 4 / (2 * args.peer_draws) ** 0.5
        ):  # four standard errors of scipy's
            apart.append(task)
        print(_line(task, len(gold), *seconds), f"  {theirs:.3f}, {error:.3f}", flush=True)
    print(_line("all", "", *total))
    if apart:
        sys.exit(f"standard errors disagree: {', '.join(apart)}")
    if total[1] < TARGET * total[3] or total[2] > SECONDS:
        sys.exit(
            f"{total[1] / total[3]:.1f} times as fast, {total[2]:.1f} s; at least {TARGET} and at "
            f"most {SECONDS} s are the targets"
        )


def _line(
    name: str, items: int | str, wall: float, cpu: float, our_wall: float, our_cpu: float
) -> str:
    sides = f"{f'{wall:.1f} ({cpu:.1f})':>22}{f'{our_wall:.2f} ({our_cpu:.2f})':>18}"
    return f"{name:8}{items:>7}{sides}{f'{wall / our_wall:.1f} ({cpu / our_cpu:.1f})':>16}"


if __name__ == "__main__":
    main()
