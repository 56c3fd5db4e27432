"""BERT-flow: what trains, what is scored, and a short fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from harness import batch_of, rows_of
from models import Columns, built, sentences
from safetensors.torch import load_file

from bench.method import Context
from bench.methods.flow import Flow
from bench.training.loop import train_method


@pytest.fixture
def method(backbone: str, tmp_path: Path) -> Flow:
    return built(Flow, backbone, tmp_path)


def pooled_by_hand(method: Flow, texts: list[str]) -> torch.Tensor:
    rows = []
    for row in rows_of(method.assemble(method.token_ids(texts))):
        with torch.no_grad():
            out = method.encoder(input_ids=torch.tensor([row]), output_hidden_states=True)
        rows.append(((out.hidden_states[1] + out.hidden_states[-1]) / 2)[0].mean(0))
    return torch.stack(rows)


def moved(method: Flow) -> Flow:
    """Away from its start, where every coupling does nothing."""
    torch.manual_seed(0)
    with torch.no_grad():
        for p in method.glow.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return method


def test_encode_gives_z_of_the_mean_of_first_and_last_layer(method: Flow) -> None:
    texts = sentences(5, seed=3)
    moved(method)
    with torch.no_grad():
        wanted = method.glow(pooled_by_hand(method, texts))
    np.testing.assert_allclose(method.encode(texts), wanted, rtol=0, atol=1e-4)


def test_the_loss_is_the_likelihood_of_the_pooled_vectors(method: Flow) -> None:
    texts = sentences(6, seed=4)
    moved(method).eval()
    with torch.no_grad():
        found = method(batch_of(method, texts)).total.item()
        z = method.glow(pooled_by_hand(method, texts)).double().numpy()
    volume = method.glow.log_determinant().item()
    log_density = -0.5 * (z**2).sum(1) - 16 * np.log(2 * np.pi) + volume
    assert found == pytest.approx(np.mean(-log_density / np.log(2) / 32), abs=1e-5)


def loss_of(method: Flow, texts: list[str]) -> float:
    with torch.no_grad():
        return float(method.eval()(batch_of(method, texts[:64])).total)


@pytest.mark.nightly
def test_a_fit_starts_on_data_lowers_the_loss_and_is_found_again(tiny: str, tmp_path: Path) -> None:
    corpus, texts = sentences(300, seed=5), sentences(40, seed=6)
    rows, losses = Columns(built(Flow, tiny, tmp_path).token_ids(corpus)), []
    for folder, rate in (("start", 0.0), ("fit", 5e-3)):
        context = Context(folder=tmp_path / folder, seed=1)
        values = {"dropout": 0.0, "learning_rate": rate, "epochs": 4, "context": context}
        method = built(Flow, tiny, tmp_path, **values)
        losses.append(loss_of(method, corpus))
        report = train_method(method, rows, context)
        losses.append(loss_of(method, corpus))
    untouched, started, _, fitted = losses
    assert fitted < started < untouched and report.steps == 40 and report.dev_score is None
    again = built(Flow, tiny, tmp_path, seed=9)
    again.load(tmp_path / "fit" / "checkpoint")
    np.testing.assert_array_equal(again.encode(texts), method.encode(texts))
    stored = load_file(tmp_path / "fit" / "checkpoint" / "trained.safetensors")
    assert not [name for name in stored if name.startswith("encoder.")]
