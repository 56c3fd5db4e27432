"""Gains over the baseline, and printed gains: counted again from the numbers, and each sentence where it does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from boards_for_figures import board_of, fill
from scipy.stats import norm

from bench.board.board import Board
from bench.compare.statistics.table import Against, Row, Table
from bench.references import PrintedGain, printed_gains, results
from bench.show.figures.gains import (
    Gain,
    Noise,
    fences,
    gain_words,
    gains,
    paper_gains,
    paper_words,
    row_gains,
)
from bench.show.figures.points import Group, table_groups


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return board_of(fill(tmp_path_factory.mktemp("gains") / "runs"), statistics="yes")


@pytest.fixture(scope="module")
def group(made: Board) -> Group:
    return next(one for one in table_groups(made) if "sts" in one.tables)


def with_values(table: Table, values: dict[str, Sequence[float]]) -> Table:
    """The table with these numbers of single runs in its last column, and their means."""

    def changed(row: Row) -> Row:
        cell = row.cells[-1]
        assert cell is not None
        own = tuple(values[row.method])
        return replace(
            row, cells=(*row.cells[:-1], replace(cell, values=own, mean=float(np.mean(own))))
        )

    return replace(table, rows=tuple(changed(row) for row in table.rows if row.method in values))


def with_table(group: Group, table: Table) -> Group:
    return replace(group, tables={**group.tables, "sts": replace(group.tables["sts"], table=table)})


def test_a_line_for_every_row_but_the_baseline_with_the_numbers_of_the_table(group: Group) -> None:
    table, figure = group.tables["sts"].table, gains(group)
    assert figure is not None
    cells = {row.method: row.cells[-1] for row in table.rows if not row.is_baseline}
    assert {row[0] for row in figure.data} == set(cells) and len(cells) == 3
    for row in figure.data:
        cell = cells[str(row[0])]
        assert (
            cell is not None
            and cell.against is not None
            and cell.against.ci_low is not None
            and cell.against.ci_high is not None
        )
        assert row[1:5] == (
            round(cell.against.difference, 4),
            round(cell.against.ci_low, 4),
            round(cell.against.ci_high, 4),
            cell.against.verdict,
        )
    for verdict in ("better", "worse", "inconclusive"):
        count = sum(row[4] == verdict for row in figure.data)
        assert (f"{count} {verdict}" in figure.caption) == (count > 0)
    assert figure.suites == ("sts",)


@pytest.mark.parametrize(
    ("own", "base", "otherwise"),
    [
        ((61, 62, 63), (58, 59, 60), 0),
        ((58, 59, 60), (61, 62, 63), 0),  # worse in every pair: no pair says otherwise
        ((61, 62, 57), (58, 59, 60), 3),
        ((60, 61, 62), (58, 59, 61), 2),  # 60 less 61, and 61 less 61, which shows nothing
        ((60, 60), (60, 60), 0),
        ((59, 61), (59, 61), 2),  # the means are equal, two pairs are not
        ((61,), (60, 62, 63), 1),
    ],
)
def test_pairs_of_single_runs_with_the_other_sign(
    group: Group, own: Sequence[float], base: Sequence[float], otherwise: int
) -> None:
    table = with_values(group.tables["sts"].table, {"promcse": own, "simcse": base})
    (gain,) = row_gains(table)
    assert (gain.pairs, gain.otherwise) == (len(own) * len(base), otherwise)
    sign = np.sign(np.mean(own) - np.mean(base))
    assert otherwise == int(
        (np.sign(np.subtract.outer(np.array(own, float), np.array(base, float))) != sign).sum()
    )


def told(*verdicts: str, otherwise: Sequence[int] = ()) -> str:
    counts = otherwise or [0] * len(verdicts)
    found = [
        Gain(f"m{i}", Against(difference=1.0, verdict=verdict), 9, count)
        for i, (verdict, count) in enumerate(zip(verdicts, counts, strict=True))
    ]
    return gain_words(found, "simcse")


def test_the_caption_counts_verdicts_and_pairs() -> None:
    assert told("better", "worse", "worse", "inconclusive").startswith(
        "Of 4 rows compared with simcse: 1 better (m0), 2 worse, 1 inconclusive. One run"
    )
    assert "better" not in told("worse") and "inconclusive" not in told("worse")
    assert told("worse").endswith("in 0 of 9 pairs.")
    assert told("worse", "better", otherwise=(0, 0)).endswith("in 0 of 18 pairs.")
    assert told("worse", "better", otherwise=(1, 4)).endswith(
        "in 5 of 18 pairs; most often of m1 (4 of 9)."
    )
    assert told("worse", "better", otherwise=(4, 4)).endswith(
        "in 8 of 18 pairs; most often of m0 (4 of 9) and m1 (4 of 9)."
    )


def test_rows_far_from_the_others_do_not_hide_what_these_differ_by(group: Group) -> None:
    """Their gain is written at the edge; its number is in the data; a row that is not far is drawn to scale."""
    table = group.tables["sts"].table
    row = next(row for row in table.rows if not row.is_baseline)

    def of(*differences: float) -> Table:
        rows = [next(row for row in table.rows if row.is_baseline)]
        for i, difference in enumerate(differences):
            cell = row.cells[-1]
            assert cell is not None
            against = Against(
                difference=difference,
                ci_low=difference - 1,
                ci_high=difference + 1,
                verdict="worse",
            )
            rows.append(
                replace(
                    row, method=f"m{i}", cells=(*row.cells[:-1], replace(cell, against=against))
                )
            )
        return replace(table, rows=tuple(rows))

    close = [-1.0, -1.5, -2.0, -2.5, -3.0]
    near, far = (gains(with_table(group, of(*close, *more))) for more in ([-5.5], [-14.58, 21.0]))
    assert (
        near is not None
        and "edge" not in near.caption
        and "←" not in near.svg
        and near.svg.count("m5: -5.50") == 1
    )
    assert (
        far is not None
        and "Of 2 rows far from the others the gain is written at the edge." in far.caption
    )
    assert (
        "← -14.58" in far.svg
        and "+21.00 →" in far.svg
        and "m5: " not in far.svg
        and far.svg.count("m4: -3.00") == 1
    )
    assert {row[0]: row[1] for row in far.data}["m5"] == -14.58
    assert fences([1.0, 1.1, 1.2], 0.5) == (pytest.approx(-0.45), pytest.approx(2.65))


def test_there_is_none_without_verdicts_or_without_a_baseline(
    made: Board, group: Group, tmp_path: Path
) -> None:
    table = group.tables["sts"].table
    assert gains(with_table(group, replace(table, tested=None))) is None
    assert (
        gains(
            with_table(
                group, replace(table, rows=tuple(row for row in table.rows if not row.is_baseline))
            )
        )
        is None
    )
    untested = table_groups(board_of(fill(tmp_path / "runs", suites=("sts",))))[0]
    assert gains(untested) is None and paper_gains(untested) is None


def test_fifteen_gains_of_single_runs_are_printed() -> None:
    """Those of the papers' tables, typed here from the tables: method's average, SimCSE's average of the same paper."""
    printed, spreads = printed_gains()
    focal = [(77.32, 75.68), (78.72, 77.90), (77.58, 76.07), (78.74, 77.99)]
    promcse = [
        (value, 81.53)
        for value in (81.94, 81.81, 82.13, 81.56, 81.73, 81.75, 81.87, 81.91, 81.71, 81.48, 81.36)
    ]
    assert (
        sorted((one.first.value, one.base) for one in printed) == sorted(focal + promcse)
        and len(printed) == 15
    )
    assert [one.gain for one in printed] == sorted((one.gain for one in printed), reverse=True)
    assert sorted(sd for _, sd in spreads) == [0.25, 0.32, 0.33, 0.49, 0.77, 0.88]
    # which the caption says of them
    rows = [
        one
        for one in results(paper="conpvp", task="Avg.", metric="spearman")
        if one.std is not None
    ]
    assert {words for words, _ in spreads} == {f"conpvp:4 {one.label}" for one in rows}
    assert {(one.setting, one.backbone) for one in rows} == {("unsupervised", "roberta-large")}
    assert all(
        one.first.own_result and not one.first.runs.startswith(("mean", "best")) for one in printed
    )
    assert {row.paper for row in results() if row.paper == "simcse"} and not any(
        one.first.paper == "simcse" for one in printed
    )


