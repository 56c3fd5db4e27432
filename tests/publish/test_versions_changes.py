"""What changed from one version to the next, and why."""

from __future__ import annotations

import dataclasses
import html
import re
from types import SimpleNamespace
from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.board.changes import changes_since, judgements
from bench.runs import RecipeValue, RunRecord


def moved(made: RunRecord, by: float = 1.0, **provenance: Any) -> RunRecord:
    """The same run with other scores, under another name, as another fingerprint would give it."""
    return replace(
        made,
        run_id=f"{made.run_id}-again",
        scores=tuple(replace(one, value=one.value + by) for one in made.scores),
        provenance=replace(made.provenance, **provenance),
    )


def test_the_same_runs_change_nothing() -> None:
    runs = [record("simcse", seed) for seed in (1, 2)]
    found = changes_since("v1", runs, list(reversed(runs)))
    assert (found.new_runs, found.removed_runs, found.scores, found.lines) == ((), (), (), ())


def test_new_runs_and_methods_are_named_and_counted() -> None:
    old, new = [record("simcse", 1)], [record("promcse", seed, variant="eh") for seed in (1, 2)]
    found = changes_since("v1", old, [*old, *new])
    assert set(found.new_runs) == {run.run_id for run in new} and found.new_methods == (
        "promcse+eh",
    )
    assert found.lines == ("2 new runs: promcse+eh (2).", "New methods: promcse+eh.")
    back = changes_since("v2", [*old, *new], old)
    assert (
        back.removed_methods == ("promcse+eh",)
        and back.lines[0] == "2 runs no longer shown: promcse+eh (2)."
    )


def test_more_seeds_move_a_mean_and_are_the_only_reason() -> None:
    """The runs that both have say the same: whatever else the new one differs in is no reason."""
    old = [record("simcse", 1), record("simcse", 2)]
    third = record("simcse", 3, base=75)
    third = replace(third, provenance=replace(third.provenance, bench_version="9.9"))
    found = changes_since("v1", old, [*old, third])
    assert {one.why for one in found.scores} == {("seeds: 2 before, 3 now",)}
    head = next(one for one in found.scores if one.task == "Avg.")
    values = [next(s.value for s in run.scores if s.task == "Avg.") for run in (*old, third)]
    assert head.before == pytest.approx(sum(values[:2]) / 2) and head.after == pytest.approx(
        sum(values) / 3
    )
    assert (
        f"sts Avg. (and 7 more) {head.before:.2f} before, {head.after:.2f} now; seeds: 2 before, 3 now."
        in found.lines[-1]
    )


@pytest.mark.parametrize(
    ("provenance", "why"),
    [
        ({"plugin": {"sha256": "b" * 64}}, "code: the method's"),
        ({"packages": {"torch": "3.0"}}, "library: torch 2.13.0 before, 3.0 now"),
        ({"bench_version": "0.2.0"}, "bench 0.1.0 before, 0.2.0 now"),
        ({"data": {"STS12": "e" * 64}}, "data: another text form or version of the set"),
        (
            {"corpus": {"name": "wiki.txt", "sha256": "9" * 64}},
            "recipe: corpus wiki.txt@cccccc before, wiki.txt@999999 now",
        ),
        ({}, "nothing that the records keep"),
    ],
    ids=["code", "library", "bench", "data", "corpus", "unknown"],
)
def test_why_a_score_changed(provenance: dict[str, Any], why: str) -> None:
    old = record("simcse", 1)
    found = changes_since("v1", [old], [moved(old, **provenance)])
    assert {one.why for one in found.scores if one.task == "STS12"} == {(why,)}
    assert len(found.scores) == 8 and found.scores[0].after - found.scores[
        0
    ].before == pytest.approx(1)


def test_another_recipe_in_the_place_of_a_row_is_a_reason() -> None:
    old = record("simcse", 1)
    new = replace(
        moved(old), recipe={**old.recipe, "temperature": RecipeValue(value=0.1, source="a guess")}
    )
    found = changes_since("v1", [old], [new])
    assert {one.why for one in found.scores} == {("recipe: temperature 0.05 before, 0.1 now",)}


def test_a_second_recipe_beside_the_first_is_a_new_row_and_no_change() -> None:
    old = record("simcse", 1)
    new = replace(
        moved(old), recipe={**old.recipe, "temperature": RecipeValue(value=0.1, source="a guess")}
    )
    found = changes_since("v1", [old], [old, new])
    assert found.scores == () and found.new_runs == (new.run_id,) and found.new_methods == ()


