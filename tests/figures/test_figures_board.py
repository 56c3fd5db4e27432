"""Figures of made boards: which there are, that they show the tables' own numbers, and that captions say what the data say."""

from __future__ import annotations

import csv
import io
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from boards_for_figures import METHODS, board_of, fill
from made_runs import hostile_run, made_run, made_runs
from msgspec import structs
from scipy.stats import kendalltau

from bench.board.board import Board, BoardTable
from bench.compare.statistics.table import SENDER
from bench.publish.readme import markdown_page
from bench.runs import RunsFolder
from bench.show.figures import Figure, figures
from bench.show.figures.ablation import PAPERS, swept
from bench.show.figures.cost import front
from bench.show.figures.frequent import ends_words
from bench.show.figures.points import one_point_per_method, points, table_groups
from bench.show.figures.spectrum import Spectrum, count_agreeing, shift, spectrum_words

NS = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return board_of(fill(tmp_path_factory.mktemp("figures") / "runs"))


@pytest.fixture(scope="module")
def found(made: Board) -> dict[str, Figure]:
    return {one.kind: one for one in figures(made)}


def column(figure: Figure, name: str) -> dict[str, float | str]:
    return {str(row[0]): row[figure.header.index(name)] for row in figure.data}


def table_of(board: Board, suite: str) -> BoardTable:
    return next(one for one in board.tables if one.table.suite == suite)


@pytest.mark.slow
def test_there_are_those_that_the_records_have_data_for(
    found: dict[str, Figure], made: Board
) -> None:
    assert list(found) == [
        "cost",
        "learning",
        "geometry",
        "spectrum",
        "parameters",
        "frequent-words",
        "few-shot",
    ]
    assert figures(made) == figures(made)
    sts_only = replace(made, tables=tuple(one for one in made.tables if one.table.suite == "sts"))
    assert [one.kind for one in figures(sts_only)] == ["cost", "learning", "parameters"]
    assert figures(replace(made, tables=())) == ()


@pytest.mark.parametrize(
    "kind", ["cost", "geometry", "spectrum", "parameters", "frequent-words", "few-shot"]
)
def test_each_is_whole(found: dict[str, Figure], kind: str) -> None:
    one = found[kind]
    root = ET.fromstring(one.svg)
    assert (
        one.name == f"{kind}-unsupervised-builtin"
        and one.title
        and one.alt.endswith((".", "others"))
        and one.caption.endswith(".")
    )
    assert all(len(row) == len(one.header) for row in one.data)
    assert [row[0] for row in csv.reader(io.StringIO(one.csv))][1:] == [row[0] for row in one.data]
    tips = " ".join(element.text or "" for element in root.iter(f"{NS}title"))
    assert {"simcse", "promcse"} <= {str(row[0]) for row in one.data} and (
        kind == "few-shot" or "simcse" in tips
    )
    assert len(one.svg) < 60_000


def test_cost_shows_the_tables_numbers(found: dict[str, Figure], made: Board) -> None:
    table = table_of(made, "sts").table
    averages = {row.method: cell.mean for row in table.rows if (cell := row.cells[-1])}
    assert column(found["cost"], "STS Avg.") == pytest.approx(averages, abs=1e-3)
    seconds = column(found["cost"], "training time of one run")
    assert seconds == {"cls": 0.0} | {
        method: pytest.approx(cost + 1.5) for method, (_, _, cost) in METHODS.items()
    }
    assert column(found["parameters"], "trained parameters") == {"cls": 0.0} | {
        m: float(trained) for m, (_, trained, _) in METHODS.items()
    }
    on = {name for name, yes in column(found["cost"], "on the front").items() if yes == "yes"}
    cheaper = {
        name: [
            other
            for other in averages
            if seconds[other] <= seconds[name] and averages[other] > averages[name]
        ]
        for name in averages
    }  # type: ignore[operator]
    assert on == {name for name, better in cheaper.items() if not better}
    assert f"{len(on)} methods of 4 are on the front" in found["cost"].caption


