"""Orders of printed rows against ours: against scipy, and what counts as a pair."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.references import ReferenceResult, Row, results, rows
from bench.run.reproduce.verdicts import Order, RowPair, orders
from bench.score.metrics.correlation import mean_ranks
from bench.show.pages.reproduced import places


def order(*pairs: tuple[float, float | None]) -> Order:
    return Order(
        "p",
        "1",
        "unsupervised",
        "b",
        "Avg.",
        "spearman",
        tuple(RowPair(f"row {i}", a, b, "run") for i, (a, b) in enumerate(pairs)),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_rank_correlation_is_scipys_with_ties_too(seed: int) -> None:
    draw = random.Random(seed)
    a, b = ([float(draw.randint(0, 6)) for _ in range(9)] for _ in range(2))
    assert order(*zip(a, b, strict=True)).correlation == pytest.approx(
        spearmanr(a, b).statistic, abs=1e-12
    )


def test_equal_values_share_the_mean_of_their_ranks() -> None:
    assert mean_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    assert order((1.0, 1.0), (1.0, 2.0), (1.0, 3.0)).correlation is None


def test_pairs_count_where_both_sides_tell_the_two_apart() -> None:
    assert order((3, 30), (2, 20), (1, 10)).pairs == (3, 3)
    assert order((3, 10), (2, 20), (1, 30)).pairs == (0, 3)
    assert order((3, 10), (2, 10), (2, 30)).pairs == (0, 1)  # one run twice, one print twice
    assert (
        order((3, 30), (2, None), (1, 10)).pairs == (1, 1)
        and order((3, 30), (2, None), (1, 10)).correlation is None
    )
    assert order((3, 5), (2, 5), (1, 5)).correlation is None


def test_a_table_gives_an_order_for_each_setting_backbone_and_head() -> None:
    printed = [row for row in rows(results(paper="promcse")) if row.first.table == "5"]
    found = {
        (one.setting, one.metric): one
        for one in orders(printed, lambda cell, row: (cell.value, "x"), ("alignment", "uniformity"))
    }
    assert {metric for _, metric in found} == {"alignment", "uniformity"}
    for one in found.values():
        assert [place.printed for place in one.places] == sorted(
            place.printed for place in one.places
        )  # the best first: the lowest
        assert one.pairs[0] == one.pairs[1]
    whole = orders(
        [row for row in rows(results(paper="promcse")) if row.first.table == "1"],
        lambda cell, row: (-cell.value, "x"),
        (),
    )
    assert {one.task for one in whole} == {"Avg."} and all(one.pairs[0] == 0 for one in whole)
    assert whole[0].places[0].printed == max(place.printed for place in whole[0].places)


def test_a_row_alone_has_no_order() -> None:
    cell: ReferenceResult = results(paper="promcse")[0]
    assert orders([Row((replace(cell, task="Avg."),))], lambda cell, row: (1.0, "x"), ()) == []


def test_places_are_shared_by_equals() -> None:
    assert places([70.0, 75.0, None, 70.0, 60.0]) == ["2-3", "1", "", "2-3", "4"]
    assert places([0.2, 0.1], lowest_first=True) == ["2", "1"]