def test_noise_of_another_library_is_no_change() -> None:
    old = record("simcse", 1)
    assert changes_since("v1", [old], [moved(old, by=1e-9)]).scores == ()
    assert len(changes_since("v1", [old], [moved(old, by=1e-4)]).scores) == 8


def test_a_suite_that_was_scored_since_is_said() -> None:
    old = record("simcse", 1)
    more = replace(
        old,
        scores=(
            *old.scores,
            replace(old.scores[0], suite="cxc", task="CxC-STS", protocol="cxc-promcse/1"),
        ),
    )
    found = changes_since("v1", [old], [more])
    assert (
        found.lines == ("Scored on cxc as well: simcse (unsupervised, builtin).",)
        and found.scores == ()
    )


def test_suites_that_several_rows_lost_are_one_sentence() -> None:
    def both(made: RunRecord) -> RunRecord:
        return replace(
            made,
            scores=(
                *made.scores,
                replace(made.scores[0], suite="cxc", task="CxC-STS", protocol="cxc-promcse/1"),
            ),
        )

    new = [record(name, 1) for name in ("conpvp", "simcse")]
    found = changes_since("v1", [both(one) for one in new], new)
    assert found.lines == (
        "No scores on cxc any more: conpvp (unsupervised, builtin), simcse (unsupervised, builtin).",
    )


def test_reasons_that_all_rows_have_are_said_once_and_those_of_one_beside_it() -> None:
    old = [record(name, 1) for name in ("conpvp", "simcse")]
    new = [
        moved(old[0], packages={"torch": "3.0"}),
        moved(old[1], packages={"torch": "3.0"}, plugin={"sha256": "b" * 64}),
    ]
    lines = [one for one in changes_since("v1", old, new).lines if "before" in one]
    assert (
        lines[0]
        == "Every row whose scores changed differs in: library: torch 2.13.0 before, 3.0 now."
    )
    assert lines[1].startswith("conpvp (unsupervised, builtin): sts Avg.") and lines[1].endswith(
        " now."
    )
    assert lines[2].startswith("simcse (unsupervised, builtin): sts Avg.") and lines[2].endswith(
        " now; code: the method's."
    )
    alone = [one for one in changes_since("v1", old[1:], new[1:]).lines if "before" in one]
    assert len(alone) == 1 and alone[0].endswith(
        "; code: the method's; library: torch 2.13.0 before, 3.0 now."
    )


def test_a_reason_that_a_row_with_unseen_changes_lacks_is_not_that_of_every_row() -> None:
    old = [record(name, 1) for name in ("conpvp", "promcse", "simcse")]
    flat = replace(
        old[2],
        scores=tuple(replace(one, value=round(one.value, 2) + 0.001) for one in old[2].scores),
    )
    new = [moved(one, packages={"torch": "3.0"}) for one in old[:2]] + [
        moved(flat, by=0.001, plugin={"sha256": "b" * 64})
    ]
    lines = changes_since("v1", [*old[:2], flat], new).lines
    assert not [one for one in lines if one.startswith("Every row")]
    assert sum(one.endswith("library: torch 2.13.0 before, 3.0 now.") for one in lines) == 2


def test_what_is_printed_alike_is_counted_and_not_printed_twice() -> None:
    old = record("simcse", 1)
    values = [round(one.value, 2) + 0.001 for one in old.scores]
    old = replace(
        old,
        scores=tuple(
            replace(one, value=value) for one, value in zip(old.scores, values, strict=True)
        ),
    )
    found = changes_since("v1", [old], [moved(old, by=0.001)])
    assert len(found.scores) == 8
    assert (
        found.lines[-1] == "8 scores moved by less than 0.01: simcse (unsupervised, builtin)."
        and "before" not in " ".join(found.lines)
    )


def test_a_value_that_was_left_out_is_that_of_a_record_without_it() -> None:
    old = record("simcse", 1)
    none = {**old.recipe, "edit": RecipeValue(value=None, source="none")}
    assert {
        one.why for one in changes_since("v1", [old], [replace(moved(old), recipe=none)]).scores
    } == {("nothing that the records keep",)}
    given = {**old.recipe, "edit": RecipeValue(value="swap", source="none")}
    why = {
        one.why
        for one in changes_since(
            "v1", [replace(old, recipe=none)], [replace(moved(old), recipe=given)]
        ).scores
    }
    assert why == {("recipe: edit not set before, swap now",)}


def test_many_changes_make_few_lines() -> None:
    old = [record(f"m{i:02d}", 1) for i in range(30)]
    found = changes_since("v1", old, [moved(one) for one in old])
    assert len(found.scores) == 240 and len(found.lines) == 24
    assert found.lines[-1] == "Scores of 10 more rows changed." and "and 10 more" in found.lines[0]


