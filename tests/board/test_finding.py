"""The headline of a board: every sentence appears if it is true, and not if it is false."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.board.finding import board_finding, table_finding
from bench.compare.formatting import budget_words
from bench.compare.judge import FEW_SEEDS
from bench.compare.statistics.table import Against, Cell, Row, Table
from bench.compare.statistics.table import Tested as OneFamily

VERDICTS = {"+": "better", "-": "worse", "?": "inconclusive"}


def row(name: str, verdict: str = "", *, seeds: int = 3, untested: str = "", best: bool = False):
    """``verdict``: a key of VERDICTS, "" for a row that was not compared."""
    against = None
    if verdict:
        against = Against(difference=0.5, ci_low=-1.0, ci_high=2.0, verdict=VERDICTS[verdict])
    values = tuple(60.0 + i for i in range(seeds))
    cell = Cell(mean=61.0, sd=1.0, values=values, n=10, against=against)
    return Row(
        method=name,
        variant="",
        setting="unsupervised",
        backbone="builtin",
        differs=(),
        runs=tuple(f"{name}-{i}" for i in range(seeds)),
        seeds=tuple(range(seeds)),
        cells=(cell,),
        is_baseline=name == "simcse",
        may_be_best=best,
        untested=untested,
    )


def table(*rows: Row, baseline: str | None = "simcse", tested: bool = True, **more: object):
    fields = {"setting": "unsupervised", "backbone": "builtin", "suite": "sts"} | more
    family = OneFamily(rows=len(rows), comparisons=max(len(rows) - 1, 1), ci_level=0.99)
    return Table(
        protocol="senteval-all/1",
        metric="spearman",
        columns=("Avg.",),
        rows=rows,
        baseline=baseline,
        tested=family if tested else None,
        **fields,  # type: ignore[arg-type]
    )


SIMCSE = row("simcse", best=True)


def verdicts(signs: str) -> Table:
    """A table of a row for each sign, and the baseline."""
    return table(SIMCSE, *(row(f"m{i}", sign) for i, sign in enumerate(signs)))


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        ("---??", "No method beats SimCSE here. "
                  "Of 5 tested rows, 3 are worse and 2 cannot be told from it."),
        ("-????", "No method beats SimCSE here. "
                  "Of 5 tested rows, 1 is worse and 4 cannot be told from it."),
        ("---", "No method beats SimCSE here. All 3 tested rows are worse."),
        ("???", "No method beats SimCSE here. None of 3 tested rows can be told from it."),
        ("+--?", "m0 beats SimCSE here. "
                 "Of 4 tested rows, 1 is better, 2 are worse and 1 cannot be told from it."),
        ("++-", "m0 and m1 beat SimCSE here. Of 3 tested rows, 2 are better and 1 is worse."),
        ("++", "m0 and m1 beat SimCSE here. All 2 tested rows are better."),
        ("+", "m0 beats SimCSE here. The one tested row, m0, is better."),
        ("-", "No method beats SimCSE here. The one tested row, m0, is worse."),
        ("?", "No method beats SimCSE here. The one tested row, m0, cannot be told from it."),
    ],
)  # fmt: skip
def test_the_verdicts_are_counted(signs: str, said: str) -> None:
    assert table_finding(verdicts(signs)).text == said


def test_rows_that_were_not_tested_are_named_with_the_reason() -> None:
    few = row("pcl", seeds=2, untested=FEW_SEEDS)
    one = row("ct", seeds=1, untested=FEW_SEEDS)
    bare = row("old", untested="no predictions of every task")
    said = table_finding(table(SIMCSE, row("a", "-"), row("b", "?"), few)).counts
    assert said == (
        "Of 2 tested rows, 1 is worse and 1 cannot be told from it; "
        "pcl has two seeds and is not tested."
    )
    said = table_finding(table(SIMCSE, row("a", "-"), row("b", "-"), few, one)).counts
    assert said.endswith("; pcl and ct have fewer than three seeds and are not tested.")
    said = table_finding(table(SIMCSE, row("a", "-"), row("b", "-"), one)).counts
    assert said.endswith("; ct has one seed and is not tested.")
    said = table_finding(table(SIMCSE, row("a", "-"), row("b", "-"), bare)).counts
    assert said.endswith("; old is not tested (no predictions of every task).")
    assert "not tested" not in table_finding(verdicts("--?")).counts


def test_the_place_and_the_candidates() -> None:
    found = table_finding(table(SIMCSE, row("a", "?", best=True), row("b", "-", seeds=5)))
    assert found.place == (
        "Here: the STS average, unsupervised, built-in backbone, 3 to 5 seeds a row. "
        "2 of 3 rows may be the best: simcse and a."
    )
    found = table_finding(table(replace(SIMCSE, may_be_best=False), row("a", "+", best=True)))
    assert found.place.endswith("3 seeds. a is the best of 2 rows.")
    long = table_finding(replace(verdicts("-"), budget="1000steps", length="1000steps"))
    assert ", 1,000 steps, " in long.place
    assert budget_words("30m") == "30m" and budget_words("steps") == "steps"


def test_nothing_is_claimed_of_what_was_not_tested() -> None:
    plain = table(row("a", untested=FEW_SEEDS), SIMCSE, tested=False)
    found = table_finding(plain)
    assert found.claim == "No difference was tested here." and "beats" not in found.text
    free = table(row("a", best=True), row("b"), baseline=None)
    assert table_finding(free).claim == "a is the best of 2 tested rows here."
    free = table(row("a", best=True), row("b", best=True), row("c"), baseline=None)
    assert table_finding(free).claim == "The best of 3 tested rows here is one of a and b."
    free = table(row("a", best=True), row("b", best=True), baseline=None)
    assert table_finding(free).claim == "The data do not tell which of 2 tested rows is best here."
    assert table_finding(table(row("a"))).claim == "a reaches 61.00 here."


def test_another_baseline_has_its_own_name() -> None:
    other = table(replace(row("my-loss"), is_baseline=True), row("a", "-"), baseline="my-loss")
    assert table_finding(other).claim == "No method beats my-loss here."


def test_the_finding_is_of_the_publishers_first_table_that_ranks_several_rows() -> None:
    sent = replace(verdicts("++"), sender="Mallory")
    single = table(row("a"))
    first = verdicts("--")
    second = verdicts("+-")
    assert board_finding([sent, single, first, second]) == table_finding(first)
    assert board_finding([single]) == table_finding(single)
    assert board_finding([sent]).claim.startswith("All of these runs were submitted")
    assert board_finding([]).claim == "No method has a score on every task yet."
