"""The expected best of n trials against every outcome there is; and what searches say in captions, true and false."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest
from factories import record
from msgspec import structs

from bench.board.judged_tables import chosen_on
from bench.compare.statistics.expected_best import expected_best, gains, parts
from bench.data.sets.sts import STS_TASKS
from bench.run.search.study import overlap_words
from bench.runs import HowExecuted, searches
from bench.runs.record import RecipeValue
from bench.runs.searches import kind_of_values


@pytest.mark.parametrize(
    "scores",
    [[3.0], [1.0, 1.0, 2.0], [5.0, 1.0, 4.0, 1.5], [2.0, 2.0, 2.0], [67.1, 61.0, 66.2, 66.2, 12.5]],
)
def test_expected_best_is_the_mean_over_all_draws(scores: list[float]) -> None:
    brute = [
        fmean(max(draw) for draw in itertools.product(scores, repeat=n))
        for n in range(1, len(scores) + 1)
    ]
    assert expected_best(scores) == pytest.approx(brute, abs=1e-9)


def test_a_trial_without_a_score_counts_as_the_lowest() -> None:
    assert expected_best([None, 5.0, 3.0]) == pytest.approx(expected_best([3.0, 5.0, 3.0]))
    assert expected_best([None, None]) == [] == expected_best([])


def test_parts_are_values_or_thirds() -> None:
    assert parts(["a", "b", "a"], [1.0, 5.0, 3.0]) == [("a", 2, 2.0), ("b", 1, 5.0)]
    assert parts([64, 256, 128, 64], [1.0, 2.0, 3.0, 2.0]) == [
        ("64", 2, 1.5),
        ("128", 1, 3.0),
        ("256", 1, 2.0),
    ]
    values = [1e-5, 1e-4, 1e-3, 2e-3, 3e-5, 2e-4, 4e-3, 4e-4]
    assert parts(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 1.0]) == [
        ("1e-05 to 0.0001", 3, pytest.approx(8 / 3)),
        ("0.0002 to 0.0004", 2, 3.5),
        ("0.001 to 0.004", 3, 5.0),
    ]


def test_gains_are_of_methods_with_both() -> None:
    assert gains({"a": 60.0, "b": 64.0, "c": 1.0}, {"a": 66.0, "b": 66.0}) == (4.0, 4.0, 0.0)


def test_a_record_says_where_its_values_come_from_and_what_chose_them() -> None:
    def of(source: str, search: dict[str, object] | None = None) -> str:
        one = record()
        recipe = {**one.recipe, "learning_rate": RecipeValue(value=1e-5, source=source)}
        one = structs.replace(
            one,
            recipe=recipe,
            provenance=structs.replace(
                one.provenance, execution=HowExecuted(**{"search": search}) if search else None
            ),
        )
        return kind_of_values(one) + (f" | {chosen_on(one)}" if chosen_on(one) else "")

    assert of("SimCSE repo README.md") == "paper" and of("--set") == "recipe" == of(
        "ours, for 5 M parameters: not searched"
    )
    assert (
        of("search x", {"trials": 12, "select_on": "STS-B dev", "seeds": [901]})
        == "tuned: 12 trials"
    )
    assert of("search x", {"trials": 12, "select_on": "STS-B"}) == "tuned: 12 trials | STS-B"
    assert (
        of(
            "search x",
            {"name": "s", "trials": 12, "select_on": "STS-B dev", "seeds": [record().seed]},
        )
        == "tuned: 12 trials | a seed of s"
    )
    assert of("search x", {"trials": "many", "seeds": 3, "select_on": 4}) == "tuned | 4", (
        "what strangers write is no error"
    )


def test_the_overlap_of_a_dev_set_is_told_in_pairs() -> None:
    def words(name: str, sha256: str, *suites: str) -> str:
        return overlap_words(
            SimpleNamespace(dev=SimpleNamespace(name=name, n=1500, sha256=sha256)), suites
        )  # type: ignore[arg-type]

    known = json.loads((Path(searches.__file__).parents[1] / "verify" / "given.json").read_bytes())
    shas = {what.partition(",")[0]: sha for what, sha in known["dev"].items()}
    shared = sum(
        n
        for sets, n in known["dev_pairs"]["STS-B dev"].items()
        if set(sets.split()) & set(STS_TASKS)
    )
    assert f"{shared:,} of its 1,500 pairs (75.8 %) are test pairs" in words(
        "STS-B dev", shas["STS-B dev"], "sts"
    )
    assert "none of its" in words("sts-dev-clean", shas["sts-dev-clean"], "sts")
    assert "is unknown" in words("STS-B dev", "0" * 64, "sts") and "test pairs" not in words(
        "STS-B dev", shas["STS-B dev"], "cxc"
    )
