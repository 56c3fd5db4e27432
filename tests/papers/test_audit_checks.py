"""Each check of the audit, on made-up rows."""

from __future__ import annotations

import pytest
from audit_bounds import impossible_accuracy, off_average
from printed_rows import kinds_of, printed_row


@pytest.mark.parametrize(
    ("average", "told"), [(70.01, None), (69.99, None), (70.02, 70.0), (69.97, 70.0)]
)
def test_an_average_within_rounding_is_no_slip(average: float, told: float | None) -> None:
    row = printed_row({"STS12": 69.5, "STS13": 70.25, "STS14": 70.25, "Avg.": average})
    assert off_average(row) == (pytest.approx(told) if told else None)


@pytest.mark.parametrize(
    ("cells", "average", "explained"),
    [
        (("67.40", "79.60", "71.30"), "72.80", True),  # within what one decimal hides
        (("67.40", "79.60", "71.30"), "72.90", False),  # beyond it
        (("67.41", "79.60", "71.30"), "72.80", False),  # one cell has its second decimal
        (("67.4", "79.6", "71.3"), "72.90", False),  # printed with one: nothing was hidden
    ],
)
def test_differences_explained_by_rounding_to_one_decimal(
    cells: tuple[str, ...], average: str, explained: bool
) -> None:
    row = printed_row(
        dict(zip(("STS12", "STS13", "STS14"), cells, strict=True)) | {"Avg.": average}
    )
    (told,) = kinds_of([row])["average"]
    assert (
        told.text.startswith(f"published {average}; the mean of its 3 cells is 72.77")
        and ("one decimal" in told.text) == explained
    )


def test_accuracies_that_were_rounded_to_one_decimal_are_held_to_that() -> None:
    """82.00 of 1,821 is not possible, 82.0 is: 1,493 right answers are 81.988."""
    cells = {"MR": "76.50", "SST-2": "82.00", "MRPC": "73.00"}
    rounded, exact = (
        printed_row(cells, metric="accuracy"),
        printed_row(cells | {"MR": "76.51"}, metric="accuracy"),
    )
    assert (
        impossible_accuracy(rounded.cells[1], rounded) is None
        and impossible_accuracy(exact.cells[1], exact) is not None
    )


@pytest.mark.parametrize("runs", ["one run", "mean of 4 seeds"])
def test_accuracies_that_counts_can_and_cannot_give(runs: str) -> None:
    """Every accuracy that some number of right answers gives is accepted, by enumeration; the
    others are not.
    """
    times = 4 if "4" in runs else 1
    reachable = {round(100 * right / (500 * times), 2) for right in range(500 * times + 1)}
    for hundredths in range(8000, 8101):
        row = printed_row({"TREC": hundredths / 100, "MR": 80.01}, metric="accuracy", runs=runs)
        near = any(
            abs(hundredths / 100 - value) <= (0.0 if times == 1 else 0.01) + 1e-9
            for value in reachable
        )
        assert (impossible_accuracy(row.cells[0], row) is None) == near, hundredths
    assert (
        impossible_accuracy(
            printed_row({"MR": 80.01}, metric="accuracy").cells[0],
            printed_row({"MR": 80.01}, metric="accuracy"),
        )
        is None
    )


def test_reruns_and_copies_that_disagree() -> None:
    copied = {"method": "simcse", "own_result": False, "source": "A et al. 2020"}
    one = printed_row({"STS12": 70.0}, **copied)
    two = printed_row({"STS12": 71.5}, method="simcse", paper="dcpcse", label="Y")
    three = printed_row({"STS12": 70.0}, paper="conpvp", label="Z", **copied)
    told = {(r.paper, r.task): r.text for r in kinds_of([one, two, three])["differs"]}
    assert told["promcse", "STS12"] == "published 70.00 (copied); dcpcse table 1: 71.50 (rerun)"
    others = "promcse table 1, conpvp table 1: 70.00 (copied)"
    assert told["dcpcse", "STS12"] == f"published 71.50 (rerun); {others}"
    assert "differs" not in kinds_of([one, three])


def test_same_numbers_under_two_names_need_three_cells() -> None:
    cells = {"STS12": 70.0, "STS13": 71.0, "STS14": 72.0}
    one, two = (
        printed_row(cells, method="a", label="A"),
        printed_row(cells, method="b", label="B", paper="dcpcse"),
    )
    assert {r.label for r in kinds_of([one, two])["same"]} == {"A", "B"}
    assert "same" not in kinds_of([one, printed_row({**cells, "STS14": 72.01}, method="b")])
    assert "same" not in kinds_of(
        [
            printed_row({"STS12": 70.0}, method="a"),
            printed_row({"STS12": 70.0}, method="b", paper="dcpcse"),
        ]
    )


def test_the_odd_one_out_is_told_and_the_others_are_not() -> None:
    usual = [printed_row({"STS12": 70.0 + i}, label=f"L{i}", method=f"m{i}") for i in range(3)]
    odd = printed_row(
        {"STS12": 60.0}, label="odd", method="o", text="unknown", corpus="the scored sentences"
    )
    (told,) = kinds_of([*usual, odd])["protocol"]
    assert (
        told.label == "odd"
        and told.text
        == "text form not known, its neighbours' is tokenised; trained on the scored sentences"
    )
    assert told.task == ""