def test_the_page_has_every_score_and_reason_where_the_reason_is_that_above_too() -> None:
    """Read from the page: two rows of eight tasks, the second with another reason from its fourth task on."""
    from bench.show.pages import engine

    old = [record(name, 1) for name in ("conpvp", "simcse")]
    found = changes_since("v1", old, [moved(old[0]), moved(old[1])])
    scores = tuple(
        dataclasses.replace(one, why=("seeds: <3> before, 4 now",)) if i > 10 else one
        for i, one in enumerate(found.scores)
    )
    found = dataclasses.replace(
        found,
        scores=scores,
        errata=("Erratum to v1: none.",),
        lines=("Erratum to v1: none.", *found.lines),
    )
    page = engine.render("changes.html", board=SimpleNamespace(version="v2"), changes=found, up=0)
    rows = [
        [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(<th scope=.row.*?)</tr>", page)
    ]
    assert sum(row[4] == "as above" for row in rows) == 16 - 3, (
        "each row's first, and the one with another reason"
    )
    for above, row in zip([[], *rows], rows, strict=False):
        if row[4] == "as above":
            assert row[0] == above[0]
            row[4] = above[4]
    assert rows == [
        [
            one.method,
            one.task,
            f"{one.before:.2f}",
            f"{one.after:.2f}",
            "; ".join(one.why),
            "builtin",
            "sts, senteval-all/1, tokenised",
        ]
        for one in scores
    ]
    assert (
        tuple(map(html.unescape, re.findall(r"<li>(.*?)</li>", page))) == found.lines[1:]
        and "<p>Erratum to v1: none.</p>" in page
    )


# --- verdicts ---


def table(
    verdict: str | None,
    mean: float = 70.0,
    runs: tuple[str, ...] = ("a", "b"),
    baseline: str = "simcse",
) -> dict[str, Any]:
    """As in tables.json: one method against a baseline on one task."""
    rows = [
        {
            "method": method,
            "variant": "",
            "differs": {},
            "runs": list(own),
            "cells": {"STS12": {"mean": value, "against": against}, "X": None},
        }
        for method, own, value, against in (
            ("simcse", ("s",), 60.0, None),
            ("promcse", runs, mean, None if verdict == "missing" else {"verdict": verdict}),
        )
    ]
    return {
        "table": {
            "setting": "unsupervised",
            "backbone": "builtin",
            "suite": "sts",
            "protocol": "p/1",
            "text": None,
            "baseline": baseline,
            "columns": ["STS12"],
            "rows": rows,
        }
    }


def changed(before: dict[str, Any], after: dict[str, Any], statistics: tuple[int, int]) -> Any:
    return changes_since(
        "v1", [], [], judged=(judgements([before]), judgements([after])), statistics=statistics
    )


def test_a_verdict_that_the_statistics_changed() -> None:
    found = changed(table("unknown"), table("better"), (1, 2))
    (one,) = found.verdicts
    assert (one.method, one.task, one.baseline, one.before, one.after) == (
        "promcse",
        "STS12",
        "simcse",
        "inconclusive",
        "better",
    )
    assert one.why == ("statistics: version 1 before, 2 now",) and found.same_verdicts == 0
    assert found.lines == (
        "1 of 1 verdicts changed (1 because of statistics: version 1 before, 2 now): tables/changes.csv has each.",
    )
    assert changed(table(None), table("better"), (1, 2)).verdicts[0].before == "not tested"


def test_a_verdict_that_the_statistics_did_not_change() -> None:
    assert changed(table("unknown"), table("better", 72.0), (1, 1)).verdicts[0].why == ("scores",)
    assert changed(table("unknown"), table("better", runs=("a", "b", "c")), (1, 1)).verdicts[
        0
    ].why == ("scores: of other runs",)
    assert changed(table("unknown"), table("better"), (2, 2)).verdicts[0].why == (
        "other rows of the table, with which it was adjusted",
    )
    both = changed(table("unknown"), table("better", 72.0), (1, 2)).verdicts[0].why
    assert both == ("statistics: version 1 before, 2 now", "scores")


def test_what_is_no_other_verdict() -> None:
    same = changed(table("better"), table("better", 75.0), (1, 2))
    assert same.verdicts == () and same.same_verdicts == 1 and same.lines == ()
    assert changed(table("better"), table("worse", baseline="promcse"), (1, 2)).verdicts == (), (
        "another question is no other answer"
    )
    assert changed(table("missing"), table("worse"), (1, 2)).verdicts == ()
