"""SBERT: its loss and gradient against numpy, and what trains and what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from models import built, sentences
from torch.nn.functional import cross_entropy

from bench.method import Batch, UncorrectedAdamW
from methods.sbert import SBERT, pair_features

BACKBONES = ("tiny", "tiny_roberta")


def batch_of(method: SBERT, n: int = 5, labels: list[int] | None = None) -> Batch:
    """As the training loop makes it, of a labelled corpus."""
    rows = {"sent0": sentences(n, seed=1), "sent1": sentences(n, seed=2, longest=20)}
    columns = {name: method.backbone.ids(texts) for name, texts in rows.items()}
    columns["label"] = [[label] for label in labels or [i % 3 for i in range(n)]]
    return Batch(method.collate(columns, np.arange(n), 0))


@pytest.fixture(params=BACKBONES)
def method(request: pytest.FixtureRequest, tmp_path: Path) -> SBERT:
    return built(
        SBERT, request.getfixturevalue(request.param), tmp_path, setting="supervised", dropout=0.0
    )


def test_loss_and_gradient_of_the_classifier_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    u, v, W, b = (
        rng.normal(size=(4, 5)),
        rng.normal(size=(4, 5)),
        rng.normal(size=(3, 15)),
        rng.normal(size=3),
    )
    labels = np.array([0, 2, 1, 2])
    x = np.concatenate([u, v, np.abs(u - v)], axis=1)
    logits = x @ W.T + b
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = -np.log(p[range(4), labels]).mean()
    error = (p - np.eye(3)[labels]) / 4  # d loss / d logits
    du, sign = error @ W[:, :5] + error @ W[:, 10:] * np.sign(u - v), np.sign(u - v)
    dv = error @ W[:, 5:10] - error @ W[:, 10:] * sign
    tu, tv, tW = (torch.tensor(a, requires_grad=True) for a in (u, v, W))
    loss = cross_entropy(pair_features(tu, tv) @ tW.T + torch.tensor(b), torch.tensor(labels))
    loss.backward()
    assert loss.item() == pytest.approx(wanted, abs=1e-12)
    for given, found in ((du, tu.grad), (dv, tv.grad), (error.T @ x, tW.grad)):
        np.testing.assert_allclose(found, given, rtol=0, atol=1e-12)


def test_the_loss_is_that_of_the_scored_vectors_and_the_labels(method: SBERT) -> None:
    labels = [2, 0, 1, 1, 0]
    with torch.no_grad():
        found = method(batch_of(method, labels=labels)).total.item()
    u, v = (
        method.encode(texts).astype(float)
        for texts in (sentences(5, seed=1), sentences(5, seed=2, longest=20))
    )
    W, b = (p.detach().double().numpy() for p in (method.classifier.weight, method.classifier.bias))
    logits = np.concatenate([u, v, np.abs(u - v)], axis=1) @ W.T + b
    wanted = np.mean(np.log(np.exp(logits).sum(1)) - logits[range(5), labels])
    assert found == pytest.approx(wanted, abs=1e-5)


def test_what_is_scored_is_the_mean_over_the_tokens_of_the_last_layer(method: SBERT) -> None:
    texts = sentences(4, seed=3)
    for text, vector in zip(texts, method.encode(texts), strict=True):
        ids = torch.tensor([[*method.before, *method.token_ids([text])[0], *method.after]])
        with torch.no_grad():
            np.testing.assert_allclose(
                vector,
                method.encoder(input_ids=ids).last_hidden_state[0].mean(0),
                rtol=0,
                atol=1e-5,
            )


def test_encoder_and_classifier_train_and_only_the_encoder_is_kept(
    method: SBERT, tmp_path: Path
) -> None:
    names = {name for name, p in method.named_parameters() if p.requires_grad}
    assert names == {f"encoder.{name}" for name, _ in method.encoder.named_parameters()} | {
        "classifier.weight",
        "classifier.bias",
    }
    assert method.classifier.weight.shape == (3, 96)
    method(batch_of(method)).total.backward()
    assert all(
        p.grad is not None and p.grad.abs().sum() > 0
        for name, p in method.named_parameters()
        if "key.bias" not in name
    )
    kept, resumed = method.trained_state().keys(), method.training_state().keys()
    assert not [name for name in kept if not name.startswith("encoder.")]
    assert {"classifier.weight", "classifier.bias"} | kept == resumed
    method.save(tmp_path / "saved")
    with torch.no_grad():
        before = method.encode(sentences(3))
        for p in method.parameters():
            p.add_(0.1)
    method.load(tmp_path / "saved")
    np.testing.assert_array_equal(method.encode(sentences(3)), before)


def test_it_needs_labels_and_says_so(method: SBERT) -> None:
    assert SBERT.needs("supervised", method.recipe) == ("labelled",)
    features = batch_of(method).columns
    assert (
        features[2]["labels"].tolist() == [0, 1, 2, 0, 1] and features[0]["input_ids"].shape[0] == 5
    )


def test_the_recipe_is_the_example_s(method: SBERT) -> None:
    recipe = method.recipe
    wanted = {
        "batch_size": 16,
        "learning_rate": 2e-5,
        "warmup_ratio": 0.1,
        "max_seq_length": 128,
        "epochs": 1,
    }
    assert {key: recipe[key] for key in wanted} == wanted
    optimizer = (
        method.optimizer()
    )  # the library's of that time: AdamW, eps 1e-6, correct_bias False
    assert isinstance(optimizer, UncorrectedAdamW) and {
        group["eps"] for group in optimizer.param_groups
    } == {1e-6}
    assert method.learning_rate(0, 1000) == 0 and method.learning_rate(100, 1000) == 2e-5