def test_no_cost_figure_where_all_cost_the_same_or_nothing_is_known(made: Board) -> None:
    def with_cost(change: float | None) -> Board:
        one = table_of(made, "sts")
        rows = tuple(
            replace(
                row,
                setting="unsupervised",
                cost=row.cost and replace(row.cost, train_seconds=change),
            )
            for row in one.table.rows
        )
        return replace(made, tables=(replace(one, table=replace(one.table, rows=rows)),))

    assert "cost" not in {one.kind for one in figures(with_cost(100.0))}
    assert "cost" not in {one.kind for one in figures(with_cost(None))}


def test_the_front_is_what_nothing_is_cheaper_and_better_than() -> None:
    import numpy as np

    rng = np.random.default_rng(3)
    for _ in range(20):
        pairs = [(float(c), float(q)) for c, q in rng.integers(0, 8, (12, 2))]
        dominated = {p for p in pairs for o in pairs if o != p and o[0] <= p[0] and o[1] >= p[1]}
        assert {pairs[i] for i in front(pairs)} == set(pairs) - dominated
    assert front([(1.0, 5.0), (1.0, 5.0), (2.0, 5.0)]) == [0, 1]


def test_geometry_has_the_average_in_brackets(found: dict[str, Figure], made: Board) -> None:
    one = found["geometry"]
    rows = {row.method: row for row in table_of(made, "sts").table.rows}
    texts = {element.text for element in ET.fromstring(one.svg).iter(f"{NS}text")}
    for method, row in rows.items():
        assert row.cells[-1] is not None and f"{method} ({row.cells[-1].mean:.1f})" in texts
    lowest = min(column(one, "uniformity").items(), key=lambda pair: float(pair[1]))[0]
    assert lowest in one.caption.partition(".")[0]


def test_frequent_words_says_who_loses_most(found: dict[str, Figure], made: Board) -> None:
    one = found["frequent-words"]
    record = next(
        run.record for run in made.runs if run.record.method == "simcse" and run.record.seed == 1
    )
    both = [run.record for run in made.runs if run.record.method == "simcse"]
    detail = [
        (r.score("geometry", "alignment") or record.scores[0]).detail["without_frequent_words"]
        for r in both
    ]
    expected = [fmean(d[k]["spearman"] for d in detail) for k in range(len(detail[0]))]
    assert next(row for row in one.data if row[0] == "simcse")[1:] == pytest.approx(
        expected, abs=1e-3
    )
    gain = {str(row[0]): float(row[-1]) - float(row[1]) for row in one.data}
    assert (
        ends_words(
            *(
                (name, gain[name])
                for name in (max(gain, key=gain.__getitem__), min(gain, key=gain.__getitem__))
            ),
            4,
        )
        in one.caption
    )
    assert not one.paper_figure and "ConPVP's Figure 5 takes out tokens" in one.caption


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (
            (21.09, 3.69),
            "a gains 21.09 points, the most of 8 methods, and b gains 3.69 points, the least",
        ),
        (
            (3.69, -1.2),
            "a gains 3.69 points, the most of 8 methods, and b loses 1.20 points, the most",
        ),
        (
            (-1.2, -21.09),
            "b loses 21.09 points, the most of 8 methods, and a loses 1.20 points, the least",
        ),
        (
            (3.69, 0.001),
            "a gains 3.69 points, the most of 8 methods, and b changes by 0.00 points, the least",
        ),
        (
            (-0.001, -3.69),
            "b loses 3.69 points, the most of 8 methods, and a changes by 0.00 points, the least",
        ),
        ((2.001, 1.999), "all 8 methods gain 2.00 points"),
        ((0.001, -0.001), "all 8 methods change by 0.00 points"),
    ],
)
def test_the_most_and_the_least_whichever_way_methods_move(
    gains: tuple[float, float], words: str
) -> None:
    assert ends_words(("a", gains[0]), ("b", gains[1]), 8) == words


