"""Encoders that give a sentence several vectors are named in one line; those that give it one are
not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bags import bag
from st_folders import bert_folder, st_folder

import bench
from bench.method.answers import PROBE
from bench.run.external.objects import ObjectModel, object_plugin

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}
CHANGES = "get other vectors at each call"
COMPANY = "depends on the other sentences of the call"


def doubt_of(model: Any) -> str | None:
    cls = object_plugin(model, "mine").cls
    assert issubclass(cls, ObjectModel)
    return cls.doubt()


class Network(torch.nn.Module):
    """Sums of word vectors, then one layer."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def encode(self, texts: list[str]) -> torch.Tensor:
        with torch.no_grad():
            result: torch.Tensor = self.layer(torch.tensor(bag(texts)))
            return result


def noisy(texts: list[str]) -> np.ndarray:
    return bag(texts) + np.random.default_rng().normal(size=(len(texts), 48)) * 0.01


def random_for_one(texts: list[str]) -> np.ndarray:
    vectors = bag(texts)
    longest = max(range(len(texts)), key=lambda i: len(texts[i]))
    vectors[longest] = np.random.default_rng().normal(size=48)
    return vectors


def drifting() -> Callable[[list[str]], np.ndarray]:
    calls: list[int] = []

    def encode(texts: list[str]) -> np.ndarray:
        calls.append(len(texts))
        return bag(texts) + len(calls)

    return encode


def centred(texts: list[str]) -> np.ndarray:
    return bag(texts) - bag(texts).mean(axis=0)


def padded(texts: list[str]) -> np.ndarray:
    """The mean over the longest text of the call, as if padding were not masked."""
    return bag(texts) / max(len(text.split()) for text in texts)


def numbered(texts: list[str]) -> np.ndarray:
    return bag(texts) + np.arange(len(texts))[:, None]


def half(texts: list[str]) -> torch.Tensor:
    return torch.tensor(bag(texts)).bfloat16()


def rounded_by_batch(texts: list[str]) -> np.ndarray:
    """Round like bfloat16: differently in another batch, below a hundredth."""
    return bag(texts) * np.float32(1 + 0.004 * (len(texts) % 2))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Network(torch.nn.Dropout(0.1)).train(), CHANGES),
        (random_for_one, CHANGES),
        (drifting(), CHANGES),
        (Network(torch.nn.BatchNorm1d(48)).train(), COMPANY),
        (centred, COMPANY),
        (padded, COMPANY),
        (numbered, COMPANY),
        (Network(torch.nn.Dropout(0.1)).eval(), None),
        (bag, None),
        (half, None),
        (rounded_by_batch, None),
        (lambda texts: np.zeros((len(texts), 3)), None),
        (lambda texts: bag(texts) * 1e30, None),
        ({text: bag([text])[0] for text in PROBE}, None),
    ],
)
def test_an_encoder_that_gives_a_sentence_several_vectors_is_named(
    model: Any, said: str | None
) -> None:
    if isinstance(model, dict):
        from bench.run.external.stored import table_plugin

        doubt = table_plugin(model, "mine").cls.doubt()  # type: ignore[attr-defined]
    else:
        doubt = doubt_of(model)
    if said is None:
        assert doubt is None
    else:
        assert doubt is not None and said in doubt and doubt.startswith("mine: ")
        assert "\n" not in doubt and ".eval()" in doubt


def test_a_sentence_transformer_in_training_mode_leaves_it_when_it_encodes(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = str(st_folder(tmp_path / "model", bert_folder(tmp_path / "bert")))
    model = SentenceTransformer(folder, device="cpu").train()
    cls = object_plugin(model, "mine").cls
    assert issubclass(cls, ObjectModel) and cls.identify().by == "weights" and cls.doubt() is None


def test_a_sentence_transformer_that_stays_in_training_mode_is_named(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    class Sampled(SentenceTransformer):
        def eval(self) -> Sampled:
            return self.train()

    folder = str(st_folder(tmp_path / "model", bert_folder(tmp_path / "bert")))
    model = Sampled(folder, device="cpu").train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    assert CHANGES in (doubt_of(model) or "")


@pytest.mark.usefixtures("short_check")
def test_python_warns_once_and_the_record_says_it(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=CHANGES) as caught:
        random = bench.evaluate(noisy, name="mine", runs=tmp_path, **CHECK)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert random.model["identity"] == "nothing: its answers change"
    with pytest.warns(UserWarning, match=COMPANY):
        together = bench.evaluate(centred, name="mine", runs=tmp_path, **CHECK)
    assert together.model["identity"] == "answers" and together.model["independent"] is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steady = bench.evaluate(bag, name="mine", runs=tmp_path, **CHECK)
    assert "independent" not in steady.model