@pytest.mark.parametrize("sd", [0.001, 0.05, 0.25, 0.62, 3.0])
def test_what_two_single_runs_can_show(sd: float) -> None:
    """Simulated: of two runs that differ by nothing, one in twenty pairs is farther apart."""
    noise = Noise("x", "a spread", sd)
    assert noise.least == pytest.approx(norm.ppf(0.975) * np.sqrt(2) * sd, rel=1e-6)
    pairs = np.random.default_rng(0).normal(0, sd, (200_000, 2))
    assert np.mean(np.abs(pairs[:, 0] - pairs[:, 1]) > noise.least) == pytest.approx(
        0.05, abs=0.003
    )


@pytest.mark.parametrize(("sd", "above"), [(0.01, 13), (0.25, 4), (0.55, 1), (0.62, 0)])
def test_the_caption_counts_the_gains_above_our_spread(group: Group, sd: float, above: int) -> None:
    table = group.tables["sts"].table
    rows = tuple(
        replace(row, cells=(*row.cells[:-1], cell and replace(cell, sd=sd)))
        for row in table.rows
        for cell in row.cells[-1:]
    )
    figure = paper_gains(with_table(group, replace(table, rows=rows)))
    assert figure is not None
    assert (
        f"with our spread over seeds ({sd:.2f}) {1.959964 * np.sqrt(2) * sd:.2f}, and {above} {'is' if above == 1 else 'are'} above"
        in figure.caption
    )
    assert sum(row[5] == "yes" for row in figure.data) == above
    assert (
        "0.25) 0.69, and 4 are above" in figure.caption
        and "0.88) 2.44, and 0 are above" in figure.caption
    )


def test_names_of_points_are_told_apart(group: Group) -> None:
    figure = paper_gains(group)
    assert figure is not None and figure.svg.count("focal-infonce, roberta-base") >= 1
    one, other = printed_gains()[0][:2]
    assert (
        isinstance(one, PrintedGain)
        and one.label == other.label == "focal-infonce"
        and one.where != other.where
    )
    assert paper_words([one], [Noise("a", "b", 0.1)]).startswith("1 gain of single runs")
