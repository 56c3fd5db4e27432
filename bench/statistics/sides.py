"""From cells to the sides of a question: which seeds take part, and the mean over tasks.

Legend: S seeds, R repetitions, B draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.statistics.cells import Floats, Predicted
from bench.statistics.resampling import Resampled, resample_all
from bench.statistics.variation import Side

Seeds = tuple[int | None, ...]


def shared_seeds(cells: Sequence[Predicted]) -> Seeds:
    """Seeds that all tasks of one method have, in the first task's order. Raises ValueError where there are none."""
    found = tuple(seed for seed in cells[0].seeds if all(seed in p.seeds for p in cells)) if cells else ()
    if not found:
        raise ValueError(f"no seed is common to {', '.join(p.task for p in cells) or 'no tasks'}")
    return found


def paired_seeds(a: Seeds, b: Seeds) -> Seeds:
    """Seeds on which two methods are compared pair by pair: those of both, if there are two, or if neither has another."""
    both = tuple(seed for seed in a if seed in b and seed is not None)
    return both if len(both) > 1 or (len(both) == len(a) == len(b)) else ()


def side(sign: int, cells: Sequence[Predicted], seeds: Seeds, *, draws: int, seed: int) -> Side:
    """One method, mean over tasks."""
    found = [_of_seeds(p, one, seeds) for p, one in zip(cells, resample_all(cells, draws=draws, seed=seed), strict=True)]
    return Side(sign, tuple(one.value_SR for one in found), _mean([one.value_BS for one in found]), random=seeds != (None,))


def difference(a: Side, b: Side) -> Side:
    """A less B, seed by seed."""
    tables = tuple(mine - other for mine, other in zip(a.tables, b.tables, strict=True))
    return Side(1, tables, a.value_BS - b.value_BS, a.random or b.random)


def recorded(cells: Sequence[Predicted], seeds: Seeds) -> float | None:
    """Mean of the recorded values over seeds and tasks; None where some task has none."""
    values = [p.score_S[_rows(p, seeds)] for p in cells if p.score_S is not None]
    return float(np.mean(values)) if len(values) == len(cells) else None


def _of_seeds(p: Predicted, found: Resampled, seeds: Seeds) -> Resampled:
    rows = _rows(p, seeds)
    return Resampled(found.value_SR[rows], found.value_BS[:, rows])


def _rows(p: Predicted, seeds: Seeds) -> list[int]:
    return [p.seeds.index(seed) for seed in seeds]


def _mean(values: Sequence[Floats]) -> Floats:
    total = values[0].copy()
    for one in values[1:]:
        total += one
    total /= len(values)
    return total
