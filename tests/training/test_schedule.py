"""Steps, learning rate, order of rows and the optimiser: each against another computation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from models import TOY_ROWS, Columns, toy, toy_recipe

from bench.method import adamw
from bench.method.budget import total_steps
from bench.method.optimizer import UncorrectedAdamW
from bench.training.batches import row_order
from bench.training.loop import run_loop


def test_the_rate_falls_as_in_the_authors_code(reference, tmp_path) -> None:
    given = reference["linear_lr"]
    method = toy(tmp_path, learning_rate=given["lr0"])
    for step, rate in given["lr_at_update_t"].items():
        assert method.learning_rate(int(step), given["T"]) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs", "max_steps", "steps"),
    [
        (1_000_000, 64, 1, None, 15_625),
        (275_601, 512, 3, None, 1_617),
        (10, 3, 2.5, None, 10),
        (10, 3, 5, 7, 7),
        (10, 3, 1, 7, 4),
    ],
)
def test_the_steps_are_those_of_the_papers(rows, batch_size, epochs, max_steps, steps):
    recipe = toy_recipe(batch_size=batch_size, epochs=epochs, max_steps=max_steps)
    assert total_steps(recipe, rows) == steps


@pytest.mark.parametrize(("rows", "batch_size"), [(10, 3), (12, 4), (5, 64)])
def test_every_epoch_shows_every_row_once_in_an_order_of_its_own(rows, batch_size):
    per_epoch = math.ceil(rows / batch_size)
    drawn = list(islice(row_order(42, rows, batch_size), 3 * per_epoch))
    assert [epoch for epoch, _ in drawn] == sorted([0, 1, 2] * per_epoch)
    sizes = [min(batch_size, rows - start) for start in range(0, rows, batch_size)]
    assert [len(batch) for _, batch in drawn[:per_epoch]] == sizes
    epochs = [np.concatenate([rows for e, rows in drawn if e == i]).tolist() for i in range(3)]
    assert all(sorted(epoch) == list(range(rows)) for epoch in epochs)
    if rows > 4:
        assert epochs[0] != epochs[1] != epochs[2]
        other = islice(row_order(43, rows, batch_size), per_epoch)
        assert np.concatenate([batch for _, batch in other]).tolist() != epochs[0]


def test_training_stops_when_patience_is_out(tmp_path: Path) -> None:
    # two in a row that are not better than 30: stop after the fourth
    scores = iter([10.0, 30.0, 20.0, 30.0, 29.0, 99.0])
    method = toy(tmp_path, epochs=10, eval_steps=2, patience=2)
    method.context = replace(method.context, dev_score=lambda method: next(scores))
    report = run_loop(method, Columns(TOY_ROWS), method.context)
    assert (report.steps, report.best_step, report.dev_score) == (8, 4, 30.0)


class Adam:
    """AdamW by hand (Loshchilov and Hutter 2019, algorithm 2), betas 0.9 and 0.999, eps 1e-8 on the
    corrected root.
    """

    def __init__(self, values: list[np.ndarray], decays: list[float]) -> None:
        self.values, self.decays, self.t = values, decays, 0
        self.m, self.v = ([np.zeros_like(value) for value in values] for _ in range(2))

    def step(self, gradients: list[np.ndarray], rate: float) -> None:
        self.t += 1
        for i, g in enumerate(gradients):
            self.m[i] = 0.9 * self.m[i] + 0.1 * g
            self.v[i] = 0.999 * self.v[i] + 0.001 * g * g
            root = np.sqrt(self.v[i] / (1 - 0.999**self.t))
            step = self.decays[i] * self.values[i] + self.m[i] / (1 - 0.9**self.t) / (root + 1e-8)
            self.values[i] = self.values[i] - rate * step

    def assert_is(self, dense: torch.nn.Linear, atol: float) -> None:
        for ours, wanted in zip((dense.weight, dense.bias), self.values, strict=True):
            np.testing.assert_allclose(ours.detach(), wanted, rtol=0, atol=atol)


def numbers(dense: torch.nn.Linear) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in (dense.weight, dense.bias)]


@pytest.mark.parametrize("fused", [True, False])
def test_without_bias_correction_it_is_berts_own_written_by_hand(tmp_path, fused):
    """BERT's optimization.py, in numpy; rate and state change as they do in a training that is
    resumed.
    """
    method = toy(tmp_path, weight_decay=0.1)
    weight = method.dense.weight

    def made() -> UncorrectedAdamW:
        if fused:
            optimizer = adamw(method, eps=1e-7, bias_correction=False)
            assert isinstance(optimizer, UncorrectedAdamW)
            return optimizer
        return UncorrectedAdamW([weight], eps=1e-7, weight_decay=0.1)

    optimizer = made()
    wanted = weight.detach().numpy().copy()
    m, v, rng = np.zeros_like(wanted), np.zeros_like(wanted), np.random.default_rng(0)
    for t in range(8):
        rate = 0.02 / (t + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        g = rng.normal(size=(2, 5)) * 10.0 ** rng.integers(-9, 3)
        weight.grad, method.dense.bias.grad = torch.tensor(g), torch.zeros(2, dtype=torch.float64)
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        wanted = wanted - rate * (m / (np.sqrt(v) + 1e-7) + 0.1 * wanted)
        np.testing.assert_allclose(weight.detach(), wanted, rtol=0, atol=1e-12)
        group = optimizer.param_groups[0]
        assert (group["lr"], group["eps"], group["weight_decay"]) == (rate, 1e-7, 0.1)
        if t == 3:
            state = optimizer.state_dict()
            optimizer = made()
            optimizer.load_state_dict(state)


@pytest.mark.parametrize("clip", [1.0, 0.0])
def test_a_whole_training_is_a_loop_written_by_hand(tmp_path: Path, clip: float) -> None:
    """Order, loss, clipping at the global norm, decay of the rate, warm-up and AdamW together, in
    numpy.
    """
    values = {"epochs": 2, "weight_decay": 0.05, "warmup_steps": 2, "learning_rate": 0.1}
    method = toy(tmp_path, max_grad_norm=clip, **values)
    weight, bias = numbers(method.dense)
    method.context = replace(method.context, seed=7)
    report = run_loop(method, Columns(TOY_ROWS), method.context)

    by_hand, steps, losses = Adam([weight, bias], [0.05, 0.0]), 2 * math.ceil(len(TOY_ROWS) / 3), []
    clipped = 0
    for done, (_, rows) in enumerate(islice(row_order(7, len(TOY_ROWS), 3), steps)):
        total, grad_weight, grad_bias = 0.0, np.zeros_like(weight), np.zeros_like(bias)
        for row in rows:
            counts = np.zeros(5)
            for token in TOY_ROWS[row]:
                counts[token] += 1
            error = by_hand.values[0] @ counts + by_hand.values[1] - sum(TOY_ROWS[row]) / 10
            total += float(error @ error) / (2 * len(rows))
            grad_weight += np.outer(error, counts) / len(rows)
            grad_bias += error / len(rows)
        norm = math.sqrt((grad_weight**2).sum() + (grad_bias**2).sum())
        if clip and norm > clip:
            clipped += 1
            grad_weight, grad_bias = grad_weight * clip / norm, grad_bias * clip / norm
        rate = 0.1 * done / 2 if done < 2 else 0.1 * (steps - done) / (steps - 2)
        by_hand.step([grad_weight, grad_bias], rate)
        losses.append(total)
    by_hand.assert_is(method.dense, 2e-6 if clip else 1e-10)
    assert bool(clipped) == bool(clip)
    found = report.steps, report.best_step, report.sentences, report.dev_score
    assert found == (steps, steps, 2 * len(TOY_ROWS), None)
    from bench.records.curve import read_curve

    (entry,) = read_curve(tmp_path)
    assert entry["step"] == steps
    assert entry["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert entry["half"] == pytest.approx(np.mean(losses) / 2, abs=1e-5)
    assert entry["learning_rate"] == pytest.approx(0.1 * 1 / (steps - 2))
    assert entry["sentences_per_second"] > 0