def test_few_shot_pools_draws_and_seeds(found: dict[str, Figure], made: Board) -> None:
    one = found["few-shot"]
    both = [run.record for run in made.runs if run.record.method == "promcse"]
    draws = [
        value
        for r in both
        for value in (r.score("fewshot", "MR-16") or r.scores[0]).detail["draws"]
    ]
    row = next(row for row in one.data if row[:2] == ("promcse", "MR-16"))
    assert row[2:] == (
        pytest.approx(fmean(draws), abs=1e-3),
        pytest.approx(min(draws), abs=1e-3),
        pytest.approx(max(draws), abs=1e-3),
        20.0,
    )
    average = {str(r[0]): float(r[2]) for r in one.data if r[1] == "Avg."}
    assert one.caption.startswith(
        f"{max(average, key=lambda name: average[name])} is highest on average"
    )


def test_shift_pairs_rows_by_their_runs(made: Board) -> None:
    one = table_of(made, "sts")
    column_of_cxc = replace(
        one.table,
        suite="cxc",
        protocol="cxc-promcse/1",
        columns=("CxC-STS",),
        rows=tuple(replace(row, cells=(row.cells[0],)) for row in reversed(one.table.rows)),
    )
    both = replace(made, tables=(one, replace(one, anchor="cxc", table=column_of_cxc)))
    figure = shift(table_groups(both)[0])
    assert figure is not None and figure.paper_figure == "PromCSE, Figure 1"
    first = {row.method: row.cells[0].mean for row in one.table.rows if row.cells[0]}
    assert column(figure, "CxC-STS") == pytest.approx(first, abs=1e-3)
    assert "6 pairs of methods" in figure.caption
    assert [f.kind for f in figures(both)][:2] == ["cost", "shift"]


def test_agreeing_pairs_are_kendalls() -> None:
    import numpy as np

    values = [(float(a), float(b)) for a, b in np.random.default_rng(5).normal(size=(9, 2))]
    alike, pairs = count_agreeing(values)
    assert (2 * alike - pairs) / pairs == pytest.approx(
        kendalltau(*zip(*values, strict=True)).statistic
    )


def test_intervals_become_bars_and_are_named(tmp_path: Path) -> None:
    board = board_of(fill(tmp_path / "runs", suites=("sts",)), statistics="yes")
    one = next(figure for figure in figures(board) if figure.kind == "cost")
    spread = {
        row.method: cell.spread
        for row in table_of(board, "sts").table.rows
        if (cell := row.cells[-1])
    }
    low = column(one, "low")
    assert all(
        found and low[method] == pytest.approx(found.low, abs=1e-3)
        for method, found in spread.items()
    )
    assert "Bars: 95 % interval" in one.caption


def test_printed_against_reproduced(tmp_path: Path) -> None:
    made_runs(
        tmp_path / "runs",
        {"simcse": 0.62, "promcse": 0.55},
        seeds=(1, 2),
        backbone="bert-base-uncased",
    )
    board = board_of(tmp_path / "runs")
    one = next(figure for figure in figures(board) if figure.kind == "papers")
    cells = {
        (row.method, task): cell
        for row in table_of(board, "sts").table.rows
        for task, cell in zip(table_of(board, "sts").table.columns, row.cells, strict=True)
    }
    assert len(one.data) == 14 and "Avg." not in column(one, "task").values()
    for row in one.data:
        cell = cells[str(row[0]), str(row[2])]
        assert (
            cell
            and cell.printed
            and row[4] == cell.printed.value
            and row[5] == pytest.approx(cell.mean, abs=1e-3)
        )
    far = max(one.data, key=lambda row: abs(float(row[8])))
    assert f"Farthest apart: {far[0]} on {far[2]}" in one.caption


