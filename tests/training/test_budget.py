"""How long a training may be, in every unit: the budget as written, the end of the training, and
the end of its schedule.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from models import TOY_ROWS, Columns, Toy, toy, toy_recipe

from bench.base.errors import Interrupted
from bench.method import Context, Method, Value
from bench.method.budget import Budget, canonical_budget, parse_budget, total_steps
from bench.method.recipe_files import Entry
from bench.method.recipes import merge_recipe
from bench.records.curve import read_curve
from bench.training import states, trainer
from bench.training.batches import row_order
from bench.training.loop import run_loop

TOKENS = [len(row) for row in TOY_ROWS]


SAID = {"10 min": (600, "s"), "1.5h": (5400, "s"), "1step": (1, "steps")}
SAID |= {"3e7tokens": (3e7, "tokens"), "0.5GPU-H": (1800, "gpu-s")}


@pytest.mark.parametrize(("text", "budget"), SAID.items())
def test_what_a_budget_says(text: str, budget: tuple[float, str]) -> None:
    assert parse_budget(text) == Budget(*budget)
    assert parse_budget(canonical_budget(text)) == parse_budget(text)


class Made(Method):
    name, settings = "made", ("unsupervised",)


def test_a_budget_takes_the_place_of_the_epochs() -> None:
    values = merge_recipe(Made, None, "", {"budget": "10m"}, trained=True).values_with_source()
    assert (values["budget"].value, values["budget"].source) == ("600s", "--set")
    assert values["epochs"].value is None
    given = {"budget": Value("1h", "table 3")}
    written = Entry("unsupervised", "bert-base-uncased", "", given, None, None)
    assert merge_recipe(Made, written, "", {}, trained=True).budget == "3600s"
    again = merge_recipe(Made, written, "", {"epochs": "2"}, trained=True)
    assert "budget" not in again and again.epochs == 2


def steps_by_counting(batch_size: int, rows: int, wanted: int, drop_last: bool) -> int:
    seen = 0
    for step, (_, batch) in enumerate(row_order(1, rows, batch_size, drop_last), 1):
        seen += len(batch)
        if seen >= wanted:
            return step
    raise AssertionError


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("wanted", [1, 10, 33])
def test_sentences_end_with_the_step_that_reaches_them(wanted: int, drop_last: bool) -> None:
    for rows, batch_size in ((10, 3), (12, 4), (5, 64)):
        values = {"batch_size": batch_size, "drop_last": drop_last, "epochs": None}
        recipe = toy_recipe(budget=f"{wanted}sentences", **values)
        assert total_steps(recipe, rows) == steps_by_counting(batch_size, rows, wanted, drop_last)


def train(folder: Path, budget: str, clock: Any = None, **values: Any) -> tuple[Any, Toy]:
    method = toy(folder, budget=budget, epochs=None, **values)
    return run_loop(method, Columns(TOY_ROWS), method.context), method


def test_no_step_keeps_the_untrained_start(tmp_path: Path) -> None:
    report, method = train(tmp_path, "0steps")
    start = toy(tmp_path / "start", budget="1steps", epochs=None).state_dict()
    assert (report.steps, report.best_step, report.dev_score) == (0, 0, None)
    for name, weights in method.state_dict().items():
        assert weights.equal(start[name]), name


def test_tokens_are_counted_without_padding_and_end_the_training(tmp_path: Path) -> None:
    wanted, seen, steps = 40, 0, 0
    for _, rows in row_order(42, len(TOY_ROWS), 3):
        seen, steps = seen + sum(TOKENS[row] for row in rows), steps + 1
        if seen >= wanted:
            break
    report, _ = train(tmp_path, f"{wanted}tokens")
    assert (report.steps, report.tokens) == (steps, seen)


def test_the_rate_of_a_token_budget_falls_with_its_share(tmp_path, monkeypatch):
    """Linear to 0 at the budget's end: before each step, 1 - tokens so far / budget."""
    monkeypatch.setattr(trainer, "LOG_EVERY", 1)
    report, _ = train(tmp_path, "400tokens", learning_rate=2.0)
    rates = [entry["learning_rate"] for entry in read_curve(tmp_path)]
    assert len(rates) == report.steps > 30
    spent = 0
    order = islice(row_order(42, len(TOY_ROWS), 3), report.steps)
    for rate, (_, rows) in zip(rates, order, strict=True):
        # steps are whole numbers
        assert rate == pytest.approx(2.0 * (1 - spent / 400), abs=2.0 / report.steps / 2)
        spent += sum(TOKENS[row] for row in rows)
    assert rates[-1] < 0.1


class Clock:
    """Every look at it takes a quarter of a second: a step, which looks twice, too."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.25
        return self.now


def test_seconds_end_the_training_and_dev_scores_do_not_count(tmp_path, monkeypatch):
    clock = Clock()
    ticking = SimpleNamespace(perf_counter=clock, monotonic=lambda: 0.0)
    for module in (states, trainer):
        monkeypatch.setattr(module, "time", ticking)
    method = toy(tmp_path, budget="5s", epochs=None, eval_steps=2, select_on="scripted")

    def dev_score(method: Any) -> float:
        clock.now += 1000.0
        return 1.0

    method.context = replace(method.context, dev_score=dev_score)
    report = run_loop(method, Columns(TOY_ROWS), method.context)
    assert report.steps == 20 and report.train_seconds == pytest.approx(5)
    assert report.dev_seconds > 1000


@pytest.mark.parametrize("budget", ["45sentences", "90tokens"])
def test_a_budget_is_counted_over_all_sittings(tmp_path: Path, budget: str) -> None:
    wanted, whole = train(tmp_path / "whole", budget)
    asked, sittings, report = count(1), 0, None
    while report is None:
        context = Context(folder=tmp_path / "parts", should_stop=lambda: next(asked) % 6 == 0)
        method = toy(tmp_path, context, budget=budget, epochs=None)
        sittings += 1
        with suppress(Interrupted):
            report = run_loop(method, Columns(TOY_ROWS), context)
    assert sittings > 2
    counted = [(one.steps, one.sentences, one.tokens) for one in (report, wanted)]
    assert counted[0] == counted[1]
    assert torch.equal(method.dense.weight, whole.dense.weight)
    assert math.isfinite(report.train_seconds)
