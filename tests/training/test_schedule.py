"""Steps, learning rate, order of rows and the optimiser: each against another computation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from models import TOY_ROWS, Columns, Toy, toy, toy_recipe

from bench.base.errors import BenchError
from bench.method import Batch, UncorrectedAdamW, adamw
from bench.method.features import pad
from bench.method.torch_method import learning_rate_at, scheduled_rate
from bench.training.batches import row_order
from bench.training.horizon import total_steps
from bench.training.loop import run_loop


def test_the_rate_falls_as_in_the_authors_code(reference) -> None:
    given = reference["linear_lr"]
    for step, rate in given["lr_at_update_t"].items():
        assert learning_rate_at(int(step), peak=given["lr0"], steps=given["T"]) == pytest.approx(
            rate, abs=1e-12
        )


def test_a_warm_up_rises_from_zero_to_the_peak_and_then_falls_to_zero() -> None:
    rates = [learning_rate_at(t, peak=2.0, steps=10, warmup=4) for t in range(11)]
    assert rates == pytest.approx([0, 0.5, 1, 1.5, 2, 2 * 5 / 6, 2 * 4 / 6, 1, 2 * 2 / 6, 2 / 6, 0])


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs", "max_steps", "steps"),
    [
        (1_000_000, 64, 1, None, 15_625),
        (1_000_000, 512, 1, None, 1_954),
        (275_601, 512, 3, None, 1_617),
        (10, 3, 1, None, 4),
        (10, 3, 2.5, None, 10),
        (10, 3, 5, 7, 7),
        (10, 3, 1, 7, 4),
        (2, 64, 1, None, 1),
    ],
)
def test_the_steps_are_those_of_the_papers(
    rows: int, batch_size: int, epochs: float, max_steps: int | None, steps: int
) -> None:
    recipe = toy_recipe(batch_size=batch_size, epochs=epochs, max_steps=max_steps)
    assert total_steps(recipe, rows) == steps


@pytest.mark.parametrize(("rows", "batch_size"), [(10, 3), (12, 4), (5, 64), (1, 1)])
def test_every_epoch_shows_every_row_once_in_an_order_of_its_own(
    rows: int, batch_size: int
) -> None:
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


@pytest.mark.parametrize(
    ("rows", "batch_size", "sizes"), [(10, 3, [3, 3, 3]), (12, 4, [4, 4, 4]), (5, 64, [5])]
)
def test_the_last_short_batch_can_be_dropped(rows: int, batch_size: int, sizes: list[int]) -> None:
    """As long as there is a whole one; the rows that are left out change from epoch to epoch."""
    recipe = toy_recipe(batch_size=batch_size, drop_last=True, epochs=4)
    assert total_steps(recipe, rows) == 4 * len(sizes)
    drawn = list(islice(row_order(42, rows, batch_size, drop_last=True), 4 * len(sizes)))
    for epoch in range(4):
        assert [len(batch) for e, batch in drawn if e == epoch] == sizes
    if len(sizes) * batch_size < rows:
        shown = [np.concatenate([batch for e, batch in drawn if e == i]) for i in range(4)]
        assert len({frozenset(rows.tolist()) for rows in shown}) > 1


def test_a_constant_schedule_stays_and_a_ratio_is_a_share_of_all_steps() -> None:
    recipe = toy_recipe(schedule="constant", warmup_steps=2, learning_rate=4.0)
    assert [scheduled_rate(recipe, t, 10) for t in range(6)] == [0, 2, 4, 4, 4, 4]
    recipe = toy_recipe(warmup_ratio=0.4, learning_rate=2.0)
    wanted = [learning_rate_at(t, peak=2.0, steps=10, warmup=4) for t in range(11)]
    assert [scheduled_rate(recipe, t, 10) for t in range(11)] == wanted


def test_an_unknown_schedule_is_refused_before_the_first_step(tmp_path: Path) -> None:
    method = toy(tmp_path, schedule="cosine")
    with pytest.raises(BenchError, match="schedule=cosine"):
        run_loop(method, Columns(TOY_ROWS), method.context)
    assert method.seen == []


def test_training_stops_when_patience_is_out(tmp_path: Path) -> None:
    # two in a row that are not better than 30: stop after the fourth
    scores = iter([10.0, 30.0, 20.0, 30.0, 29.0, 99.0])
    method = toy(tmp_path, epochs=10, eval_steps=2, patience=2)
    method.context = replace(method.context, dev_score=lambda method: next(scores))
    report = run_loop(method, Columns(TOY_ROWS), method.context)
    assert (report.steps, report.best_step, report.dev_score) == (8, 4, 30.0)


class Larger(Toy):
    """Draws random numbers and has more modules: the order of the rows must not notice."""

    def build(self, backbone=None, recipe=None) -> None:
        super().build(backbone, recipe)
        self.more = torch.nn.Linear(3, 3)

    def forward(self, batch: Batch):
        torch.rand(7), np.random.rand(3)
        loss = super().forward(batch)
        loss.total = loss.total + self.more.weight.sum() * torch.rand(())
        return loss


def test_the_order_of_rows_is_the_same_for_every_method(tmp_path: Path) -> None:
    one = toy(tmp_path / "one", epochs=2)
    other = Larger()
    other.build(recipe=toy_recipe(epochs=2))
    other.context = one.context.__class__(folder=tmp_path / "other")
    for method in (one, other):
        run_loop(method, Columns(TOY_ROWS), method.context)
    assert one.seen == other.seen
    assert sorted(sum(one.seen[:3], [])) == sorted(row[0] for row in TOY_ROWS)


class Adam:
    """AdamW by hand (Loshchilov and Hutter 2019, algorithm 2), betas 0.9 and 0.999, eps 1e-8 on the corrected root."""

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


def test_the_optimiser_is_adamw_written_by_hand(tmp_path: Path) -> None:
    method = toy(tmp_path, weight_decay=0.1, learning_rate=0.02)
    optimizer = adamw(method)
    by_hand = Adam(numbers(method.dense), [0.1, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(6):
        gradients = [rng.normal(size=(2, 5)) * 10.0 ** rng.integers(-9, 3), rng.normal(size=2)]
        method.dense.weight.grad, method.dense.bias.grad = (torch.tensor(g) for g in gradients)
        optimizer.step()
        by_hand.step(gradients, 0.02)
        by_hand.assert_is(method.dense, 1e-12)


def test_who_asks_to_be_told_of_a_step_is_told_once() -> None:
    """torch wraps the step of each class that was used: a step that calls another class's would be two."""
    weight, told = torch.nn.Parameter(torch.ones(2)), list[str]()
    torch.optim.AdamW([weight])
    optimizer = UncorrectedAdamW([weight])
    optimizer.register_step_pre_hook(lambda *_: told.append("before"))
    optimizer.register_step_post_hook(lambda *_: told.append("after"))
    weight.grad = torch.ones(2)
    optimizer.step()
    assert told == ["before", "after"] and not weight.detach().eq(1).any()


