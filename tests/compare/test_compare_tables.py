"""Tables with statistics: computed apart from the code under test, drawn in every form, and refused
if they must be.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from factories import record, sts_scores
from msgspec import structs
from predicted_runs import N, cosines, family, gold_of, sts_run
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from bench import show
from bench.base.errors import BenchError
from bench.compare.answer import comparison_of, table_answer, verdict_of
from bench.compare.formatting import row_name
from bench.compare.judge import FEW_SEEDS, NO_PREDICTIONS
from bench.compare.statistics.table import Footnote, Row, Table
from bench.compare.statistics.table import Tested as OneFamily
from bench.compare.tables import TableOptions, make_tables
from bench.records import Code, Run, RunRecord, RunsFolder
from bench.records.record import HowExecuted, RecipeValue
from bench.records.value_sources import OWN, PAPER, TUNED
from bench.score.metrics.correlation import spearman
from bench.show.tables.forms import format_tables, print_score_tables

NOISES = {"sure": 0.1, "good": 0.32, "alike": 0.33, "weak": 1.5}
SEEDS = (1, 2, 3, 4, 5)


def of(runs: Path, records: list[RunRecord]) -> list[Run]:
    return [Run(one, runs / one.run_id) for one in records]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("compared")
    return of(folder, family(folder, NOISES, seeds=SEEDS))


@pytest.fixture(scope="module")
def table(runs: list[Run]) -> Table:
    (made,) = make_tables(runs, TableOptions(baseline="good", cost=True))
    return made


def row(table: Table, name: str) -> Row:
    return next(one for one in table.rows if one.name == name)


def printed(tables: tuple[Table, ...], width: int, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_score_tables(tables, console=Console(file=out, width=width))
    out.flush()
    return out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


# --- the numbers ---


def test_clear_differences_are_found_and_chance_is_not(table: Table) -> None:
    assert {one.name: (verdict_of(one), one.may_be_best) for one in table.rows} == {
        "sure": ("better", True),
        "good": (None, False),
        "alike": ("inconclusive", False),
        "weak": ("worse", False),
    }
    assert table.tested == OneFamily(rows=4, comparisons=3, ci_level=1 - 0.05 / 2)
    assert all(
        cell is None or cell.against is None or cell.against.verdict is None
        for one in table.rows
        for cell in one.cells[:-1]
    ), "single tasks are not tested"


def test_no_verdict_contradicts_the_interval_beside_it(table: Table) -> None:
    for one in table.rows:
        if (found := comparison_of(one)) is None or table.tested is None:
            continue
        assert None not in (found.ci_low, found.ci_high, found.p, found.se, found.mde)
        said = "inconclusive"
        if found.ci_low > 0:  # type: ignore[operator]
            said = "better"
        if found.ci_high < 0:  # type: ignore[operator]
            said = "worse"
        assert found.verdict == said and found.ci_level == table.tested.ci_level
        assert found.ci_low < found.difference < found.ci_high  # type: ignore[operator]
        assert (found.p < 1 - found.ci_level) == (said != "inconclusive")  # type: ignore[operator]
        assert 2 < found.mde / found.se < 5  # type: ignore[operator]


def test_a_difference_agrees_with_a_plain_bootstrap(runs: list[Run]) -> None:
    """``--task STS13`` by loops: items and the three shared seeds drawn anew each time."""
    task = "STS13"
    (table,) = make_tables(runs, TableOptions(baseline="good", tasks=(task,)))
    rng, gold = np.random.default_rng(5), gold_of(task)
    a, b = (
        [cosines(name, seed, task, NOISES[name]) for seed in SEEDS] for name in ("sure", "good")
    )

    def mean(items: np.ndarray, seeds: np.ndarray | range) -> float:
        return float(
            np.mean(
                [
                    spearman(a[s][items], gold[items]) - spearman(b[s][items], gold[items])
                    for s in seeds
                ]
            )
        )

    drawn = [mean(rng.integers(0, N, N), rng.integers(0, 5, 5)) for _ in range(400)]
    against = comparison_of(row(table, "sure"))
    assert against is not None and against.se is not None and table.columns == (task,)
    assert against.difference == pytest.approx(mean(np.arange(N), range(5)), abs=1e-9)
    assert against.se == pytest.approx(np.std(drawn), rel=0.4)


# --- where there is nothing to go by ---


def test_without_predictions_nothing_is_claimed() -> None:
    made = [
        record(name, seed, base=base) for name, base in (("a", 70), ("b", 75)) for seed in (1, 2)
    ]
    runs = nowhere(*made)
    (plain,) = make_tables(runs, TableOptions(baseline="a"))
    assert plain.tested is None and not any(one.may_be_best for one in plain.rows)
    cells = [cell for one in plain.rows for cell in one.cells]
    assert {cell.spread.covers for cell in cells if cell and cell.spread} == {"seeds"}
    against = [cell.against for cell in cells if cell and cell.against]
    assert all(one.verdict is None for one in against)
    assert table_answer(plain).endswith(
        "differences were not tested: no predictions of every task."
    )


GOLD = gold_of("STS14")
SPOILT: dict[str, tuple[Any, str]] = {
    "missing": (None, "no predictions"),
    "cut": (b"PK\x03\x04 cut", "is not a predictions file"),
    "other gold": ({"prediction": np.zeros(N), "gold": GOLD[::-1]}, "differ in the items' gold"),
    "NaN": ({"prediction": np.full(N, np.nan), "gold": GOLD}, "NaN"),
    "other score": (
        {"prediction": cosines("x", 9, "STS14", 5.0), "gold": GOLD},
        "give another score",
    ),
    "text": ({"prediction": np.array(["a"] * N), "gold": GOLD}, "does not hold numbers"),
    "half": ({"gold": GOLD}, "no prediction"),
}


@pytest.mark.parametrize(("content", "said"), SPOILT.values(), ids=SPOILT)
def test_unusable_predictions_cost_their_cell_its_statistics(
    tmp_path: Path, content: Any, said: str
) -> None:
    made = family(tmp_path, {"one": 0.2, "two": 1.0}, seeds=SEEDS, tasks=("STS13", "STS14"))
    path = RunsFolder(tmp_path).predictions_path(made[0].run_id, "STS14", "tokenised")
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        np.savez(path, **content)
    whole, spoilt = (
        make_tables(of(tmp_path, made), TableOptions(baseline="two", tasks=(task,)))[0]
        for task in ("STS13", "STS14")
    )
    assert verdict_of(row(whole, "one")) == "better"
    cell = row(spoilt, "one").cells[0]
    assert cell is not None and cell.spread is not None and cell.spread.covers == "seeds"
    assert spoilt.tested is None and row(spoilt, "one").untested == NO_PREDICTIONS
    (note,) = [note for note in spoilt.notes if note.startswith("without statistics: one on STS14")]
    assert said in note


def test_one_untested_row_does_not_hide_the_others(tmp_path: Path) -> None:
    """Rows of fewer than three seeds and rows without predictions are not judged; the others are,
    and what is not random needs no seeds.
    """
    made = [
        *family(tmp_path, {"five": 0.4, "more": 0.4}, seeds=SEEDS),
        *family(tmp_path, {"two": 0.01}, seeds=(1, 2)),
        sts_run(tmp_path, "one", None, 0.1),
        record("old", 1, base=50),
    ]
    (table,) = make_tables(of(tmp_path, made), TableOptions(baseline="five"))
    assert {one.name: (verdict_of(one), one.untested) for one in table.rows} == {
        "two": (None, FEW_SEEDS),
        "one": ("better", ""),
        "more": ("inconclusive", ""),
        "five": (None, ""),
        "old": (None, NO_PREDICTIONS),
    }
    assert [one.name for one in table.rows if one.may_be_best] == ["one"]
    said = table_answer(table)
    assert "one is the best of 3 rows" in said and said.endswith(
        f"Not tested: two ({FEW_SEEDS}); old ({NO_PREDICTIONS})."
    )
    lines = [line for line in printed((table,), 120).splitlines() if line.startswith("old ")]
    assert len(lines) == 1 and re.search(r"\d +-$", lines[0])
    few = [one for one in made if one.seed in (1, 2)]
    (alone,) = make_tables(of(tmp_path, few), TableOptions(baseline="two"))
    assert alone.tested is None
    assert {row(alone, name).untested for name in ("five", "more", "two")} == {FEW_SEEDS}


def test_a_baseline_of_two_seeds_gives_no_signs(tmp_path: Path) -> None:
    """The other rows are then compared with one another alone."""
    made = [
        *family(tmp_path, {"good": 0.1, "bad": 1.5}, seeds=SEEDS),
        *family(tmp_path, {"simcse": 0.4}, seeds=SEEDS[:2]),
    ]
    (table,) = make_tables(of(tmp_path, made), TableOptions())
    assert table.baseline == "simcse" and [verdict_of(one) for one in table.rows] == [None] * 3
    assert [one.name for one in table.rows if one.may_be_best] == ["good"]
    assert row(table, "simcse").untested == FEW_SEEDS and table.tested is not None
    assert (table.tested.rows, table.tested.comparisons) == (2, 1)


def test_equal_predictions_are_not_compared(tmp_path: Path) -> None:
    """Two names of one method: not tested against each other, and marked alike."""
    made = family(tmp_path, {"simcse": 0.3, "weak": 1.5}, seeds=SEEDS)
    made = [
        structs.replace(
            one,
            scores=tuple(
                structs.replace(score, predictions_sha256=f"{one.run_id} {score.task}")
                for score in one.scores
            ),
        )
        for one in made
    ]
    for one in made[: len(SEEDS)]:
        again = structs.replace(one, method="twin", run_id=f"twin-{one.seed}")
        shutil.copytree(tmp_path / one.run_id, tmp_path / again.run_id)
        RunsFolder(tmp_path).write(again)
        made.append(again)
    (table,) = make_tables(of(tmp_path, made), TableOptions())
    twin = row(table, "twin")
    assert twin.untested == "same predictions as simcse" and verdict_of(twin) is None
    assert twin.may_be_best and row(table, "simcse").may_be_best
    assert verdict_of(row(table, "weak")) == "worse" and table.tested == OneFamily(
        rows=2, comparisons=1, ci_level=0.95
    )


# --- drawn ---


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_the_terminal(table: Table, width: int, snapshot: SnapshotAssertion) -> None:
    text = printed((table,), width)
    assert max(map(len, text.splitlines())) <= width
    words = re.sub("[▲▼±]", " ", text).split()
    for one in table.rows:
        shown = [cell for cell in one.cells if cell is not None and f"{cell.mean:.2f}" in words]
        assert one.cells[-1] in shown and (width < 120 or len(shown) == len(one.cells))
    if width == 80:
        assert text == snapshot


def test_json_follows_its_schema(table: Table, runs: list[Run]) -> None:
    file = Path(show.__file__).parent / "tables" / "schema" / "compare-3.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    contents = [
        json.loads(format_tables(tables, "json"))
        for tables in ((table,), make_tables(runs, TableOptions()))
    ]
    for content in contents:
        assert [error.message for error in check.iter_errors(content)] == []
    broken = json.loads(format_tables((table,), "json"))
    del broken["tables"][0]["rows"][0]["cells"]["STS12"]["spread"]
    assert not check.is_valid(broken)


# --- what must not be compared ---


def with_origin(one: RunRecord, **fields: Any) -> RunRecord:
    return structs.replace(one, provenance=structs.replace(one.provenance, **fields))


def nowhere(*records: RunRecord) -> list[Run]:
    return of(Path("nowhere"), list(records))


def test_a_footnote_for_each_difference_and_a_mark_at_the_row() -> None:
    a, b, b2, c = (record(name, seed) for name, seed in (("a", 1), ("b", 1), ("b", 2), ("c", 1)))
    b2 = with_origin(b2, packages={**b2.provenance.packages, "torch": "2.6.0"})
    c = with_origin(c, data={**c.provenance.data, "STS14": "9" * 64})
    runs = nowhere(a, b, b2, c)
    (table,) = make_tables(runs, TableOptions())
    assert table.footnotes == (
        Footnote("torch", "2.6.0", "b (seed 2)", "2.13.0"),
        Footnote("data of STS14", "99999999", "c", "dddddddd"),
    )
    assert {one.name: one.footnotes for one in table.rows} == {"a": (), "b": (0,), "c": (1,)}
    with pytest.raises(BenchError, match=r"2 differences .* torch: 2\.6\.0 in b .* and 1 more"):
        make_tables(runs, TableOptions(strict=True))
    assert make_tables(runs[:2], TableOptions(strict=True))[0].footnotes == ()


def test_runs_of_another_budget_than_most_have_a_table_of_their_own() -> None:
    def trained(name: str, budget: str | None, seed: int, backbone: str = "builtin") -> RunRecord:
        return record(name, seed, backbone=backbone, recipe={"budget": budget})

    runs = nowhere(
        *(trained(name, "100steps", seed) for name in ("simcse", "other") for seed in (1, 2)),
        *(trained("simcse", "1000steps", seed) for seed in (1, 2)),
        trained("other", "20m", 1),
        trained("as-the-recipe-says", None, 1),
        trained("simcse", "1000steps", 1, "bert-base-uncased"),  # all that this backbone has
        record("cls", None, setting="none"),
    )
    tables = make_tables(runs, TableOptions())
    assert {
        (table.backbone, table.budget): {one.name for one in table.rows} for table in tables
    } == {
        ("builtin", ""): {"simcse", "other", "as-the-recipe-says", "cls"},
        ("builtin", "1000steps"): {"simcse"},
        ("builtin", "20m"): {"other"},
        ("bert-base-uncased", ""): {"simcse"},
    }
    (long,) = (table for table in tables if table.budget == "1000steps")
    assert "unsupervised, 1000steps" in table_answer(long)
    (together,) = make_tables(runs, TableOptions(together=True))
    assert len(together.rows) == 7 and together.budget == ""


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        ({"a": TUNED, "b": TUNED, "c": OWN}, {"a", "b", "c recipe"}),  # the exception is named
        ({"a": TUNED, "b": OWN, "c": OWN}, {"a tuned: 6 trials", "b", "c"}),
        ({"a": TUNED, "b": OWN}, {"a tuned: 6 trials", "b"}),
        ({"a": OWN, "b": PAPER}, {"a", "b"}),
        ({"a": TUNED, "b": TUNED}, {"a", "b"}),
    ],
)
def test_where_values_come_from_stands_beside_the_exceptions(
    kinds: dict[str, str], named: set[str]
) -> None:
    sources = {TUNED: "search s, 6 trials", OWN: "--set", PAPER: "SimCSE repo README.md"}

    def made(name: str, kind: str) -> RunRecord:
        one = record(name, 1)
        value = RecipeValue(value=1e-5, source=sources[kind])
        search = {"name": "s", "trials": 6, "select_on": "STS-B dev"} if kind == TUNED else {}
        origin = structs.replace(one.provenance, execution=HowExecuted(search=search))
        recipe = {**one.recipe, "learning_rate": value}
        return structs.replace(one, recipe=recipe, provenance=origin)

    (table,) = make_tables(nowhere(*(made(*item) for item in kinds.items())), TableOptions())
    assert {row_name(one, table) for one in table.rows} == named


def test_strict_refuses_runs_of_the_methods_older_code() -> None:
    made = [record(name, seed) for name in ("a", "b") for seed in (1, 2)]
    older = with_origin(made[0], plugin=Code(**{"sha256": "0" * 64}))
    runs = nowhere(older, *made[1:])
    (table,) = make_tables(runs, TableOptions())
    (footnote,) = table.footnotes
    assert f"bench compare {older.run_id}" in footnote.value
    assert [(one.name, one.footnotes, one.seeds) for one in sorted(table.rows, key=str)] == (
        [("a", (0,), (2,)), ("b", (), (1, 2))]
    )
    with pytest.raises(BenchError, match=older.run_id):
        make_tables(runs, TableOptions(strict=True))
    assert make_tables(runs[1:], TableOptions(strict=True))


# --- beside the papers ---


def test_the_printed_value_stands_beside_ours(tmp_path: Path) -> None:
    made = family(tmp_path, {"simcse": 0.3, "mine": 0.3}, seeds=(1,), backbone="bert-base-uncased")
    (table,) = make_tables(of(tmp_path, made), TableOptions(with_paper=True))
    values = (68.40, 82.41, 74.38, 80.91, 78.56, 76.85, 72.23, 76.25)  # Gao et al. 2021, table 5
    for value, cell in zip(values, row(table, "simcse").cells, strict=True):
        assert cell is not None and cell.printed is not None and cell.printed.value == value
        assert cell.printed.difference == pytest.approx(round(cell.mean, 2) - value, abs=1e-9)
        assert cell.printed.inside is None and cell.printed.reason.startswith("one seed")
    assert all(cell is None or cell.printed is None for cell in row(table, "mine").cells)
    for form in ("md", "latex", "csv", "json"):
        assert "82.41" in format_tables((table,), form)


def test_a_printed_value_of_another_protocol_is_not_ours() -> None:
    other = tuple(structs.replace(s, protocol="other/9") for s in sts_scores())
    for seed, scores in ((1, other), (2, sts_scores(text="raw"))):
        one = record("simcse", seed, backbone="bert-base-uncased", scores=scores)
        (table,) = make_tables(nowhere(one), TableOptions(with_paper=True))
        assert all(cell is None or cell.printed is None for one in table.rows for cell in one.cells)


@pytest.mark.parametrize(("share", "marked"), [(0.099, False), (0.1, True), (1.0, True)])
def test_a_row_that_trained_on_a_tenth_of_the_scored_sentences_is_marked(
    tmp_path: Path, share: float, marked: bool
) -> None:
    """Even where all rows of the table did; ``--strict`` refuses it."""
    seen = {"suite": "sts", "text": "tokenised", "sentences": 1000, "near": 0, "rows": 9}
    tasks = [
        seen | {"task": "STS12", "exact": round(1000 * share)},
        seen | {"task": "STS13", "exact": 99},
        seen | {"task": "Other", "suite": "cxc", "exact": 1000},
    ]
    one = record("cosent", setting="supervised")
    corpus = structs.replace(one.provenance.corpus, overlap={"rule": "overlap/1", "tasks": tasks})
    one = structs.replace(one, provenance=structs.replace(one.provenance, corpus=corpus))
    runs = of(tmp_path, [one])
    (table,) = make_tables(runs, TableOptions())
    wanted = "training text: a tenth or more of the sentences of STS12 in cosent"
    assert [str(note) for note in table.footnotes] == [wanted] * marked
    assert table.rows[0].footnotes == (0,) * marked
    if marked:
        with pytest.raises(BenchError, match="--strict: 1 difference"):
            make_tables(runs, TableOptions(strict=True))
