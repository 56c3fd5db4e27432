"""Tables with statistics: computed apart from the code under test, and drawn in every form."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from compared_runs import printed_text, row_named, runs_in
from predicted_runs import N, cosines, family, gold_of
from syrupy.assertion import SnapshotAssertion

from bench.compare import forms
from bench.compare.forms.forms import format_tables
from bench.compare.statistics.table import Table
from bench.compare.statistics.table import Tested as OneFamily
from bench.compare.tables import make_tables
from bench.compare.words.finding import comparison_of, verdict_of
from bench.records import Run
from bench.score.metrics.correlation import spearman

NOISES = {"sure": 0.1, "good": 0.32, "alike": 0.33, "weak": 1.5}
SEEDS = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("compared")
    return runs_in(folder, family(folder, NOISES, seeds=SEEDS))


@pytest.fixture(scope="module")
def table(runs: list[Run]) -> Table:
    (made,) = make_tables(runs, baseline="good", cost=True)
    return made


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


def test_a_difference_agrees_with_a_plain_bootstrap(runs: list[Run]) -> None:
    """``--task STS13`` by loops: items and the three shared seeds drawn anew each time."""
    task = "STS13"
    (table,) = make_tables(runs, baseline="good", tasks=(task,))
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
    against = comparison_of(row_named(table, "sure"))
    assert against is not None and against.se is not None and table.columns == (task,)
    assert against.difference == pytest.approx(mean(np.arange(N), range(5)), abs=1e-9)
    assert against.se == pytest.approx(np.std(drawn), rel=0.4)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_terminal(table: Table, width: int, snapshot: SnapshotAssertion) -> None:
    text = printed_text((table,), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.replace("±", " ").split()
    for one in table.rows:
        shown = [cell for cell in one.cells if cell is not None and f"{cell.mean:.2f}" in words]
        assert one.cells[-1] in shown and (width < 160 or len(shown) == len(one.cells))
    if width == 80:
        assert text == snapshot


def test_json_follows_its_schema(table: Table, runs: list[Run]) -> None:
    file = Path(forms.__file__).parent / "schema" / "compare-5.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    contents = [
        json.loads(format_tables(tables, "json")) for tables in ((table,), make_tables(runs))
    ]
    for content in contents:
        assert [error.message for error in check.iter_errors(content)] == []
    broken = json.loads(format_tables((table,), "json"))
    del broken["tables"][0]["rows"][0]["cells"]["STS12"]["spread"]
    assert not check.is_valid(broken)
