"""The expected best of n trials against every outcome there is; and what searches say in captions, true and false."""

from __future__ import annotations

import itertools
import json
import random
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
from bench.runs import searches
from bench.runs.record import RecipeValue
from bench.runs.searches import Searched, Study, Trial, kind_of_values
from bench.show.figures.search import (
    Pair,
    expected_words,
    gain_words,
    sensitivity,
    sensitivity_rows,
    sensitivity_words,
    write_figures,
)


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


def test_captions_are_true_of_what_they_are_said_of() -> None:
    rises, flat = [60.0, 64.0, 66.0], [62.0, 62.0, 62.0]
    assert (
        "With 3 trials a is expected to lead, at 66.00, but only from 2 trials on; with one trial it is b."
        in expected_words({"a": rises, "b": flat})
    )
    assert "so it does with any number" in expected_words({"a": [63.0, 64.0], "b": flat})
    assert "a and b are expected to lead" in expected_words({"a": flat, "b": flat})
    more = gain_words([Pair("a", 60, 66), Pair("b", 62, 65)])
    assert (
        "by +4.50 on average (most: a, +6.00), more than the 2.00 that the methods differ by before; after it they differ by 1.00"
        in more
    )
    assert "b leads before, a after" in more
    assert "less than the 5.00" in gain_words(
        [Pair("a", 60, 60), Pair("b", 65, 66)]
    ) and "b leads before and after" in gain_words([Pair("a", 60, 60), Pair("b", 65, 66)])
    assert "as much as" in gain_words([Pair("a", 60, 62), Pair("b", 62, 64)])
    assert "moves most with x (2.00" in sensitivity_words(
        "a", [("x", 2.0, "1: 3.00"), ("y", 1.0, "0: 4.00")]
    )
    assert "moves most with x and y (2.00" in sensitivity_words(
        "a", [("x", 2.0, ""), ("y", 2.0, "")]
    )


def test_figures_have_their_data_beside_them(tmp_path: Path) -> None:
    of = Searched(
        setting="unsupervised",
        variant="",
        plugin="",
        backbone="builtin",
        revision="",
        corpus="",
        dev="",
        recipe={},
        space={"x": {"low": 1.0, "high": 100.0, "scale": "log"}, "kind": {"values": ["p", "q"]}},
    )
    study = Study(
        name="s",
        methods={"a": of, "b": of},
        trials=4,
        seeds=(901,),
        sampler="random",
        pruner="none",
        budget=None,
        select_on="captions dev",
        dev_pairs=1,
        overlap="",
        precision="fp32",
        suites=(),
        fixed=(),
        created="",
        command="",
    )
    rng = random.Random(1)
    trials = {
        method: [
            Trial(
                method=method,
                number=i,
                state="failed" if i == 3 else "finished",
                dev=() if i == 3 else (rng.uniform(50, 60),),
                values={} if i == 0 else {"x": rng.uniform(1, 100), "kind": rng.choice("pq")},
            )
            for i in range(5)
        ]
        for method in "ab"
    }
    told = write_figures(tmp_path, study, trials)
    assert (
        len(told) == 3
        and "expected to lead" in told[0]
        and "1 trial without a score is not drawn." in sensitivity(study, "a", trials["a"]).caption
    )  # type: ignore[union-attr]
    for key, apart, means in sensitivity_rows(study, "b", trials["b"]):
        own = [
            (trial.values[key], trial.score) for trial in trials["b"][1:] if trial.score is not None
        ]
        groups = [
            [score for value, score in own if value == one] for one in {value for value, _ in own}
        ]
        assert apart == pytest.approx(
            max(map(fmean, groups)) - min(map(fmean, groups))
        ) and means.count(":") == len(groups)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(
        f"{name}.{end}"
        for name in (
            "expected-best",
            "tuning-gain",
            "values-and-methods",
            "sensitivity-a",
            "sensitivity-b",
        )
        for end in ("csv", "svg")
    )
    lines = (tmp_path / "expected-best.csv").read_text().splitlines()
    assert lines[0] == "method,trials,expected best" and len(lines) == 9
    assert float(lines[4].split(",")[2]) == pytest.approx(
        expected_best([t.score for t in trials["a"][1:]])[3], abs=1e-3
    )
    assert write_figures(tmp_path / "none", study, {"a": trials["a"][:1], "b": []}) == []


def test_a_record_says_where_its_values_come_from_and_what_chose_them() -> None:
    def of(source: str, search: dict[str, object] | None = None) -> str:
        one = record()
        recipe = {**one.recipe, "learning_rate": RecipeValue(value=1e-5, source=source)}
        one = structs.replace(
            one,
            recipe=recipe,
            provenance=structs.replace(
                one.provenance, execution={"search": search} if search else None
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