@pytest.mark.parametrize("fused", [True, False])
def test_without_bias_correction_it_is_berts_own_written_by_hand(
    tmp_path: Path, fused: bool
) -> None:
    """BERT's optimization.py, in numpy; rate and state change as they do in a training that is resumed."""
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
    """Order, loss, clipping at the global norm, decay of the rate, warm-up and AdamW together, in numpy."""
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
    from bench.runs.intact import read_curve

    (entry,) = read_curve(tmp_path)
    assert entry["step"] == steps
    assert entry["loss"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert entry["half"] == pytest.approx(np.mean(losses) / 2, abs=1e-5)
    assert entry["learning_rate"] == pytest.approx(0.1 * 1 / (steps - 2))
    assert entry["sentences_per_second"] > 0


def test_rows_of_a_batch_are_cut_and_padded(tmp_path: Path) -> None:
    from bench.training.batches import batch_of

    method = toy(tmp_path, max_seq_length=3)
    method.before, method.after = [4], []
    features = batch_of(method, Columns([[1], [2, 3, 1, 2], [3, 3]]), 0, np.array([1, 0]), 9)
    assert features.step == 9 and features.size == 2
    assert features.columns[0]["input_ids"].tolist() == [[4, 2, 3], [4, 1, 0]]
    assert features.columns[0]["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert pad([], 0)["input_ids"].shape == (0, 0)
