"""The family of a table: the rows that a plan's question names, else those that were trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from compared_runs import only, row_named, runs_in
from predicted_runs import family, sts_run

from bench.compare.senders import with_sender
from bench.compare.statistics.table import FOR_COMPARISON, FOR_SCALE, Table
from bench.compare.tables import make_tables
from bench.compare.words.finding import table_finding, verdict_of, verdict_word
from bench.compare.words.names import row_name, table_name
from bench.records import Run

NOISES = {"simcse": 0.5, "promcse": 0.1, "ct": 0.49, "mirror-bert": 0.9}
HELPS = 'text = "Does CT help?"\nbaseline = "simcse"\nrows = ["ct"]\nsuite = "sts"'
LAYERS = 'text = "Which layers?"\nbaseline = "promcse"\nrows = ["mirror-bert", "diffcse"]'


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    made = family(tmp_path, NOISES)
    made.append(sts_run(tmp_path, "cls", None, 1.2, setting="none"))
    return runs_in(tmp_path, made)


def write_question(runs: Sequence[Run], method: str, keys: str) -> None:
    """Put a question into the plans that the runs of a method keep."""
    for run in runs:
        if run.record.method == method:
            text = f'[question]\n{keys}\n\n[[run]]\nmethods = ["{method}"]\n'
            (run.folder / "plan.toml").write_text(text, encoding="utf-8")


def standing(table: Table) -> dict[str, str]:
    return {row.name: row.stands for row in table.rows}


def words(table: Table) -> dict[str, str]:
    return {row.name: verdict_word(row, table) for row in table.rows}


def test_without_a_question_what_was_trained_is_judged(runs: list[Run]) -> None:
    table = only(make_tables(runs))
    assert standing(table) == dict.fromkeys(NOISES, "") | {"cls": FOR_SCALE}
    assert [row.name for row in table.rows][-1] == "cls"
    assert table.tested is not None and table.tested.comparisons == 3
    of = row_named(table, "cls").cells[-1]
    assert of is not None and of.against is not None
    assert of.against.ci_low is not None and of.against.p is None and of.against.verdict is None
    assert "CLS" not in table_finding(table).text and words(table)["cls"] == FOR_SCALE


def test_a_planned_row_is_judged_as_if_it_were_the_only_one(
    runs: list[Run], tmp_path: Path
) -> None:
    write_question(runs, "ct", HELPS)
    table = only(make_tables(runs))
    assert table.question == "Does CT help?"
    others = dict.fromkeys(("promcse", "mirror-bert"), FOR_COMPARISON)
    assert standing(table) == {"simcse": "", "ct": "", **others, "cls": FOR_SCALE}
    assert [row.name for row in table.rows][2:] == ["promcse", "mirror-bert", "cls"]
    assert table.tested is not None
    assert (table.tested.comparisons, table.tested.ci_level) == (1, 0.95)
    assert not row_named(table, "promcse").may_be_best, "it is far above, and was not asked about"
    assert words(table)["promcse"] == FOR_COMPARISON
    found = table_finding(table).text
    assert found.startswith("CT against SimCSE on the STS average is inconclusive")
    assert "PromCSE" not in found
    below = "not above the untrained start: Mirror-BERT"
    assert below not in table.notes
    start = sts_run(tmp_path, "cls", None, 0.9, setting="none")
    runs = [run for run in runs if run.record.method != "cls"]
    again = only(make_tables([*runs, *runs_in(tmp_path, [start])]))
    assert below in again.notes and "Mirror-BERT" not in table_finding(again).text


def test_a_planned_row_has_the_plain_name_among_rows_of_its_method(
    runs: list[Run], tmp_path: Path
) -> None:
    """Also if the others have as many seeds."""
    write_question(runs, "ct", HELPS)
    seeds = sorted({run.record.seed for run in runs if run.record.method == "ct"}, key=str)
    warm = [sts_run(tmp_path, "ct", s, 0.45, recipe={"temperature": 0.1}) for s in seeds]
    table = only(make_tables([*runs, *runs_in(tmp_path, warm)]))
    names = {row_name(row, table): row.stands for row in table.rows if row.name == "ct"}
    assert names == {"CT": "", "CT (temperature 0.1)": FOR_COMPARISON}
    assert not any("not here" in note for note in table.notes)


def test_another_baseline_is_another_question(runs: list[Run]) -> None:
    write_question(runs, "ct", HELPS)
    named = only(make_tables(runs, baseline="SimCSE"))
    assert named.question == "Does CT help?", "the same row"
    other = only(make_tables(runs, baseline="ct"))
    assert other.question == "" and other.tested is not None
    assert other.tested.comparisons == 3


def test_a_second_question_has_a_table_of_its_rows(runs: list[Run]) -> None:
    write_question(runs, "ct", HELPS)
    write_question(runs, "mirror-bert", LAYERS)
    first, second = make_tables(runs)
    assert len(first.rows) == 5 and first.baseline == "simcse"
    held_against = {"cls": FOR_SCALE}
    assert standing(second) == {"promcse": "", "mirror-bert": ""} | held_against
    assert second.baseline == "promcse" and verdict_of(second.rows[1]) == "worse"
    assert "Which layers?" in table_name(second) and "Does CT help?" not in table_name(first)
    assert "planned, and not here: diffcse" in second.notes


def test_questions_without_a_text_are_told_apart_by_their_rows(runs: list[Run]) -> None:
    write_question(runs, "ct", HELPS.partition("\n")[2])
    write_question(runs, "mirror-bert", LAYERS.partition("\n")[2])
    first, second = make_tables(runs)
    words = "ct against simcse", "mirror-bert and diffcse against promcse"
    assert {first.question, second.question} == set(words)
    assert table_name(first) != table_name(second)


@pytest.mark.parametrize(
    "keys",
    [
        HELPS.replace("sts", "cxc"),
        HELPS.replace("simcse", "nobody"),
        "rows = [",
    ],
    ids=["another suite", "no baseline", "no TOML"],
)
def test_a_question_that_the_table_cannot_answer_changes_nothing(
    runs: list[Run], keys: str
) -> None:
    before = make_tables(runs)
    write_question(runs, "ct", keys)
    assert make_tables(runs) == before


def test_a_senders_question_is_asked_of_the_senders_rows(runs: list[Run], tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    theirs = runs_in(
        sent, family(sent, {"simcse": 0.5, "ct": 0.4, "diffcse": 0.3}, seeds=(4, 5, 6))
    )
    write_question(theirs, "ct", HELPS)
    labelled = [with_sender(run, "somebody else") for run in theirs]
    own, other = make_tables([*runs, *labelled])
    assert own == only(make_tables(runs))
    assert other.sender == "somebody else" and other.question == "Does CT help?"
    assert standing(other) == {"simcse": "", "ct": "", "diffcse": FOR_COMPARISON}


def test_finished_encoders_alone_are_judged(tmp_path: Path) -> None:
    records = [
        sts_run(tmp_path, name, None, noise, setting="none")
        for name, noise in (("cls", 1.2), ("last-avg", 0.4))
    ]
    table = only(make_tables(runs_in(tmp_path, records)))
    assert standing(table) == {"last-avg": "", "cls": ""}
    assert [row.may_be_best for row in table.rows] == [True, False]
