"""A suite's average and the verification of its scores do not depend on the order of its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factories import record
from msgspec.structs import replace as changed
from three_tasks import SETS, suite_of, task_of

from bench.base.errors import BenchError
from bench.base.findings import AGREES
from bench.board.verify.scores import check_scores
from bench.data.sets import DataFolder
from bench.records import Run, RunsFolder, Score
from bench.run.conformance.suites import stand_in
from bench.run.scoring import merge_scores
from bench.score.suites import (
    Suite,
    SuitePlugin,
    registry,
)


@pytest.fixture
def use_suite(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def use(suite: Suite) -> Suite:
        registry._checked(suite, "a test")
        made = SuitePlugin(suite, "three.py", "0" * 64)
        monkeypatch.setattr(registry, "_from_files", {"three": made})
        return suite

    yield use


def scored(suite: Suite, folder: Path) -> Run:
    """A run of the suite as ``bench run`` records it, with its predictions."""
    store, scores = RunsFolder(folder), tuple[Score, ...]()
    made = record("cls", 1, scores=())
    for task in suite.tasks:
        result = task.load(DataFolder(None)).score(stand_in)
        store.write_predictions(
            made.run_id, result.task, result.protocol, result.predictions, result.suite
        )
        scores = merge_scores(scores, result)
    made = changed(made, scores=scores)
    store.write(made)
    return Run(made, store.folder(made.run_id))


ORDERS = [tuple(SETS), tuple(reversed(SETS))]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_every_order_gives_one_average_and_verifies(order, use_suite, tmp_path) -> None:
    run = scored(use_suite(suite_of(order)), tmp_path)
    values = {score.task: score.value for score in run.scores}
    by_hand = {}
    for name in SETS:  # without the suite's code
        prediction = stand_in([f"{name} {i}" for i in range(len(SETS[name]))])[:, 0]
        order_of = np.argsort(np.argsort(prediction)), np.argsort(np.argsort(SETS[name]))
        by_hand[name] = 100 * float(np.corrcoef(*order_of)[0, 1])
    expected = round((round(by_hand["First"], 2) + round(by_hand["Second"], 2)) / 2, 2)
    assert values["Avg."] == pytest.approx(expected)
    assert values["First"] == pytest.approx(by_hand["First"])
    assert {score.metric for score in run.scores if score.task == "Avg."} == {"spearman"}
    wrong = [finding for finding in check_scores(run) if finding.kind in ("score", "average")]
    assert {finding.outcome for finding in wrong} == {AGREES}, wrong


IMPOSSIBLE = {
    "several metrics": (suite_of(("YesNo", "First"), ("YesNo", "First")), "metrics yes-no-share"),
    "several protocols": (
        replace(
            suite_of(("First", "Second")), tasks=(task_of("First"), task_of("Second", "three/2"))
        ),
        "protocols three/1 and three/2",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_average_that_no_run_could_have_is_refused_with_a_reason(name, use_suite) -> None:
    suite, reason = IMPOSSIBLE[name]
    with pytest.raises(BenchError, match=reason):
        use_suite(suite)