def test_a_recipe_value_that_runs_differ_in_has_a_curve(tmp_path: Path) -> None:
    runs = fill(tmp_path / "runs", suites=("sts",))
    for length in (1, 4, 16):
        made_run(runs, "promcse", 1, noise=0.5 + 0.3 / length, recipe={"prompt_length": length})
    for temperature in (
        0.01,
        0.1,
    ):  # with the others' own value: three points, but for another method two
        made_run(runs, "simcse", 1, noise=0.9, recipe={"other": temperature})
    board = board_of(runs)
    curves = [one for one in figures(board) if one.kind == "ablation"]
    assert [one.name for one in curves] == ["ablation-promcse-prompt-length-unsupervised-builtin"]
    one = curves[0]
    assert [row[1] for row in one.data] == [
        1.0,
        4.0,
        16.0,
    ] and one.paper_figure == "PromCSE, Figure 2"
    averages = [float(row[2]) for row in one.data]
    assert (
        f"highest at prompt_length = {one.data[averages.index(max(averages))][1]:g}" in one.caption
    )
    assert f"moves by {max(averages) - min(averages):.2f} points" in one.caption
    cost = next(figure for figure in figures(board) if figure.kind == "cost")
    assert [row[0] for row in cost.data].count(
        "promcse"
    ) == 1  # the row of most seeds alone stands for the method
    assert not any("prompt_length" in str(row[0]) for row in cost.data)


def test_what_a_paper_prints_stands_beside_a_curve_of_its_backbone_alone(tmp_path: Path) -> None:
    for backbone in ("bert-base-uncased", "builtin"):
        runs = tmp_path / backbone
        for length in (1, 4, 16):
            made_run(
                runs, "promcse", 1, noise=0.5, backbone=backbone, recipe={"prompt_length": length}
            )
        for margin in (0.0, 0.1, 0.4):
            made_run(
                runs,
                "simcse",
                1,
                variant="eh",
                setting="supervised",
                backbone=backbone,
                recipe={"eh_margin": margin},
            )
        curves = {
            one.title.split(":")[0]: one
            for one in figures(board_of(runs))
            if one.kind == "ablation"
        }
        for name, values in (
            ("promcse", ("1: STS Avg. printed 76.50", "16: STS Avg. printed 78.49")),
            (
                "simcse+eh",
                (
                    "0: STS Avg. printed 81.56",
                    "0.15: STS Avg. printed 81.87",
                    "0.4: STS Avg. printed 81.36",
                ),
            ),
        ):
            here = backbone == "bert-base-uncased"
            assert all((value in curves[name].svg) is here for value in values), (name, backbone)
            assert ("Grey, not joined: what papers print." in curves[name].caption) is here


def test_a_series_that_only_another_suite_scored_has_its_curve_too(tmp_path: Path) -> None:
    runs = fill(tmp_path / "runs", suites=("transfer",))
    for temperature in (0.01, 0.05, 0.1):
        made_run(
            runs,
            "simcse",
            1,
            noise=0.5 + temperature,
            recipe={"temperature": temperature},
            suites=("transfer",),
        )
    (one,) = [one for one in figures(board_of(runs)) if one.kind == "ablation"]
    assert (
        one.name == "ablation-simcse-temperature-transfer-unsupervised-builtin"
        and one.suites == ("transfer",)
    )
    assert (
        one.header == ("method", "temperature", "transfer Avg.", "low", "high")
        and one.paper_figure == ""
    )
    assert [row[1] for row in one.data] == [0.01, 0.05, 0.1] and "transfer Avg." in one.alt


def test_the_papers_figures_are_of_recipe_keys_that_methods_have() -> None:
    from bench.run.plugins import discover

    registry = discover()
    assert set(PAPERS) <= {key for name in registry for key in registry[name].cls.defaults}


def test_a_submitted_row_stands_beside_ours(made: Board) -> None:
    table = table_of(made, "sts").table
    ours = next(point for point in points(table, "Avg.") if point.row.method == "promcse")
    sent = [
        replace(
            ours,
            row=replace(
                ours.row, runs=tuple(f"{who}{k}" for k in range(9)), differs=((SENDER, who),)
            ),
        )
        for who in ("1", "2", "3")
    ]
    assert [point.row.runs for point in one_point_per_method([ours, *sent], table)] == [
        point.row.runs for point in (ours, *sent)
    ]
    assert swept([ours, *sent]) == []


