"""Tables of means over seeds: against numpy, and which runs may share a table."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from compared_runs import only
from factories import RAW_PROTOCOL, STS, family, record, sts_scores
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.compare.questions import asked_tables
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table
from bench.records import Code, CorpusUsed, RunRecord, Score


def row(table: Table, name: str) -> int:
    (found,) = [i for i, row in enumerate(table.rows) if row.name == name]
    return found


def test_cells_are_means_and_deviations_over_seeds() -> None:
    records = family(range(1, 6))
    table = only(summarise(records))
    assert table.columns == (*STS, "Avg.") and (table.setting, table.backbone) == (
        "unsupervised",
        "builtin",
    )
    for column, task in enumerate(table.columns):
        values = []
        for one in records:
            if one.method == "promcse":
                values += [score.value for score in one.scores if score.task == task]
        cell = table.rows[row(table, "promcse")].cells[column]
        assert cell is not None and len(values) == 5
        assert cell.mean == pytest.approx(np.mean(values), abs=1e-12)
        assert cell.sd == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    single = table.rows[row(table, "cls")].cells[0]
    assert single is not None and single.sd is None


def test_the_average_is_the_recorded_one_and_needs_every_task() -> None:
    scores = tuple(one for one in sts_scores() if one.task != "Avg.")
    average = replace(scores[0], task="Avg.", value=12.0)
    (made,) = only(summarise([record(scores=(*scores, average))])).rows
    assert made.cells[-1] is not None and made.cells[-1].mean == 12.0
    (made,) = only(summarise([record(scores=(*scores[1:], average))])).rows
    assert made.cells[-1] is None


def test_an_average_of_which_lower_is_better_ranks_no_row() -> None:
    """Of a suite of somebody else: the rule takes more for better."""
    about = {"suite": "mine", "protocol": "mine/1", "metric": "alignment", "n": 10}
    scores = [Score(**about, task=task, value=0.3) for task in ("one", "two", "Avg.")]  # type: ignore[arg-type]
    table = only(summarise([record("simcse", 1, scores=tuple(scores))]))
    assert table.falling == table.columns == ("one", "two", "Avg.")
    assert table.head is None


def test_protocols_settings_and_backbones_are_never_mixed() -> None:
    made = [
        record("simcse", 1),
        record("simcse", 1, scores=sts_scores(protocol=RAW_PROTOCOL), run_id="raw"),
        record(
            "simcse",
            1,
            scores=tuple(replace(s, protocol="senteval-all/2") for s in sts_scores()),
            run_id="two",
        ),
        record("simcse", 1, setting="supervised"),
        record("simcse", 1, backbone="bert-base-uncased"),
    ]
    tables = summarise(made)
    assert len(tables) == 5 and all(len(table.rows) == 1 for table in tables)
    assert tables[0].protocol == "senteval-all/1" and tables[0].setting == "unsupervised"


def test_another_recipe_is_another_row_and_says_what_differs() -> None:
    made = [record("simcse", seed) for seed in (1, 2)] + [
        record("simcse", 1, recipe={"temperature": 0.1, "mlm": True})
    ]
    table = only(summarise(made))
    assert sorted((one.differs, len(one.runs)) for one in table.rows) == [
        ((("mlm", "true"), ("temperature", "0.1")), 1),
        ((("temperature", "0.05"),), 2),
    ]
    elsewhere = record("simcse", 3)
    elsewhere = replace(
        elsewhere,
        provenance=replace(
            elsewhere.provenance, corpus=CorpusUsed(**{"name": "news.txt", "sha256": "9" * 64})
        ),
    )
    table = only(summarise([*made[:2], elsewhere]))
    assert {one.differs for one in table.rows} == {
        (("corpus", "news.txt"),),
        (("corpus", "wiki.txt"),),
    }


def of_code(run: RunRecord, sha256: str | None, created: str) -> RunRecord:
    plugin = Code(package="mine.py", sha256=sha256)
    return replace(
        run,
        run_id=f"{run.run_id}-{sha256}",
        provenance=replace(run.provenance, plugin=plugin, created=created),
    )


def test_runs_of_different_code_never_share_a_row() -> None:
    old = [
        of_code(record("mine", seed, base=90), "a" * 4, "2026-01-01T00:00:00Z")
        for seed in (1, 2, 3)
    ]
    oldest = of_code(record("mine", 4, base=90), None, "2025-01-01T00:00:00Z")
    new = of_code(record("mine", 1, base=40), "b" * 4, "2026-01-02T00:00:00Z")
    others = [record("simcse", seed) for seed in (1, 2)]
    table = only(summarise([*old, oldest, new, *others]))
    mine = table.rows[row(table, "mine")]
    assert mine.runs == (new.run_id,) and mine.cells[-1] is not None and mine.cells[-1].mean < 50
    of_old = " ".join(run.run_id for run in old)
    assert mine.other_code == f"bench compare {of_old}; bench compare {oldest.run_id}"
    assert table.rows[row(table, "simcse")].other_code == ""
    assert only(summarise(old)).rows[0].other_code == "", "what the command shows"
    again = of_code(old[2], "a" * 4, "2026-01-03T00:00:00Z")
    assert set(only(summarise([*old[:2], again, new])).rows[0].runs) == {
        run.run_id for run in (*old[:2], again)
    }, "the newest run's code"


def compared(records: list[RunRecord], baseline: str | None = None) -> Table:
    (table,) = asked_tables(summarise(records), (), baseline)
    return table


def test_the_baseline_is_one_row_and_fixed_before_the_scores() -> None:
    made = [record("simcse", 1, base=60), record("promcse", 1, base=70), record("ct", 1, base=50)]
    assert compared(made).baseline == "simcse", "whatever its score"
    assert compared(made[1:]).baseline is None
    rates = [
        record("simcse", 1, base=b, recipe={"learning_rate": r})
        for b, r in ((65, 1e-4), (66, 3e-5))
    ]
    table = compared([*rates, *made[1:]])
    assert table.baseline is None, "two rows of that name, with one seed each"
    with pytest.raises(BenchError) as several:
        compared([*rates, *made[1:]], "simcse")
    assert several.value.message == "--baseline: simcse matches 2 rows of sts"
    names = several.value.hint.removeprefix("choose one: ").split("; ")
    for name in names:
        chosen = compared([*rates, *made[1:]], shlex.split(name)[0])
        assert [one.differs[0][1] in name for one in chosen.rows if one.is_baseline] == [True]
    again = record("simcse", 2, base=65, recipe={"learning_rate": 1e-4})
    for name in (None, "simcse"):
        more = compared([*rates, again, *made[1:]], name)
        (base,) = (one for one in more.rows if one.is_baseline)
        assert base.runs == (rates[0].run_id, again.run_id), "the one with more seeds"
    variant = record("simcse", 1, base=80, variant="eh")
    assert compared([variant, *made]).baseline == "simcse"
    assert compared([variant], "simcse").baseline == "simcse+eh"


def test_a_file_of_ones_own_is_compared_whatever_other_files_a_run_was_scored_on() -> None:
    """One table for each file; a file that was changed is another one."""

    def own(task: str, text: str) -> Score:
        return Score(
            suite="own",
            task=task,
            protocol=f"own-pairs-{text}/1",
            metric="spearman",
            value=50.0,
            n=10,
        )

    pairs = own("pairs", "04ae9cf3")
    more = own("more", "bf404288")
    changed = own("pairs", "11111111")
    records = [
        record("simcse", 1, scores=(pairs,)),
        record("promcse", 1, scores=(pairs, more)),
        record("ct", 1, scores=(pairs, changed)),
    ]
    found = {table.protocol: (table.columns, len(table.rows)) for table in summarise(records)}
    assert found == {
        "own-pairs-04ae9cf3/1": (("pairs",), 3),
        "own-pairs-bf404288/1": (("more",), 1),
        "own-pairs-11111111/1": (("pairs",), 1),
    }
