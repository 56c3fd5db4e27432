"""Values of methods under resampled items, made once per task and kept.

Legend: S seeds, N items, R repetitions of one run, B draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bench.statistics.accuracy_resampling import accuracies
from bench.statistics.cells import Floats, Predicted, same_items
from bench.statistics.correlation_resampling import Block, Gold, Run
from bench.statistics.draws import counts

DECIMALS = 9
"""Kept of a resampled value, in points: a product of matrices rounds by its shape, and equal predictions must stay equal."""
UNDEFINED = 0.1
"""Share of the draws that may leave one side constant; with more the data cannot be resampled."""


@dataclass(frozen=True)
class Resampled:
    """``value_SR``: the values x 100 on all items. ``value_BS``: under B draws of the items, mean over repetitions.

    A draw that leaves one side constant is NaN.
    """

    value_SR: Floats
    value_BS: Floats


_KEPT: WeakKeyDictionary[Predicted, dict[tuple[int, int], Resampled]] = WeakKeyDictionary()


def resample_all(cells: Iterable[Predicted], *, draws: int, seed: int) -> list[Resampled]:
    """Each cell under the draws of its task, in the given order. What was resampled before is not done again.

    Call it with a whole table before asking for intervals and comparisons: the draws of a task are then made once for all its
    methods. Results are kept as long as their ``Predicted`` lives. Raises ValueError where a value is undefined.
    """
    cells = list(cells)
    if draws < 1:
        raise ValueError(f"{draws} draws")
    groups: list[list[Predicted]] = []
    for p in dict.fromkeys(cells):
        if (draws, seed) in _KEPT.get(p, {}):
            continue
        for group in groups:
            if _same(group[0], p):
                group.append(p)
                break
        else:
            groups.append([p])
    for group in groups:
        for p, found in zip(group, _resample(group, draws, seed), strict=True):
            _KEPT.setdefault(p, {})[draws, seed] = found
    return [_KEPT[p][draws, seed] for p in cells]


def remember(p: Predicted, found: Resampled, *, draws: int, seed: int) -> None:
    """Take ``found``, which the same call made before and somebody kept, instead of resampling. Raises ValueError for other shapes."""
    seeds = len(p.seeds)
    if found.value_BS.shape != (draws, seeds) or found.value_SR.shape[:1] != (seeds,) or found.value_SR.ndim != 2:
        raise ValueError(f"{p.task}: values of shape {found.value_BS.shape} for {draws} draws of {seeds} seeds")
    _KEPT.setdefault(p, {})[draws, seed] = found


def _same(a: Predicted, b: Predicted) -> bool:
    try:
        same_items(a, b)
    except ValueError:
        return False
    return True


def _resample(cells: list[Predicted], draws: int, seed: int) -> list[Resampled]:
    """Of cells with the same items."""
    first = cells[0]
    if first.metric in ("spearman", "spearman-bootstrap"):
        gold = Gold(first.gold_N, query_weights(first.query_N) if first.metric == "spearman-bootstrap" else None)
        held = 2 * first.n_items + 32 * len(gold.bounds)  # bytes per draw: counts twice, four numbers per gold value
        blocks = list(_correlations(cells, gold, _blocks(first, gold.order, draws, seed, held)))
    else:
        held = 10 * first.n_items  # counts twice, once as float64
        blocks = list(accuracies(cells, _blocks(first, np.arange(first.n_items), draws, seed, held)))
    found = []
    for i, p in enumerate(cells):
        value_SR = blocks[0][i][0]
        value_BS = np.round(np.concatenate([block[i].mean(axis=2) for block in blocks])[1:], DECIMALS)
        if np.isnan(value_SR).any():
            raise ValueError(f"{p.task}: one side is constant: correlation is undefined, not zero")
        if np.isnan(value_BS).any(axis=1).mean() > UNDEFINED:
            raise ValueError(f"{p.task}: {p.n_units} items are too few, or too much alike, to be resampled")
        found.append(Resampled(np.round(value_SR, DECIMALS), value_BS))
    return found


def query_weights(query_N: NDArray[np.generic] | None) -> Floats:
    """(N,) so that every query is as heavy as the next, 1 on average: what a draw of one pair per query is on average."""
    _, index_N, size_Q = np.unique(np.asarray(query_N), return_inverse=True, return_counts=True)
    weight_N: Floats = len(index_N) / (len(size_Q) * size_Q[index_N.reshape(-1)])
    return weight_N


def _blocks(p: Predicted, order_N: NDArray[np.int64], draws: int, seed: int, bytes_per_draw: int) -> Iterator[NDArray[np.uint8]]:
    """(N, B) how often every item was drawn, rows in the given order: first one column for the data as they are, then the draws."""
    yield np.ones((p.n_items, 1), dtype=np.uint8)
    unit_N = np.arange(p.n_items) if p.units is None else np.unique(p.units, return_inverse=True)[1].reshape(-1)
    row_N = unit_N[order_N]
    for block_UB in counts(p.task, int(unit_N.max()) + 1, draws, seed=seed, bytes_per_draw=bytes_per_draw):
        yield block_UB[row_N]


def _correlations(cells: Sequence[Predicted], gold: Gold, blocks: Iterable[NDArray[np.uint8]]) -> Iterator[list[Floats]]:
    """Per block and cell: (B, S, 1)."""
    runs = [[Run(prediction_N, gold) for prediction_N in p.prediction_SN] for p in cells]
    for count_NB in blocks:
        block = Block(gold, count_NB)
        yield [np.stack([block.spearman(run) for run in each], axis=1)[:, :, None] for each in runs]