def test_a_series_changes_one_value_at_a_time(made: Board) -> None:
    base = points(table_of(made, "sts").table, "Avg.")[0]

    def at(**values: str) -> object:
        return replace(
            base, row=replace(base.row, differs=tuple(sorted(values.items())), runs=(str(values),))
        )

    grid = [at(a=a, b=b) for a in ("1", "2", "3") for b in ("x", "y")] + [
        at(a="4", b="y"),
        at(a="nan", b="y"),
        at(a="true", b="y"),
    ]
    found = swept(grid)  # type: ignore[arg-type]
    assert [(one.key, one.values) for one in found] == [("a", (1.0, 2.0, 3.0, 4.0))]
    assert all(dict(point.row.differs)["b"] == "y" for point in found[0].points)


def test_foreign_text_and_odd_details_do_no_harm(tmp_path: Path) -> None:
    runs = fill(tmp_path / "runs", suites=("sts", "geometry"))
    for seed in (1, 2):
        hostile_run(runs, seed=seed, suites=("sts", "geometry"))
        hostile_run(
            runs, f"$\\frac{{{seed}}}{{2}}$" + "M" * 300, seed=seed, suites=("sts", "geometry")
        )
    board = board_of(runs)
    odd = []
    for run in board.runs:
        scores = tuple(
            structs.replace(
                s,
                detail={
                    "without_frequent_words": [{"k": "x", "spearman": None}, 3],
                    "draws": "none",
                },
            )
            for s in run.record.scores
        )
        odd.append(replace(run, record=structs.replace(run.record, scores=scores)))
    for one in (*figures(board), *figures(replace(board, runs=tuple(odd)))):
        root = ET.fromstring(one.svg)
        assert {element.tag.removeprefix(NS) for element in root.iter()} <= {
            "svg",
            "g",
            "path",
            "text",
            "use",
            "defs",
            "title",
            "desc",
            "style",
        }
        assert not any(
            key.lower().startswith("on") for element in root.iter() for key in element.attrib
        )
        assert all(
            re.fullmatch("#b[0-9a-f]{6}-[0-9]+", value)
            for element in root.iter()
            if (value := element.get("href"))
        )
        assert re.fullmatch(r"[a-z0-9-]{1,90}", one.name)


@pytest.mark.slow
def test_very_many_methods_are_dots(made: Board) -> None:
    one = table_of(made, "sts")
    base = one.table.rows[0]
    assert base.cost is not None
    rows = tuple(
        replace(
            base,
            method=f"m{k}",
            runs=(f"r{k}",),
            cells=(*base.cells[:-1], base.cells[-1] and replace(base.cells[-1], mean=90 - k / 10)),
            cost=replace(base.cost, train_seconds=1000.0 - 3 * k),
        )
        for k in range(200)
    )
    figure = next(
        f
        for f in figures(replace(made, tables=(replace(one, table=replace(one.table, rows=rows)),)))
        if f.kind == "cost"
    )
    assert len(figure.data) == 200 and len(figure.svg) < 120_000
    texts = [element.text for element in ET.fromstring(figure.svg).iter(f"{NS}text")]
    assert "m0" in texts
    assert (
        f"{200 - sum(bool(re.fullmatch(r'm[0-9]+', text or '')) for text in texts)} points have no room"
        in figure.caption
    )


