"""Contrastive Tension: its loss against numbers made elsewhere, its pairs, its two copies and which
one is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import rows_of
from models import built, sentences
from safetensors.torch import load_file

from bench.method import Batch
from bench.methods.ct import CT, tension


@pytest.fixture
def method(backbone: str, tmp_path: Path) -> CT:
    return built(CT, backbone, tmp_path, setting="unsupervised")


def ids_of(method: CT, n: int, seed: int = 1) -> list[list[int]]:
    """Sentences that are all different."""
    texts = enumerate(sentences(n, seed=seed))
    return method.backbone.ids([f"{text} {'book ' * i}" for i, text in texts])


def batch_of(method: CT, n: int = 16, epoch: int = 0) -> Batch:
    return Batch(method.collate({"sentence": ids_of(method, n)}, np.arange(n), epoch))


def test_loss_and_gradient_equal_the_reference_values(reference, reference_b):
    inputs = reference["contrastive"]["inputs"]
    known = reference["other_baselines"]["contrastive_tension_bce"]
    labels = torch.tensor(known["labels"])
    a, b = (torch.tensor(inputs[name], dtype=torch.float64) for name in ("z1", "z2"))
    assert (a * b).sum(1).tolist() == pytest.approx(known["logits_dot_product"], abs=1e-12)
    assert tension(a, b, labels).item() == pytest.approx(known["loss"], abs=1e-11)

    known = reference_b["ct"]
    inputs = reference_b["inputs"]
    a, b = (
        torch.tensor(inputs[name], dtype=torch.float64, requires_grad=True)
        for name in ("v", "c_pos")
    )
    y = np.array(known["labels"])
    loss = tension(a, b, torch.tensor(y))
    assert loss.item() == pytest.approx(known["loss_mean_bce"], abs=1e-11)
    loss.backward()
    pull = (1 / (1 + np.exp(-np.array(known["dot"]))) - y)[:, None] / 4
    np.testing.assert_allclose(a.grad, pull * b.detach().numpy(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(b.grad, pull * a.detach().numpy(), rtol=0, atol=1e-10)


def test_one_pair_of_eight_is_a_sentence_with_itself(method: CT) -> None:
    ids = ids_of(method, 16)
    one, other, extra = batch_of(method).columns
    labels = extra["labels"].tolist()
    assert labels == [1.0, *[0.0] * 7] * 2
    texts, second = rows_of(one), rows_of(other)
    assert texts == [[*method.before, *row, *method.after] for row in ids], "every row once"
    assert [a == b for a, b in zip(texts, second, strict=True)] == [bool(label) for label in labels]
    assert all(row in texts for row in second)


def moved(method: CT, by: float) -> None:
    with torch.no_grad():
        for p in method.second.parameters():
            p.mul_(by)


def test_the_loss_is_that_of_dot_products_of_masked_means_without_dropout(method: CT) -> None:
    method.train()
    moved(method, 1.01)
    batch = batch_of(method)
    one, other, labels = batch.columns

    def means(copy: Any, view: Any) -> list[np.ndarray]:
        rows = [torch.tensor([ids]) for ids in rows_of(view)]
        return [copy(input_ids=ids).last_hidden_state[0].double().mean(0).numpy() for ids in rows]

    with torch.no_grad():
        found = method(batch).total.item()
        pairs = zip(means(method.encoder, one), means(method.second, other), strict=True)
        z = np.array([float(u @ v) for u, v in pairs])
    y = labels["labels"].numpy()
    wanted = np.mean(np.where(y == 1, np.logaddexp(0, -z), np.logaddexp(0, z)))
    assert found == pytest.approx(wanted, rel=1e-4)


def assert_is(stored: dict[str, torch.Tensor], copy: torch.nn.Module) -> None:
    """One copy, where other methods look for it."""
    state = {f"encoder.{name}": tensor for name, tensor in copy.state_dict().items()}
    assert stored.keys() == state.keys()
    assert all(torch.equal(stored[name], tensor) for name, tensor in state.items())


@pytest.mark.parametrize("better", ["encoder", "second"])
def test_dev_scores_both_copies_and_the_better_one_is_kept(method, tmp_path, better):
    moved(method, 1.1)
    texts = sentences(3)
    first = method.encode(texts)
    seen: list[bool] = []

    def score(given: Any) -> float:
        seen.append(np.array_equal(given.encode(texts), first))
        return 70.0 if seen[-1] == (better == "encoder") else 60.0

    assert method.dev_score(score) == 70.0
    assert seen == [True, False]
    wanted = getattr(method, better)
    vectors = method.encode(texts)
    method.save(tmp_path / "saved")
    stored = load_file(tmp_path / "saved" / "trained.safetensors")
    assert_is(stored, wanted)
    method.load(tmp_path / "saved")
    np.testing.assert_array_equal(method.encode(texts), vectors)


def test_the_rates_are_those_of_the_table(method: CT) -> None:
    wanted = {0: 1e-5, 500: 1e-5, 501: 8e-6, 1000: 8e-6, 1001: 6e-6, 1501: 4e-6, 2000: 4e-6}
    wanted |= {2001: 2e-6, 4999: 2e-6}
    assert {step: method.learning_rate(step, 5000) for step in wanted} == pytest.approx(wanted)


def test_the_optimiser_is_rmsprop_as_keras_has_it(method: CT) -> None:
    """One update by hand: v = 0.1 g^2, step = lr g / (sqrt(v) + 1e-7)."""
    optimizer = method.optimizer()
    p = method.encoder.embeddings.word_embeddings.weight
    before = p.detach().clone()
    method(batch_of(method)).total.backward()
    optimizer.step()
    assert p.grad is not None
    g = p.grad.double()
    wanted = before.double() - 1e-5 * g / ((0.1 * g**2).sqrt() + 1e-7)
    np.testing.assert_allclose(p.detach(), wanted, rtol=0, atol=1e-7)
    assert not torch.equal(p, before)
