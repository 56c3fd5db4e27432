"""InferSent: vectors, loss and gradients against plain loops in float64, its rate, and what is
kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import WORDS, sentences

from bench.backbones import Reference
from bench.method import Batch, Context, Recipe, Value
from bench.method.recipes import merge_recipe
from bench.method.torch_method import training_state
from bench.methods.infersent import InferSent

KNOWN = sorted(set(WORDS))[2:]  # two words have no vector


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rng, file = np.random.default_rng(0), tmp_path / "vectors.txt"
    rows = [f"{word} {' '.join(map(str, rng.normal(size=6)))}" for word in (*KNOWN, "<s>", "</s>")]
    file.write_text("\n".join(rows) + "\n")
    return file


def made(vectors: Path, **values: Any) -> InferSent:
    given = {"vectors": str(vectors), "lstm_size": 5, "classifier_size": 4, **values}
    recipe = merge_recipe(InferSent, None, "", {}, trained=True).values_with_source()
    recipe = Recipe(recipe | {key: Value(value, "test") for key, value in given.items()})
    method = InferSent()
    method.context = Context(seed=1)
    torch.manual_seed(0)
    method.build(Reference(name="glove", revision="unknown", path=None), recipe)
    return method.eval()


@pytest.fixture
def build(vectors: Path) -> Callable[..., InferSent]:
    return partial(made, vectors)


PAIRS = sentences(4, seed=1), sentences(4, seed=2, longest=20)


def batch_of(method: InferSent, labels: list[int]) -> Batch:
    n = len(labels)
    columns: dict[str, Any] = {"sent0": PAIRS[0][:n], "sent1": PAIRS[1][:n]}
    columns["label"] = [[label] for label in labels]
    return Batch(method.collate(columns, np.arange(n), 0))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def by_hand(method: InferSent, text: str) -> list[float]:
    """A sentence's vector number by number: an LSTM's equations forwards and backwards, then the
    largest of each output.
    """
    table = method.table.double().numpy()
    lines = Path(method.recipe.vectors).read_text().splitlines()
    known = {line.split(" ")[0]: i for i, line in enumerate(lines, 1)}
    words = [known["<s>"], *(known[w] for w in text.split() if w in known), known["</s>"]]
    inputs, size = [table[row] for row in words], method.recipe.lstm_size
    outputs = []
    for way, order in (("", inputs), ("_reverse", inputs[::-1])):
        W_in, W_h, b_in, b_h = (
            getattr(method.encoder, name + way).detach().double().numpy()
            for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        )
        h = [0.0] * size
        c = [0.0] * size
        states = []
        for x in order:
            rows = range(4 * size)
            gates = [sum(W_in[k] * x) + sum(W_h[k] * np.array(h)) + b_in[k] + b_h[k] for k in rows]
            i, f, g, o = (gates[part * size : (part + 1) * size] for part in range(4))
            c = [sigmoid(f[k]) * c[k] + sigmoid(i[k]) * math.tanh(g[k]) for k in range(size)]
            h = [sigmoid(o[k]) * math.tanh(c[k]) for k in range(size)]
            states.append(h)
        outputs.append([max(state[k] for state in states) for k in range(size)])
    return [*outputs[0], *outputs[1]]


def test_vectors_are_those_of_an_lstm_written_out(build: Callable[..., InferSent]) -> None:
    method = build()
    texts = [*sentences(5, seed=3), "zebra", "", "man zebra man"]
    for text, vector in zip(texts, method.encode(texts), strict=True):
        np.testing.assert_allclose(vector, by_hand(method, text), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(*method.encode(["zebra", ""]))  # nothing known: <s> </s>


def test_the_loss_is_that_of_three_layers_written_out(build: Callable[..., InferSent]) -> None:
    method, labels = build(), [2, 0, 1, 1]
    with torch.no_grad():
        found = method.train()(batch_of(method, labels)).total.item()
    wanted = 0.0
    for a, b, label in zip(*PAIRS, labels, strict=True):
        u, v = by_hand(method, a), by_hand(method, b)
        both = list(zip(u, v, strict=True))
        x = [*u, *v, *(abs(p - q) for p, q in both), *(p * q for p, q in both)]
        layer: Any
        for layer in method.classifier:
            W, bias = (p.detach().double().numpy() for p in (layer.weight, layer.bias))
            pairs = enumerate(W)
            x = [sum(w * y for w, y in zip(row, x, strict=True)) + bias[k] for k, row in pairs]
        wanted += (math.log(sum(map(math.exp, x))) - x[label]) / len(labels)
    assert found == pytest.approx(wanted, abs=1e-6)


def said(score: float, _method: Any) -> float:
    return score


def test_the_rate_falls_each_epoch_and_where_the_dev_score_does_not_rise(build):
    method = build(epochs=4)
    rates = [method.learning_rate(step, 40) for step in (0, 9, 10, 39)]
    assert rates == pytest.approx([0.1, 0.1, 0.099, 0.1 * 0.99**3])
    for score in (50.0, 60.0, 60.0, 55.0, 61.0):
        assert method.dev_score(partial(said, score)) == score
    assert method.learning_rate(0, 40) == pytest.approx(0.1 / 25)
    again = build(epochs=4)
    again.load_state_dict(training_state(method), strict=False)
    assert again.learning_rate(0, 40) == pytest.approx(0.1 / 25)
    assert again.dev_score(partial(said, 61.0)) == 61.0
    assert again.learning_rate(0, 40) == pytest.approx(0.1 / 125)