def test_what_tuning_gains_stands_beside_what_methods_differ_by(tmp_path: Path) -> None:
    """Drawn where two methods are there tuned and not; the rows say what they are, on the page and in its Markdown, and are marked."""
    runs, store = fill(tmp_path / "runs", suites=("sts",)), RunsFolder(tmp_path / "runs")
    assert "tuning" not in {one.kind for one in figures(board_of(runs))}
    for method, noise in (("simcse", 0.4), ("promcse", 0.5)):
        made_run(runs, method, 1, noise=noise, recipe={"learning_rate": 1e-4}, suites=("sts",))
        (tuned,) = [
            one
            for one in store.records()[0]
            if one.method == method and one.recipe["learning_rate"].value == 1e-4
        ]
        search = {
            "name": "s",
            "trials": 12,
            "seeds": [901],
            "select_on": "STS-B dev",
            "seconds": 480.0,
        }
        store.write(
            structs.replace(
                tuned, provenance=structs.replace(tuned.provenance, execution={"search": search})
            )
        )
    board = board_of(runs)
    table = table_of(board, "sts").table
    means = {(row.method, row.values): row.cells[-1].mean for row in table.rows if row.cells[-1]}
    one = next(figure for figure in figures(board) if figure.kind == "tuning")
    for method, before, after in one.data:
        assert before == pytest.approx(means[str(method), "paper"], abs=1e-3)
        assert after == pytest.approx(means[str(method), "tuned: 12 trials"], abs=1e-3)
    gains = [float(after) - float(before) for _, before, after in one.data]
    assert f"Tuning moves a method by {sum(gains) / 2:+.2f} on average" in one.caption
    assert any(
        note.startswith("values: tuned: 12 trials in promcse, simcse; paper")
        or note.startswith("values: tuned: 12 trials in simcse, promcse; paper")
        for note in table.footnotes
    )
    page = markdown_page(board)
    assert "| tuned: 12 trials |" in page and "| paper |" in page and "+8m00s/12" in page


def test_a_spectrum_is_that_of_the_stored_values(found: dict[str, Figure]) -> None:
    """linspace(9, 1, 16) to the power 1 + noise, as the made runs store them; the effective rank from its definition."""
    one = found["spectrum"]
    assert one.header == (
        "method",
        "effective rank",
        "value 1",
        "value 2",
        "value 4",
        "value 8",
        "value 16",
    )
    for name, (noise, _, _) in METHODS.items():
        values = np.linspace(9, 1, 16) ** (1 + noise)
        shares = values / values.sum()
        assert column(one, "effective rank")[name] == pytest.approx(
            math.exp(-sum(p * math.log(p) for p in shares)), abs=1e-3
        )
        for k in (1, 2, 4, 8, 16):
            assert column(one, f"value {k}")[name] == pytest.approx(
                values[k - 1] / values[0], abs=1e-5
            )
    assert (
        one.caption.startswith("The vectors of promptbert use most directions")
        and "those of cls fewest" in one.caption
    )


def test_what_is_said_of_spectra() -> None:
    flat, steep = Spectrum("flat", (1.0,) * 8, 8.0), Spectrum("steep", (1.0,) + (0.1,) * 7, 3.24)
    assert (
        spectrum_words([flat, steep])
        == "The vectors of flat use most directions, 8.0 of 8; those of steep fewest, 3.2."
    )
    assert (
        spectrum_words([flat, replace(flat, label="too")])
        == "All 2 methods use 8.0 of 8 directions."
    )
    tied = spectrum_words([flat, replace(flat, label="too"), steep])
    assert "of flat and too use most directions" in tied


def test_spectra_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    runs = fill(tmp_path / "runs", suites=("geometry",))
    for folder in runs.glob("*"):
        path = folder / "predictions" / "uniformity@tokenised.npz"
        path = path if path.exists() else next((folder / "predictions").glob("uniformity*"))
        with np.load(path) as stored:
            arrays = dict(stored)
        if folder.name.startswith("simcse"):
            path.unlink()
        elif folder.name.startswith("promcse"):
            np.savez(path, **(arrays | {"singular_values": np.array([np.nan, 1.0])}))
    (one,) = [figure for figure in figures(board_of(runs)) if figure.kind == "spectrum"]
    assert {row[0] for row in one.data} == {"promptbert", "cls"}
