"""Each sentence of a caption on data in which it holds and on data in which it does not: ties, reversals, one method alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from boards_for_figures import board_of, fill
from made_runs import made_run, made_runs
from msgspec import structs

from bench.board.board import Board, BoardTable
from bench.compare.statistics.table import Printed
from bench.show.figures import Figure, figures
from bench.show.figures.points import gap_words


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return board_of(fill(tmp_path_factory.mktemp("captions") / "runs"))


def figure(board: Board, kind: str) -> Figure:
    return next(one for one in figures(board) if one.kind == kind)


def table_of(board: Board, suite: str) -> BoardTable:
    return next(one for one in board.tables if one.table.suite == suite)


def with_means(
    one: BoardTable,
    means: Mapping[str, float],
    column: int = -1,
    seconds: Mapping[str, float] | None = None,
) -> BoardTable:
    """The table with the rows of these methods alone, in this order, and their numbers in a column; and their training times,
    which are those of encoding 1,000 sentences, too."""
    rows = {row.method: row for row in one.table.rows}
    made = []
    for method, mean in means.items():
        cells = list(rows[method].cells)
        cell, cost = cells[column], rows[method].cost
        assert cell is not None and cost is not None
        cells[column] = replace(cell, mean=mean, values=(mean,))
        if seconds is not None:
            took = seconds[method]
            cost = replace(
                cost,
                train_seconds=took,
                encode_sentences_per_second=1000 / took,
                encode_condition="a machine",
            )
        made.append(replace(rows[method], cells=tuple(cells), setting="unsupervised", cost=cost))
    return replace(one, table=replace(one.table, rows=tuple(made)))


@pytest.mark.parametrize(
    ("means", "seconds", "words"),
    [
        (
            (60, 61, 62),
            (10, 20, 30),
            "3 methods of 3 are on the front, where every other method scores lower or costs more: simcse",
        ),
        (
            (62, 61, 60),
            (10, 20, 30),
            "1 method of 3 is on the front, where every other method scores lower or costs more: simcse (",
        ),
        (
            (60, 60, 59),
            (10, 20, 30),
            "1 method of 3 is on the front, where every other method scores lower or costs more: simcse (",
        ),
        (
            (60, 60, 59),
            (10, 10, 30),
            "2 methods of 3 are on the front, where every other method scores lower or costs more (equal ones share their place): simcse",
        ),
        (
            (60, 59, 62),
            (10, 10, 30),
            "2 methods of 3 are on the front, where every other method scores lower or costs more: simcse",
        ),
    ],
)
def test_cost(made: Board, means: Sequence[float], seconds: Sequence[float], words: str) -> None:
    names = ("simcse", "promcse", "promptbert")
    one = with_means(
        table_of(made, "sts"),
        dict(zip(names, means, strict=True)),
        seconds=dict(zip(names, map(float, seconds), strict=True)),
    )
    of = dict(zip(names, zip(means, seconds, strict=True), strict=True))
    for kind in ("cost", "encoding"):
        found = figure(replace(made, tables=(one,)), kind)
        assert found.caption.startswith(words)
        assert ("Measured by bench speed: a machine." in found.caption) == (kind == "encoding")
        on = {str(row[0]) for row in found.data if row[-1] == "yes"}
        assert on == {
            a
            for a in names
            if all(m < of[a][0] or s > of[a][1] or (m, s) == of[a] for m, s in of.values())
        }
        assert all(name in found.alt for name in on)


@pytest.mark.parametrize(
    ("sts", "cxc", "words"),
    [
        (
            (60, 61, 62),
            (50, 51, 52),
            "promptbert is highest on both; 3 of 3 pairs of methods are in the same order on both.",
        ),
        (
            (60, 61, 62),
            (52, 51, 50),
            "promptbert is highest on STS, simcse on CxC; 0 of 3 pairs of methods are in the same order on both.",
        ),
        (
            (60, 61, 62),
            (51, 50, 50.5),
            "promptbert is highest on STS, simcse on CxC; 1 of 3 pairs of methods is in the same order on both.",
        ),
        (
            (62.001, 61, 62.003),
            (50, 51, 51),
            "simcse and promptbert are highest on STS, promcse and promptbert on CxC; "
            "1 of 3 pairs of methods is in the same order on both.",
        ),
        (
            (62, 62, 62),
            (50, 50, 50),
            "simcse, promcse and promptbert are highest on both; 0 of 3 pairs of methods are in the same order on both.",
        ),
        ((62, 61), (50, 49), "simcse is highest on both."),
    ],
)
def test_shift(made: Board, sts: Sequence[float], cxc: Sequence[float], words: str) -> None:
    names = ("simcse", "promcse", "promptbert")
    one = with_means(table_of(made, "sts"), dict(zip(names, sts, strict=False)))
    other = with_means(table_of(made, "sts"), dict(zip(names, cxc, strict=False)), column=0)
    column = replace(
        other.table,
        suite="cxc",
        protocol="cxc-promcse/1",
        columns=("CxC-STS",),
        rows=tuple(replace(row, cells=row.cells[:1]) for row in other.table.rows),
    )
    found = figure(replace(made, tables=(one, replace(other, anchor="cxc", table=column))), "shift")
    assert found.caption.startswith(words + " ")


@pytest.mark.parametrize(
    ("uniformity", "alignment", "words"),
    [
        ((-2.0, -2.5), (0.2, 0.1), "promcse is lowest on both."),
        (
            (-2.5, -2.0),
            (0.2, 0.1),
            "simcse spreads sentences most evenly, promcse puts paraphrases closest together.",
        ),
        (
            (-2.5, -2.5001),
            (0.2, 0.1),
            "simcse and promcse spread sentences most evenly, promcse puts paraphrases closest together.",
        ),
        (
            (-2.5, -2.4),
            (0.1, 0.1),
            "simcse spreads sentences most evenly, simcse and promcse put paraphrases closest together.",
        ),
        ((-2.5, -2.5), (0.1, 0.1), "simcse and promcse are lowest on both."),
    ],
)
def test_geometry(
    made: Board, uniformity: Sequence[float], alignment: Sequence[float], words: str
) -> None:
    one = table_of(made, "geometry")
    for task, values in (("uniformity", uniformity), ("alignment", alignment)):
        one = with_means(
            one,
            dict(zip(("simcse", "promcse"), values, strict=True)),
            one.table.columns.index(task),
        )
    without = replace(made, tables=(one,))
    assert figure(without, "geometry").caption.startswith(words + " Lower is better")
    assert "In brackets" not in figure(without, "geometry").caption
    assert (
        "In brackets"
        in figure(replace(made, tables=(one, table_of(made, "sts"))), "geometry").caption
    )


@pytest.mark.parametrize(
    ("shifts", "words"),
    [
        (
            {"simcse": 30, "promcse": 20},
            "simcse is highest on average: 80.00, 10.00 above promcse, and above it in 20 of 20 draws.",
        ),
        (
            {"promcse": 30, "simcse": 20},
            "promcse is highest on average: 80.00, 10.00 above simcse, and above it in 20 of 20 draws.",
        ),
        ({"simcse": 30, "promcse": 30}, "promcse and simcse are highest on average: 80.00."),
    ],
)
def test_few_shot(made: Board, shifts: Mapping[str, float], words: str) -> None:
    def moved(board: Board, seeds: int = 2) -> Board:
        """Every draw of every task is 50 and what the method is shifted by; of the others 0."""
        runs = []
        for run in board.runs:
            value = 50.0 + shifts.get(run.record.method, -50)
            scores = tuple(
                structs.replace(
                    one, detail={**one.detail, "draws": [value] * len(one.detail["draws"])}
                )
                if one.suite == "fewshot" and "draws" in one.detail
                else one
                for one in run.record.scores
            )
            runs.append(replace(run, record=structs.replace(run.record, scores=scores)))
        return replace(board, runs=tuple(runs))

    found = figure(moved(made), "few-shot")
    assert found.caption.startswith(words)
    # cls has one run, the others two: their shapes are of different numbers of draws
    assert "distribution of accuracy over 10 to 20 draws and seeds" in found.caption
    table = table_of(made, "fewshot")
    trained = replace(
        table,
        table=replace(
            table.table, rows=tuple(row for row in table.table.rows if row.method != "cls")
        ),
    )
    assert (
        "over 20 draws and seeds"
        in figure(replace(moved(made), tables=(trained,)), "few-shot").caption
    )


@pytest.mark.parametrize(
    ("printed", "words", "without"),
    [
        (
            (0.0, None),
            "Every number is the printed one. On the line both are equal.",
            ("Inside", "Filled", "Farthest"),
        ),
        (
            (-2.0, None),
            "Farthest apart: simcse on STS13, printed {}, here {}. On the line both are equal.",
            ("Inside", "Filled"),
        ),
        (
            (-2.0, False),
            "Inside our interval: 13 of 14 printed numbers. Farthest apart: simcse on STS13, printed {}, here {}. On the line "
            "both are equal. Bars: our interval. Filled: the printed value lies outside of it.",
            ("Every",),
        ),
        (
            (2.0, True),
            "Inside our interval: 14 of 14 printed numbers. Farthest apart: simcse on STS13, printed {}, here {}. On the line "
            "both are equal. Bars: our interval.",
            ("Every", "Filled"),
        ),
    ],
)
def test_papers(
    tmp_path: Path, printed: tuple[float, bool | None], words: str, without: Sequence[str]
) -> None:
    made_runs(
        tmp_path / "runs",
        {"simcse": 0.62, "promcse": 0.55},
        seeds=(1, 2),
        backbone="bert-base-uncased",
    )
    board = board_of(tmp_path / "runs")
    one = table_of(board, "sts")
    by, inside = printed
    rows = []
    for row in one.table.rows:
        cells = []
        for task, cell in zip(one.table.columns, row.cells, strict=True):
            assert cell is not None
            less = by if (row.method, task) == ("simcse", "STS13") else 0.0
            told = inside if inside is None or (row.method, task) == ("simcse", "STS13") else True
            paper = Printed(
                value=cell.mean - less,
                std=None,
                source="simcse:5",
                own=True,
                difference=less,
                inside=told,
            )
            cells.append(
                replace(cell, printed=paper, spread=None if inside is None else cell.spread)
            )
        rows.append(replace(row, cells=tuple(cells)))
    found = figure(
        replace(board, tables=(replace(one, table=replace(one.table, rows=tuple(rows))),)), "papers"
    )
    row = next(row for row in found.data if row[0] == "simcse" and row[2] == "STS13")
    assert found.caption == words.format(f"{row[4]:.2f}", f"{row[5]:.2f}")
    assert not any(word in found.caption for word in without)


@pytest.mark.parametrize(
    ("means", "words"),
    [
        (
            (60, 62, 61),
            "promcse is highest at prompt_length = 4: 62.00; over 1 to 16 it moves by 2.00 points.",
        ),
        (
            (62, 60, 61),
            "promcse is highest at prompt_length = 1: 62.00; over 1 to 16 it moves by 2.00 points.",
        ),
        (
            (62, 60, 62.001),
            "promcse is highest at prompt_length = 1 and 16: 62.00; over 1 to 16 it moves by 2.00 points.",
        ),
        ((62, 62, 62), "promcse stays at 62.00 over 1 to 16 of prompt_length."),
    ],
)
def test_ablation(tmp_path: Path, means: Sequence[float], words: str) -> None:
    for length in (1, 4, 16):
        made_run(tmp_path / "runs", "promcse", 1, recipe={"prompt_length": length})
    board = board_of(tmp_path / "runs")
    one = table_of(board, "sts")
    wanted = dict(zip(("1", "4", "16"), means, strict=True))
    rows = []
    for row in one.table.rows:
        last = row.cells[-1]
        assert last is not None
        rows.append(
            replace(
                row,
                cells=(
                    *row.cells[:-1],
                    replace(last, mean=wanted[dict(row.differs)["prompt_length"]]),
                ),
            )
        )
    found = figure(
        replace(board, tables=(replace(one, table=replace(one.table, rows=tuple(rows))),)),
        "ablation",
    )
    assert found.caption.startswith(words + " Runs that are equal in all else, 1 seed each.")


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ((0.41, 0.12), "+0.41 in a and +0.12 in b."),
        ((0.12, 0.41), "+0.41 in b and +0.12 in a."),
        ((-0.2, 0.001), "0.00 in b and -0.20 in a."),
        ((0.3, 0.3), "+0.30 in a and +0.30 in b."),
    ],
)
def test_groups(gaps: tuple[float, float], words: str) -> None:
    assert (
        gap_words([("a", gaps[0]), ("b", gaps[1])])
        == f"Mean cosine of pairs with gold 5 less that of pairs with gold 0: {words}"
    )
