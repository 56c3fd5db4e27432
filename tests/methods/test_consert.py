"""ConSERT: loss against the reference, the views at the embedding layer, pooling while training and
at test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of, nt_xent, views
from models import built, sentences

from bench.method import Batch
from bench.methods.consert import ConSERT


@pytest.fixture
def build(backbone: str, tmp_path: Path) -> Callable[..., ConSERT]:
    return partial(built, ConSERT, backbone, tmp_path, setting="unsupervised")


def pooled(
    method: ConSERT,
    views: tuple[dict[str, torch.Tensor], ...],
    embeddings: torch.Tensor,
    layers: int,
) -> list[np.ndarray]:
    """Masked means of the last ``layers`` layers, from embeddings on, layer by layer."""
    found = []
    for view, given in zip(views, embeddings.chunk(2), strict=True):
        states, mask = [given], view["attention_mask"]
        for layer in method.encoder.encoder.layer:
            out = layer(states[-1], attention_mask=mask[:, None, None, :].bool())
            states.append(out if isinstance(out, torch.Tensor) else out[0])
        top, weights = sum(states[-layers:]) / layers, mask[:, :, None]  # type: ignore[operator]
        found.append(((top * weights).sum(1) / weights.sum(1)).numpy())
    return found


@pytest.mark.parametrize(("train_pooling", "layers"), [("avg", 1), ("avg_top2", 2)])
def test_the_loss_follows_from_cut_features_and_shuffled_positions(build, train_pooling, layers):
    """Every step by hand, in float64: embeddings, cut-off, layers, means, loss."""
    method = build(train_pooling=train_pooling).double()
    batch, seen = batch_of(method, TEXTS), []
    method.encoder.encoder.register_forward_pre_hook(lambda _m, given: seen.append(given[0]))
    first, second = batch.columns
    with torch.no_grad():
        found = method.train()(batch)
        (embeddings,) = seen
        plain = method.encoder.embeddings(input_ids=first["input_ids"])
        cut, mixed = embeddings.chunk(2)
        real = first["attention_mask"].bool()
        lost = (cut == 0) & (plain != 0)
        for i in range(len(TEXTS)):
            columns = lost[i].all(0)
            assert columns.sum() == int(0.2 * 32)
            assert torch.equal(lost[i], columns.expand_as(lost[i]))
        torch.testing.assert_close(cut[real], plain.masked_fill(lost, 0)[real], rtol=0, atol=1e-12)
        places = {"input_ids": first["input_ids"], "position_ids": second["position_ids"]}
        again = method.encoder.embeddings(**places)
        torch.testing.assert_close(mixed[real], again[real], rtol=0, atol=1e-12)
        assert not torch.allclose(mixed[real], plain[real])
        z1, z2 = pooled(method, batch.columns, embeddings, layers)
    wanted = 2 * nt_xent(z1, z2, 0.1)
    assert found.parts["contrast"].item() == pytest.approx(wanted, abs=1e-10)
    assert found.total.item() == pytest.approx(0.15 * wanted, abs=1e-10)


@pytest.mark.parametrize("kind", ["none", "feature-cutoff", "token-cutoff", "dropout"])
def test_the_cutoffs_of_each_view(build: Callable[..., ConSERT], kind: str) -> None:
    method = build(view1="none", view2=kind, rate2=0.3)
    plain, cut = views(method, TEXTS)
    assert plain["kept"].all() and torch.equal(plain["position_ids"], cut["position_ids"])
    for keep, mask in zip(cut["kept"], plain["attention_mask"], strict=True):
        tokens = int(mask.sum())
        lost = ~keep
        if kind == "none":
            assert keep.all()
        elif kind == "feature-cutoff":
            assert lost.any(0).sum() == int(0.3 * 32) and torch.equal(lost.any(0), lost.all(0))
        else:
            assert keep[tokens:].all(), "padding is not cut, or fewer tokens are"
            wholly = kind == "token-cutoff"
            assert lost.sum() == (int(0.3 * tokens) * 32 if wholly else int(0.3 * tokens * 32))
            assert kind == "dropout" or torch.equal(lost.any(1), lost.all(1))


JOINT: dict[str, Any] = {"classifier": True, "view1": "none", "view2": "token-cutoff", "rate2": 0.3}


@pytest.fixture
def joint(backbone: str, tmp_path: Path) -> ConSERT:
    return built(ConSERT, backbone, tmp_path, setting="supervised", **JOINT)


def labelled(method: ConSERT, labels: list[int]) -> Batch:
    texts = sentences(len(labels), seed=1), sentences(len(labels), seed=2, longest=20)
    return batch_of(method, *texts, labels=labels)


def test_the_supervised_loss_follows_from_the_four_views_in_plain_loops(joint: ConSERT) -> None:
    """Vectors from the encoder in float64; classification and both contrasts written out, number by
    number.
    """
    method, labels = joint.double(), [2, 0, 1, 1, 0]
    batch = labelled(method, labels)
    assert [sorted(one) for one in batch.columns[4:]] == [["labels"]] and len(batch.columns) == 5
    with torch.no_grad():
        found = method.train()(batch)
        u, u_cut, v, v_cut = (one.numpy() for one in method.views(batch)[:4])
    W, b = (p.detach().numpy() for p in (method.classifier.weight, method.classifier.bias))
    surprise = 0.0
    for i, label in enumerate(labels):
        both = list(zip(u[i], v[i], strict=True))
        features = [*u[i], *v[i], *(abs(x - y) for x, y in both), *(max(one) ** 2 for one in both)]
        logits = [sum(w * x for w, x in zip(W[k], features, strict=True)) + b[k] for k in range(3)]
        surprise += (np.log(sum(np.exp(one) for one in logits)) - logits[label]) / len(labels)
    contrast = 2 * nt_xent(u, u_cut, 0.1) + 2 * nt_xent(v, v_cut, 0.1)
    # the harness computes it in float32
    assert found.parts["classification"].item() == pytest.approx(surprise, abs=1e-6)
    assert found.parts["contrast"].item() == pytest.approx(contrast, abs=1e-10)
    assert found.total.item() == pytest.approx(surprise + 0.15 * contrast, abs=1e-6)
