"""The claims of the papers' texts: each is held against its printed cells, and each names the
comparison that tests it here.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from bench.method.plugins import discover
from bench.method.recipes import merge_recipe, variants_of
from bench.papers import SUITES, ReferenceResult, contents, meaning, printed_points
from bench.papers.claims import HIGHER, LOWER, NOT_HIGHER, WORDS, Claim, claims
from bench.score.suites.registry import suite_names

FALSE = {  # what the tables do not bear out: the claim, and the two cells
    ("dcpcse", "0.78", "82.89", "82.21"),
    ("conpvp", "1.21", "63.86", "57.58"),
    ("conpvp", "2.18", "64.14", "63.06"),
    ("focal-infonce", LOWER, "-1.906", "-2.400"),
    ("focal-infonce", LOWER, "-2.366", "-2.790"),
}


def holds(claimed: str, gain: Fraction) -> bool:
    if claimed in WORDS:
        return {HIGHER: gain > 0, LOWER: gain < 0, NOT_HIGHER: gain <= 0}[claimed]
    unit = Fraction(1, 10 ** len(claimed.partition(".")[2]))
    return abs(gain - Fraction(claimed)) <= unit / 2


def test_five_claims_are_not_what_the_cells_say() -> None:
    """In exact fractions."""
    off = set()
    for claim in claims():
        if claim.printed is None:
            continue
        cell, less = claim.printed.cell, claim.printed.less
        true = holds(claim.claimed, Fraction(cell.printed) - Fraction(less.printed))
        assert claim.holds(claim.printed.value, claim.printed.rounding) == true, claim
        if not true:
            off.add((claim.paper, claim.claimed, cell.printed, less.printed))
    assert off == FALSE


def test_how_many_claims_each_paper_has() -> None:
    """None is lost: gains in points, and others, as PAPERS-CHECK-2 lists them (1e)."""
    in_points = Counter(claim.paper for claim in claims() if claim.claimed not in WORDS)
    others = Counter(claim.paper for claim in claims() if claim.claimed in WORDS)
    assert in_points == {"promcse": 6, "dcpcse": 9, "conpvp": 7, "focal-infonce": 4}
    assert others == {"promcse": 15, "conpvp": 5, "focal-infonce": 6}
    assert len(set(claims())) == len(claims())


def test_a_claim_without_cells_names_a_figure_and_agrees_with_its_points() -> None:
    drawn = [claim for claim in claims() if claim.printed is None]
    shorts = {(part.paper, part.part): part.short for part in contents()}
    assert {(claim.paper, claim.table) for claim in drawn} == {
        ("promcse", "figure2"),
        ("conpvp", "figure7"),
    }
    simcse = {"Avg.": 76.25, "CxC-STS": 67.5}  # PromCSE's tables 1 and 2
    for claim in drawn:
        for point in printed_points():
            place = (point.paper, shorts[point.paper, point.part], point.panel, point.x)
            if place == (claim.paper, claim.table, claim.task, 1):
                assert claim.holds(point.y - simcse[claim.task]), claim


def test_of_two_rows_with_one_label_the_rerun_counts() -> None:
    """ConPVP's table 5 has SimCSE twice: copied, and run again as ConPVP was."""
    cells = [
        (claim.printed.cell.printed, claim.printed.less.printed)
        for claim in claims()
        if claim.printed and (claim.paper, claim.suite) == ("conpvp", "transfer")
    ]
    assert cells == [("86.27", "85.06"), ("88.60", "86.42")]


def our_row(cell: ReferenceResult) -> str:
    """The row that a printed one means here; "" if there is none."""
    means = meaning(cell.method, cell.variant, cell.setting, cell.backbone)
    return "+".join(filter(None, (means.method, means.variant)))


@pytest.mark.parametrize(
    "claim", [claim for claim in claims() if claim.printed], ids=lambda claim: claim.says
)
def test_the_comparison_is_that_of_the_printed_cells(claim: Claim) -> None:
    assert claim.printed
    cell, less = claim.printed.cell, claim.printed.less
    assert (claim.row, claim.baseline) == (our_row(cell), our_row(less))
    assert claim.suite == SUITES[cell.metric] == SUITES[less.metric]
    assert claim.baseline or claim.open, "a claim that nothing here tests says why"


def test_each_row_that_a_version_needs_can_be_run() -> None:
    plugins = discover(())
    for claim in claims():
        assert claim.suite in suite_names()
        for row in claim.needs:
            name, *values = row.split()
            method, _, variant = name.partition("+")
            cls = plugins[method].cls
            assert claim.setting in cls.settings, row
            assert variant in ("", *variants_of(cls)), row
            recipe = merge_recipe(cls, None, variant, {}, trained=True)
            for value in values:
                assert value.partition("=")[0] in recipe, row
